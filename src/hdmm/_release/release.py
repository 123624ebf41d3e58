"""The Release: a plan, its noisy measurements and what was spent, from which tables with margins are derived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from hdmm._plan import Plan
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

        workload = self.plan.workload
        place = workload.place(name)
        answer = self.plan.strategy.answer(workload.encoded.products[place], self._state)
        predicted = self.plan.accuracy(name, self.budget)
        stderr = predicted.spread(predicted.stderr)
        margin = predicted.spread(predicted.margin) + self._rounding(answer)
        columns: dict[str, pa.Array] = self._labels(workload.products[place].predicates)
        columns |= {"answer": answer, "stderr": stderr, "low": answer - margin, "high": answer + margin}
        return pa.table(columns)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Every product's name and table, one at a time."""
        for product in self.plan.workload.products:
            yield product.name, self.table(product.name)

    def save(self, directory: str | Path, *, format: Literal["parquet", "csv"] = "parquet") -> None:
        """Write the release to a new directory: its tables, its measurements and its plan."""
        from hdmm._release.file import save

        save(self, Path(directory), format)

    @staticmethod
    def load(directory: str | Path) -> Release:
        """Read a release; refuse one that is damaged."""
        from hdmm._release.file import load

        return load(Path(directory))

    def _rounding(self, answer: NDArray[np.float64]) -> float:
        """What floating point may have done to the answers: nothing where they are sums of integers."""
        if (answer == np.rint(answer)).all():
            return 0.0
        pairs = zip(self.plan.strategy.blocks, self.measurements, strict=True)
        sizes = [float(block.weight) * float(abs(array.astype(float)).sum()) for block, array in pairs]
        return 2.0**-40 * max(1.0, *sizes)

    def _labels(self, predicates: Any) -> dict[str, pa.Array]:
        """Label columns in schema order, row-major over the attributes."""
        import pyarrow as pa

        schema = self.plan.workload.schema
        names = [name for name in schema if name in predicates]
        labels = [predicates[name].labels(name, schema[name]) for name in names]
        sizes = [len(values) for values in labels]
        columns = {}
        for place, (name, values) in enumerate(zip(names, labels, strict=True)):
            inner, outer = int(np.prod(sizes[place + 1 :])), int(np.prod(sizes[:place]))
            index = np.tile(np.repeat(np.arange(len(values)), inner), outer)
            columns[name] = _column(values).take(pa.array(index))
        return columns


def _column(values: list[Any]) -> pa.Array:
    """Labels as one column: typed where all are values of one type, else text."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, None if kinds else pa.string())
