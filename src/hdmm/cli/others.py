"""`hdmm demo`, and `hdmm paper`: our numbers beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hdmm import Budget
from hdmm.cli.progress import bars, search
from hdmm.text import bytes_text, text_table

if TYPE_CHECKING:
    from hdmm.paper.check import Cell


def demo(
    epsilon: Annotated[str, typer.Option(help="Privacy budget ε.")] = "1",
    keep: Annotated[Path | None, typer.Option(help="Keep the people, plan and release in this new directory.")] = None,
) -> None:
    """See every step on 100,000 made-up people: plan, predicted error, release, and the comparison with the truth."""
    from hdmm.demo import run

    with search() as report:
        run(Budget(epsilon), keep, typer.echo, report, bars)


def paper(
    check: Annotated[
        Literal["all", "workloads", "baselines", "multi-d", "one-d"],
        typer.Option(
            help="workloads: the census workloads read from SQL, and their sizes. "
            "baselines: the columns Identity, Baseline, DataCube and SVDB of all four tables. "
            "multi-d: the columns OPT_⊗, OPT_+, OPT_M and HDMM. one-d: the column OPT_0."
        ),
    ] = "all",
) -> None:
    """Print our numbers beside the paper's; exit code 1 if one differs from its printed digits, or is worse."""
    from hdmm.paper.check import check_baselines, check_strategies

    if check in ("all", "workloads"):
        _check_workloads()
    cells: dict[str, Callable[[], Iterable[Cell]]] = {
        "baselines": check_baselines,
        "multi-d": lambda: check_strategies("multi-d"),
        "one-d": lambda: check_strategies("one-d"),
    }
    verdicts = [_check_cells(compute()) for name, compute in cells.items() if check in ("all", name)]
    if not all(verdicts):
        raise typer.Exit(1)


def _check_workloads() -> None:
    from hdmm.paper.sizes import check_sizes

    for checked in check_sizes():
        typer.echo(
            f"{checked.workload}: {checked.queries:,} queries on {checked.cells:,} cells, from {checked.statements:,} "
            f"SQL statements to {checked.products} products in {checked.seconds:.1f} s"
        )
        rows = [[size.form, size.parts, bytes_text(size.ours), size.paper] for size in checked.sizes]
        typer.echo(text_table(["form", "parts", "size", "paper"], rows) + "\n")


def _check_cells(cells: Iterable[Cell]) -> bool:
    """Print cells as they are computed; whether all of them agree."""
    count = agree = off = 0
    rounding: list[float] = []
    for cell in cells:
        if not count:
            typer.echo(f"{'table':<16} {'workload':<36} {'column':<10} {'ours':>16} {'paper':>16}  note")
        mark = "" if cell.agrees else "  WORSE" if cell.at_most else "  DIFFERS"
        place = f"{cell.table:<16} {cell.workload:<36} {cell.column:<10}"
        typer.echo(f"{place} {cell.ours:>16,.2f} {cell.paper:>16,.2f}  {cell.note}{mark}")
        count, agree, off = count + 1, agree + cell.agrees, off + cell.known_to_be_off
        rounding += [] if cell.rounding is None else [cell.rounding]
    typer.echo(f"\n{agree - off} of {count} cells are as printed or better; {off} of the paper's are known to be off")
    if rounding:
        typer.echo(f"rounded to integers, as they are measured, {len(rounding)} cells lose at most {max(rounding):.1e}")
    typer.echo("")
    return agree == count
