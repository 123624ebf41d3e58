"""Records as codes, and the table of counts to which they are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hdmm.schema import Schema


@final
@dataclass(frozen=True)
class Records:
    """Some records: their number, and their codes for every attribute that was asked for, -1 if outside.

    ``people`` holds the identifier of each record's person as an Arrow array of texts, null if there is none; ``times``
    is how often each record counts, by default once.
    """

    count: int
    codes: Mapping[str, NDArray[np.signedinteger]]
    people: Any = None
    times: NDArray[np.int64] | None = None

    def inside(self) -> Records:
        """The records with every value inside its domain and, if people are identified, an identifier."""
        masks = [codes >= 0 for codes in self.codes.values() if codes.min(initial=0) < 0]
        if self.people is not None and self.people.null_count:
            masks.append(self.people.is_valid().to_numpy(zero_copy_only=False))
        return self._taken(np.flatnonzero(np.all(masks, axis=0))) if masks else self

    def first(self, most: int) -> Records:
        """The first records, at most this many."""
        return self if self.count <= most else self._taken(np.arange(most))

    def _taken(self, places: NDArray[np.intp]) -> Records:
        people = None if self.people is None else self.people.take(places)
        times = None if self.times is None else self.times[places]
        return Records(len(places), {name: codes[places] for name, codes in self.codes.items()}, people, times)


@final
class Tally:
    """The counts of one table so far; threads may add to them at the same time."""

    def __init__(self, names: tuple[str, ...], schema: Schema) -> None:
        self._names = names
        self._sizes = [schema[name].size for name in names]
        self.counts = np.zeros(prod(self._sizes), np.int64)
        self._lock = Lock()

    def add(self, records: Records) -> None:
        """Count some records; they may have codes for other attributes too."""
        cells = np.zeros(records.count, np.int64)
        for name, size in zip(self._names, self._sizes, strict=True):
            cells *= size
            cells += records.codes[name]
        with self._lock:
            np.add.at(self.counts, cells, 1 if records.times is None else records.times)
