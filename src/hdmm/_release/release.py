"""The Release: a plan, its noisy measurements and what was spent, from which tables with margins are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm._release.answer import answered
from hdmm._release.estimates import Estimates
from hdmm._release.how import USUAL, How, Wishes
from hdmm._release.rows import Rows
from hdmm._release.write import Format
from hdmm.privacy.budget import Budget
from hdmm.strategy import Strategy
from hdmm.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from hdmm.reconstruct.counted import Counted
    from hdmm.reconstruct.derived import Quantile
    from hdmm.reconstruct.quotient import Ratio


@final
@dataclass(frozen=True, eq=False)
class Release:
    """What is published. It never holds raw data or the number of records."""

    plan: Plan
    budget: Budget
    measurements: tuple[NDArray[Any], ...]
    """Noisy integers; as floats where they may need more than 64 bits."""

    def __post_init__(self) -> None:
        numbers = (array.astype(float) if array.dtype == object else array for array in self.measurements)
        object.__setattr__(self, "measurements", tuple(numbers))

    def __repr__(self) -> str:
        return f"Release({len(self.plan.workload.products)} tables, {self.plan.noise}, {self.budget})"

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.plan, self.budget, self.measurements)

    def table(
        self, name: str, *, on_progress: Callable[[float], None] | None = None, **wishes: Unpack[Wishes]
    ) -> pa.Table:
        """The answers to one product: a column per attribute, then answer, stderr, and the interval low to high.

        Wishes are ``level``, ``simultaneous``, ``estimator``, ``exact`` and ``rounded``. An interval holds its true
        answer with probability ``level``, by default 0.95; with ``simultaneous`` all intervals of the table do so
        together. ``estimator`` is "global", least squares over all measurements, so that all tables add up to each
        other; "local", for each table from one block; or one that is biased and has no intervals, "nonnegative" or
        "pgm" (Private-PGM, needs ``hdmm[pgm]``). A plan may tell its errors as upper bounds; with ``exact`` they are
        worked out, one solve for each answer. ``rounded`` answers are whole numbers whose sums are rounded with them.
        """
        return self.rows(name, How(**wishes), on_progress=on_progress).table()

    def tables(self, **wishes: Unpack[Wishes]) -> Iterator[tuple[str, pa.Table]]:
        """Every product's name and table, one at a time; wishes are as for :meth:`table`."""
        how = How(**wishes)
        for product in self.plan.workload.products:
            yield product.name, self.rows(product.name, how).table()

    def answer(self, workload: Workload, **wishes: Unpack[Wishes]) -> dict[str, pa.Table]:
        """New questions, answered from what was released: their tables by name, at no further cost.

        What was measured may not tell them; then the first that it does not tell is refused, with the reason. Wishes
        are as for :meth:`table`.
        """
        found = answered(self.plan, self._estimates, workload, How(**wishes))
        return {name: rows.table() for name, rows in found.items()}

    def share(self, part: Counted, whole: Counted = None, *, level: float = 0.95) -> Ratio:
        """Which share of the whole, by default of all records, is also in the part, with its interval.

        What is counted is a condition such as ``"age >= 18"``, or values such as ``{"sex": "F", "age": 3}``.
        """
        from hdmm.reconstruct.derived import share

        return share(self, part, whole, level=level)

    def ratio(self, numerator: Counted, denominator: Counted, *, level: float = 0.95) -> Ratio:
        """The ratio of two counts, with its interval."""
        from hdmm.reconstruct.derived import ratio

        return ratio(self, numerator, denominator, level=level)

    def shares(self, name: str, within: Sequence[str] = (), *, level: float = 0.95) -> pa.Table:
        """Every row of a product as a share of those that agree with it on attributes ``within``, with intervals."""
        from hdmm.reconstruct.derived import shares

        return shares(self, name, within, level=level)

    def quantile(self, attribute: str, at: float = 0.5, *, where: Counted = None, level: float = 0.95) -> Quantile:
        """The value of an ordered attribute up to which there is this share of the records: by default the median."""
        from hdmm.reconstruct.derived import quantile

        return quantile(self, attribute, at, where=where, level=level)

    def synthesize(self, rows: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Made-up records that agree with the release as well as they can; by default as many as there seem to be.

        They are drawn from an estimate without negative counts, by Private-PGM where ``hdmm[pgm]`` is installed, and
        are biased. It is post-processing: they cost nothing, and a seed does no harm.
        """
        from hdmm.reconstruct.synthetic import synthesize

        plan = self.plan
        noise = plan.calibrate(self.budget).variances
        return synthesize(plan.workload.schema, plan.estimator, self.measurements, noise, rows=rows, seed=seed)

    @property
    def usual(self) -> How:
        """How tables are made that are published with the release."""
        return self._estimates.usual

    def solution(self) -> tuple[Strategy, Any]:
        """The least-squares estimator, with exact errors, and what it makes of the measurements."""
        return self._estimates.exact, self._estimates.state()

    def rows(self, name: str, how: How = USUAL, *, on_progress: Callable[[float], None] | None = None) -> Rows:
        """The answers to one product, from which its table is made some rows at a time."""
        workload = self.plan.workload
        place = workload.place(name)
        encoded = workload.encoded.products[place]
        return self._estimates.rows(workload.products[place], encoded, how, on_progress=on_progress)

    def save(
        self,
        directory: str | Path,
        *,
        format: Format = "parquet",
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        """Write the release to a new directory: its tables, its measurements and its plan.

        Tables are written one by one, and some rows at a time; ``on_progress`` is told which share of them is written.
        """
        from hdmm._release.file import save

        save(self, Path(directory), format, on_progress)

    def save_tables(
        self,
        directory: str | Path,
        *,
        format: Format = "parquet",
        on_progress: Callable[[float], None] | None = None,
        **wishes: Unpack[Wishes],
    ) -> None:
        """Write only the tables, as they are asked for, to a new directory; wishes are as for :meth:`table`."""
        from hdmm._release.file import save_tables

        save_tables(self, Path(directory), How(**wishes), format, on_progress)

    @staticmethod
    def load(directory: str | Path) -> Release:
        """Read a release; refuse one that is damaged."""
        from hdmm._release.file import load

        return load(Path(directory))
