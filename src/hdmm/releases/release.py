"""The Release: a plan, its noisy measurements and the budget spent, from which tables with margins are derived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from numpy.typing import NDArray

from hdmm.estimators import Choice
from hdmm.memory import memory_allowed
from hdmm.plans import Plan
from hdmm.plans.footprint import check_listed, listed
from hdmm.privacy.budget import Budget
from hdmm.progress import OnProgress
from hdmm.releases import statistics
from hdmm.releases.answer import answered
from hdmm.releases.estimates import Estimates
from hdmm.releases.options import TableOptions, Word
from hdmm.releases.present import Digits
from hdmm.releases.ratio import Ratio
from hdmm.releases.rows import Rows
from hdmm.releases.selection import Counted
from hdmm.releases.statistics import Quantile
from hdmm.releases.write import Format
from hdmm.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa


@final
@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A plan's noisy measurements, ready to be published. It never holds raw data or the number of records."""

    plan: Plan
    budget: Budget
    measurements: tuple[NDArray[Any], ...]
    """Noisy integers; as floats if they may need more than 64 bits."""

    def __post_init__(self) -> None:
        numbers = (array.astype(float) if array.dtype == object else array for array in self.measurements)
        object.__setattr__(self, "measurements", tuple(numbers))

    def __repr__(self) -> str:
        return f"Release({len(listed(self.plan.workload.encoded))} tables, {self.plan.noise}, {self.budget})"

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.plan, self.budget, self.measurements)

    def table(
        self,
        name: str,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        estimator: Word | Choice = "global",
        exact: bool = False,
        rounded: bool = False,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> pa.Table:
        """The answers to one product: a column per attribute, then answer, stderr, and the interval low to high.

        Arguments:
            name: The name of the product.
            level: How likely an interval holds its true answer.
            simultaneous: Make all intervals of the table hold together at that level.
            estimator: One of :mod:`hdmm.estimators`, or its word. "global" is least squares over all measurements, so
                that all tables add up to each other; "local" takes each table from one block. "nonnegative" and "pgm"
                (Private-PGM, needs ``hdmm[pgm]``) are never negative, and so biased and without intervals.
            exact: Work out errors that the plan knows only as upper bounds, by one solve for each answer.
            rounded: Whole numbers, rounded together with their sums.
            memory: Memory limit, such as "8GB" (default: half of RAM).
            on_progress: Called with a :class:`Progress` while margins are computed.
        """
        options = TableOptions.of(level, simultaneous, estimator, exact, rounded)
        with memory_allowed(memory):
            return self._rows(name, options, on_progress).table()

    def tables(
        self,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        estimator: Word | Choice = "global",
        exact: bool = False,
        rounded: bool = False,
        memory: str | int | None = None,
    ) -> Iterator[tuple[str, pa.Table]]:
        """The name and the table of every product that has one, one at a time; arguments are as for :meth:`table`."""
        options = TableOptions.of(level, simultaneous, estimator, exact, rounded)
        for product in listed(self.plan.workload.encoded):
            with memory_allowed(memory):
                table = self._rows(product.name, options).table()
            yield product.name, table

    def answer(
        self,
        workload: Workload,
        *,
        level: float = 0.95,
        simultaneous: bool = False,
        estimator: Word | Choice = "global",
        exact: bool = False,
        rounded: bool = False,
        memory: str | int | None = None,
    ) -> dict[str, pa.Table]:
        """New questions, answered from what was released: their tables by name, at no further cost.

        If the measurements do not determine a question, it is refused with the reason. Arguments are as for
        :meth:`table`.
        """
        options = TableOptions.of(level, simultaneous, estimator, exact, rounded)
        with memory_allowed(memory):
            rows = answered(self.plan, self._estimates, workload, options)
            return {name: product_rows.table() for name, product_rows in rows.items()}

    def share(self, part: Counted, whole: Counted = None, *, level: float = 0.95) -> Ratio:
        """The share of the whole, by default of all records, that is also in the part, with its interval.

        Both are conditions such as ``"age >= 18"``, or values such as ``{"sex": "F", "age": 3}``.

        Arguments:
            part: A condition such as ``"age >= 18"``, or values such as ``{"sex": "F", "age": 3}``.
            whole: The same (default: all records).
            level: How likely the interval holds the true value.
        """
        return statistics.share(self._estimates, part, whole, level)

    def ratio(self, numerator: Counted, denominator: Counted, *, level: float = 0.95) -> Ratio:
        """The ratio of two counts, with its interval.

        Arguments:
            numerator: A condition such as ``"age >= 18"``, or values such as ``{"sex": "F", "age": 3}``.
            denominator: The same.
            level: How likely the interval holds the true value.
        """
        return statistics.ratio(self._estimates, numerator, denominator, level)

    def shares(self, name: str, within: Sequence[str] = (), *, level: float = 0.95) -> pa.Table:
        """Each row of a product as a share of the records that agree with it on some attributes, with intervals.

        Arguments:
            name: The name of the product.
            within: Attributes of the product (default: none, for shares of all records).
            level: How likely the interval holds the true value.
        """
        return statistics.shares(self._estimates, name, within, level)

    def quantile(self, attribute: str, at: float = 0.5, *, where: Counted = None, level: float = 0.95) -> Quantile:
        """The first value of an ordered attribute up to which lies this share of the records: by default the median.

        Arguments:
            attribute: The ordered attribute.
            at: The share of the records, between 0 and 1.
            where: A condition such as ``"age >= 18"``, or values such as ``{"sex": "F", "age": 3}``: only these
                records.
            level: How likely the interval holds the true value.
        """
        return statistics.quantile(self._estimates, attribute, at, where, level)

    def synthesize(
        self, rows: int | None = None, *, seed: int | None = None, memory: str | int | None = None
    ) -> pa.Table:
        """Made-up records that agree with the release as closely as possible; by default as many as it estimates.

        They are drawn from an estimate without negative counts, by Private-PGM if ``hdmm[pgm]`` is installed, and are
        biased. This is post-processing: it costs nothing, and a seed does no harm.

        Arguments:
            rows: How many records.
            seed: Where random draws come from (default: a new place each time).
            memory: Memory limit, such as "8GB" (default: half of RAM).
        """
        from hdmm.releases.synthetic import synthesize

        with memory_allowed(memory):
            return synthesize(self._estimates, rows=rows, seed=seed)

    def _rows(self, name: str, options: TableOptions, on_progress: OnProgress | None = None) -> Rows:
        """The answers to one product, from which its table is made some rows at a time."""
        workload = self.plan.workload
        place = workload.place(name)
        check_listed(workload.encoded.products[place])
        return self._estimates.rows(workload.products[place], workload.encoded.products[place], options, on_progress)

    def save(
        self,
        directory: str | Path,
        *,
        format: Format = "parquet",
        digits: Digits = "meaningful",
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Write the release to a new directory: its tables, its measurements and its plan.

        Arguments:
            directory: A directory that does not exist yet.
            format: "parquet" or "csv".
            digits: "full" writes all digits to CSV files; by default only those that the standard error leaves a
                meaning. Parquet files have all of them.
            memory: Memory limit, such as "8GB" (default: half of RAM).
            on_progress: Called with a :class:`Progress` while tables are written, some rows at a time.
        """
        from hdmm.releases.file import save

        with memory_allowed(memory):
            save(self._estimates, Path(directory), format, digits, on_progress)

    def save_tables(
        self,
        directory: str | Path,
        *,
        format: Format = "parquet",
        digits: Digits = "meaningful",
        level: float = 0.95,
        simultaneous: bool = False,
        estimator: Word | Choice = "global",
        exact: bool = False,
        rounded: bool = False,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Write only the tables to a new directory; arguments are as for :meth:`table` and :meth:`save`."""
        from hdmm.releases.file import save_tables

        options = TableOptions.of(level, simultaneous, estimator, exact, rounded)
        with memory_allowed(memory):
            save_tables(self._estimates, Path(directory), options, format, digits, on_progress)

    @staticmethod
    def load(directory: str | Path, *, memory: str | int | None = None) -> Release:
        """Read a release; refuse one that is damaged.

        Arguments:
            directory: A directory that :func:`hdmm.release` wrote.
            memory: Memory limit, such as "8GB" (default: half of RAM).
        """
        from hdmm.releases.file import load

        with memory_allowed(memory):
            return Release(*load(Path(directory)))
