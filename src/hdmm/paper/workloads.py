"""The workloads of the paper's tables on one attribute, CPS, Adult and Loans."""

from __future__ import annotations

from typing import Literal, get_args

from hdmm.errors import WorkloadError, nearest
from hdmm.schema import Schema
from hdmm.workload import AllRange, Identity, Permuted, Predicates, Prefix, Total, Width, Workload, marginals

OneD = Literal["all-range", "prefix", "width32", "permuted"]

_CPS = (50, 100, 7, 4, 2)
_ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
_LOANS = (101, 101, 101, 101, 3, 8, 36, 6, 51, 4, 5, 15)
_SURVEYS = {"CPS": (_CPS, 2), "Loans": (_LOANS, 4), "Adult": (_ADULT, 5)}
"""The sizes of the attributes of each data set, and how many of them, from the first on, are asked by prefixes."""
_SMALL_CELLS = 5000
"""The most cells of a small marginal."""


def one_d(kind: OneD, n: int) -> Workload:
    """A workload on one attribute of n values: all ranges, prefixes, ranges of width 32, or all of shuffled values."""
    sets: dict[str, Predicates] = {"all-range": AllRange(), "prefix": Prefix(), "width32": Width(32)}
    if kind == "permuted":
        sets[kind] = Permuted(AllRange(), shuffled(n))
    if kind not in sets:
        raise WorkloadError(f"kind={kind!r}: unknown workload{nearest(kind, get_args(OneD))}")
    return Workload(Schema(value=range(n))).add(kind, value=sets[kind])


def cps_marginals() -> Workload:
    """All marginals of CPS, as one product."""
    schema = _schema(_CPS)
    return Workload(schema).add("all marginals", {name: Identity() | Total() for name in schema})


def cps_prefix() -> Workload:
    """All prefix-marginals of CPS: prefixes on the first two attributes."""
    schema = _schema(_CPS)
    first = schema.names[:2]
    sets = {name: Prefix() if name in first else Identity() | Total() for name in schema}
    return Workload(schema).add("all prefix-marginals", sets)


def adult_marginals() -> Workload:
    """All marginals of Adult on at most three attributes."""
    return marginals(_schema(_ADULT), up_to=3)


def adult_prefix() -> Workload:
    """All two-way marginals of Adult, with prefixes on its five largest attributes."""
    schema = _schema(_ADULT)
    return marginals(schema, k=2, prefix=schema.names[:5])


def loans_small() -> Workload:
    """All marginals of Loans with at most 5000 cells."""
    return marginals(_schema(_LOANS), max_cells=_SMALL_CELLS)


def loans_small_prefix() -> Workload:
    """All marginals of Loans with at most 5000 cells, with prefixes on its four largest attributes."""
    schema = _schema(_LOANS)
    return marginals(schema, max_cells=_SMALL_CELLS, prefix=schema.names[:4])


def survey_marginals(survey: str, ways: str, *, prefixes: bool) -> Workload:
    """Marginals of CPS, Loans or Adult: on 1, 2 or 3 attributes or on up to 3, plain or with prefixes."""
    sizes, prefixed = _SURVEYS[survey]
    schema = _schema(sizes)
    prefix = schema.names[:prefixed] if prefixes else ()
    if ways == "up to 3-way":
        return marginals(schema, up_to=3, prefix=prefix)
    return marginals(schema, k=int(ways.removesuffix("-way")), prefix=prefix)


def _schema(sizes: tuple[int, ...]) -> Schema:
    return Schema({f"a{place + 1}": range(size) for place, size in enumerate(sizes)})


def shuffled(n: int, seed: int = 0) -> list[int]:
    """A shuffle of n values; that of the published experiments is numpy's legacy generator with seed 0.

    Their column j is column p[j] of all ranges, so that it is the inverse of p that puts the values in order.
    """
    import numpy as np

    return np.argsort(np.random.RandomState(seed).permutation(n)).tolist()
