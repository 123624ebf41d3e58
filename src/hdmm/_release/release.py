"""The Release: a plan, its noisy measurements and what was spent, from which tables with margins are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm._release.answer import answered
from hdmm._release.rows import ROWS, Rows, labels
from hdmm.accuracy import Accuracy
from hdmm.privacy.budget import Budget
from hdmm.workload import EncodedProduct, Product, Workload

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

    def __repr__(self) -> str:
        return f"Release({len(self.plan.workload.products)} tables, {self.plan.noise}, {self.budget})"

    @cached_property
    def _state(self) -> Any:
        return self.plan.strategy.reconstruct(self.measurements, self.plan.calibrate(self.budget).variances)

    def table(self, name: str, *, level: float = 0.95) -> pa.Table:
        """The answers to one product: a column per attribute, then answer, stderr, and the interval low to high.

        An interval holds its true answer with probability ``level``.
        """
        return self.rows(name, level=level).table()

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Every product's name and table, one at a time."""
        for product in self.plan.workload.products:
            yield product.name, self.table(product.name)

    def answer(self, workload: Workload, *, level: float = 0.95) -> dict[str, pa.Table]:
        """New questions, answered from what was released: their tables by name, at no further cost.

        What was measured may not tell them; then the first that it does not tell is refused, with the reason.
        """
        return {name: rows.table() for name, rows in answered(self, workload, level).items()}

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
        return synthesize(plan.workload.schema, plan.strategy, self.measurements, noise, rows=rows, seed=seed)

    def rows(self, name: str, *, level: float = 0.95) -> Rows:
        """The answers to one product, from which its table is made some rows at a time."""
        workload = self.plan.workload
        place = workload.place(name)
        predicted = self.plan.accuracy(name, self.budget, level)
        return self.rows_of(workload.products[place], workload.encoded.products[place], predicted)

    def rows_of(self, product: Product, encoded: EncodedProduct, predicted: Accuracy) -> Rows:
        """The rows of any product that the strategy can answer."""
        answers = self.plan.strategy.answer(encoded, self._state)
        return Rows(labels(self.plan.workload.schema, product.predicates), answers, predicted, self._rounding)

    def save(
        self,
        directory: str | Path,
        *,
        format: Literal["parquet", "csv"] = "parquet",
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        """Write the release to a new directory: its tables, its measurements and its plan.

        Tables are written one by one, and some rows at a time; ``on_progress`` is told which share of them is written.
        """
        from hdmm._release.file import save

        save(self, Path(directory), format, on_progress)

    @staticmethod
    def load(directory: str | Path) -> Release:
        """Read a release; refuse one that is damaged."""
        from hdmm._release.file import load

        return load(Path(directory))

    @cached_property
    def _rounding(self) -> float:
        """What floating point may have done to an answer at most, where it is not a sum of integers."""
        pairs = zip(self.plan.strategy.blocks, self.measurements, strict=True)
        return 2.0**-40 * max(1.0, *(float(block.weight) * _size(array) for block, array in pairs))


def _size(array: NDArray[Any]) -> float:
    """The sum of the sizes of all numbers, some at a time."""
    parts = (array[start : start + ROWS] for start in range(0, len(array), ROWS))
    return sum(float(abs(part.astype(float)).sum()) for part in parts)
