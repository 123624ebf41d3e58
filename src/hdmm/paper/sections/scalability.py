"""The figures of running times: OPT_0, the operators on several attributes, and reconstruction (paper, section 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, final

from hdmm.matrix import Norm
from hdmm.paper.report.curves import Axis, Curve, figure, panel
from hdmm.paper.sections.base import Outcomes, Section, Task
from hdmm.paper.sections.cells import Cell, Exempt
from hdmm.paper.sections.result_tables import LEFT_OUT
from hdmm.paper.timing import OPERATORS, operator_time, opt0_time, reconstruct_time

if TYPE_CHECKING:
    import altair

_NOISES: dict[str, Norm] = {"Laplace": 1, "Gaussian": 2}
_CELLS: dict[str, tuple[int, ...]] = {
    "Laplace": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
    "Gaussian": (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536),
}
_SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_ATTRIBUTES = tuple(range(2, 16))
_VECTORS = (2, 4, 8, 16, 32)
_DIMENSION = 5
"""The number of attributes while their sizes vary."""
_SIZE = 10
"""The size of attributes while their number varies."""
_PRINTED = {("1024", "Laplace"): 10.0, ("1024", "Gaussian"): 60.0}
"""What the text says of OPT_0: 100 steps take under 10 seconds, and under a minute."""
_OPT0 = "OPT_0 on all ranges of n cells: seconds"
_BY_SIZE = f"Ten products of all ranges on {_DIMENSION} attributes of n cells: seconds of an operator"
_BY_NUMBER = f"Ten products of all ranges on d attributes of {_SIZE} cells: seconds of an operator"
_VECTOR = f"From noisy answers to the counts of all n^{_DIMENSION} cells: seconds"
_RULE = Exempt("the paper says “under”, for 100 steps, on another machine; ours is the whole search")


@final
class Scalability(Section):
    """How long everything takes, on the machine at hand."""

    name: ClassVar[str] = "scalability"
    title: ClassVar[str] = "Running times on this machine, drawn with --out"
    row_names: ClassVar[tuple[str, ...]] = ("size",)

    def tasks(self) -> Sequence[Task]:
        tasks = [
            Task(_name(_OPT0, n, noise), opt0_time, (n, _NOISES[noise]), n > 1024, timed=True)
            for noise, sizes in _CELLS.items()
            for n in sizes
        ]
        for operator in OPERATORS:
            tasks += [
                Task(_name(_BY_SIZE, n, operator), operator_time, (operator, _DIMENSION, n), n > 64, timed=True)
                for n in _SIZES
            ]
            tasks += [
                Task(_name(_BY_NUMBER, d, operator), operator_time, (operator, d, _SIZE), d > 10, timed=True)
                for d in _ATTRIBUTES
            ]
            tasks += [
                Task(_name(_VECTOR, n, operator), reconstruct_time, (operator, _DIMENSION, n), n > 16, timed=True)
                for n in _VECTORS
            ]
        return tasks

    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        cells = []
        for heading, sizes, columns in (
            (_OPT0, _CELLS["Gaussian"], tuple(_NOISES)),
            (_BY_SIZE, _SIZES, tuple(OPERATORS)),
            (_BY_NUMBER, _ATTRIBUTES, tuple(OPERATORS)),
            (_VECTOR, _VECTORS, tuple(OPERATORS)),
        ):
            for size in sizes:
                for column in columns:
                    if heading == _OPT0 and size not in _CELLS[column]:
                        continue
                    outcome = outcomes.get(_name(heading, size, column))
                    seconds, said = (None, LEFT_OUT) if outcome is None else (outcome["seconds"], "")
                    paper = _PRINTED.get((str(size), column)) if heading == _OPT0 else None
                    row = (f"{size:,}",)
                    cells.append(
                        Cell(self.name, heading, row, column, seconds, paper, _RULE, footnote=said, unit="seconds")
                    )
        return cells

    def charts(self, outcomes: Outcomes) -> Mapping[str, altair.TopLevelMixin]:
        def curves(heading: str, sizes: Sequence[int], columns: Sequence[str], power: int = 1) -> dict[str, Curve]:
            found = {
                column: [
                    (float(size**power), float(outcomes[_name(heading, size, column)]["seconds"]))
                    for size in sizes
                    if _name(heading, size, column) in outcomes
                ]
                for column in columns
            }
            # By the names of the operators: fonts without ⊗ would set its label in another one.
            titles = {column: OPERATORS[column].name if column in OPERATORS else column for column in columns}
            return {titles[column]: curve for column, curve in found.items() if curve}

        largest = max(n for n in _CELLS["Gaussian"] if any(_name(_OPT0, n, noise) in outcomes for noise in _NOISES))
        by_size = curves(_BY_SIZE, _SIZES, tuple(OPERATORS))
        by_number = curves(_BY_NUMBER, _ATTRIBUTES, tuple(OPERATORS))
        vectors = curves(_VECTOR, _VECTORS, tuple(OPERATORS), _DIMENSION)
        return {
            "scalability-opt0": figure(
                panel(
                    "Time of OPT_0",
                    "all ranges of one attribute",
                    curves(_OPT0, _CELLS["Gaussian"], tuple(_NOISES)),
                    Axis("cells", tuple(n for n in (64, 256, 1024, 4096, 16384, 65536) if n <= largest)),
                ),
            ),
            "scalability-operators": figure(
                panel(
                    f"Time of operators on {_DIMENSION} attributes",
                    "ten products of all ranges, Laplace noise",
                    by_size,
                    Axis("cells of each attribute", _upto((2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), by_size)),
                ),
                panel(
                    f"Time of operators on attributes of {_SIZE} cells",
                    "ten products of all ranges, Laplace noise",
                    by_number,
                    Axis("attributes", _upto((2, 4, 6, 8, 10, 15), by_number), log=False),
                ),
                panel(
                    "Time to reconstruct all counts",
                    f"{_DIMENSION} attributes, Gaussian noise",
                    vectors,
                    Axis("cells of the domain", _upto((10, 1e3, 1e5, 1e8), vectors)),
                ),
            ),
        }


def _name(heading: str, size: int, column: str) -> str:
    return f"{heading}: {size} {column}"


def _upto(values: Sequence[float], curves: Mapping[str, Curve]) -> tuple[float, ...]:
    """The labelled values, up to the first that no curve goes beyond."""
    largest = max(curve[-1][0] for curve in curves.values())
    below = [value for value in values if value < largest]
    return (*below, next((value for value in values if value >= largest), largest))
