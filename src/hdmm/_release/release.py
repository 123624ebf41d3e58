"""The Release: a plan, its noisy measurements and what was spent, from which tables with margins are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from numpy.typing import NDArray

from hdmm._plan import Plan
from hdmm._release.rows import ROWS, Rows, labels
from hdmm.privacy.budget import Budget

if TYPE_CHECKING:
    import pyarrow as pa


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

    def table(self, name: str) -> pa.Table:
        """The answers to one product: a column per attribute, then answer, stderr, and the 95% interval low to high."""
        import pyarrow as pa

        rows = self.rows(name)
        return pa.Table.from_batches([rows.some(0, len(rows.answers))])

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Every product's name and table, one at a time."""
        for product in self.plan.workload.products:
            yield product.name, self.table(product.name)

    def rows(self, name: str) -> Rows:
        """The answers to one product, from which its table is made some rows at a time."""
        workload = self.plan.workload
        place = workload.place(name)
        answers = self.plan.strategy.answer(workload.encoded.products[place], self._state)
        predicted = self.plan.accuracy(name, self.budget)
        return Rows(labels(workload.schema, workload.products[place].predicates), answers, predicted, self._rounding)

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
