"""`hdmm demo`, and `hdmm paper`: our numbers beside the paper's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hdmm import Budget
from hdmm.cli.progress import bars, search
from hdmm.progress import stage

if TYPE_CHECKING:
    from hdmm.paper.sections.cells import Cell

_SECTIONS = (
    "one-d, multi-d: the result tables. examples: the worked examples. sizes: the census workloads, read from SQL. "
    "strategies: pictures of three strategies. scalability: the figures of running times. "
    "since: newer systems."
)


def demo(
    epsilon: Annotated[str, typer.Option(help="Privacy budget ε.")] = "1",
    keep: Annotated[Path | None, typer.Option(help="Keep the people, plan and release in this new directory.")] = None,
) -> None:
    """See every step on 100,000 made-up people: plan, predicted error, release, and the comparison with the truth."""
    from hdmm.demo import run

    with search() as report:
        run(Budget(epsilon), keep, typer.echo, report, bars)


def paper(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SECTION]...", help=_SECTIONS, show_default="all")
    ] = None,
    check: Annotated[
        Literal["all", "workloads", "baselines", "hierarchies", "multi-d", "one-d"] | None,
        typer.Option(
            help="Only what hdmm optimises or counts. workloads: the census workloads and their sizes. "
            "baselines: the columns Identity, Baseline, DataCube and SVDB of all four tables. "
            "hierarchies: the columns H2, Wavelet, HB and GreedyH. "
            "multi-d: the columns OPT_⊗, OPT_+, OPT_M and HDMM. one-d: the column OPT_0."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write CSV files and pictures to this directory.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Leave out what takes long, and say so.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that compute (default: one for each core).")
    ] = None,
    cached: Annotated[bool, typer.Option("--cache/--no-cache", help="Use results of earlier runs.")] = True,
) -> None:
    """Compute every number of the paper's evaluation and print it beside the paper's.

    Exit code 1 if a number disagrees.
    """
    from hdmm.paper.cache import Cache, user_directory
    from hdmm.paper.report.files import prepare, save
    from hdmm.paper.report.terminal import summary, tables
    from hdmm.paper.run import run
    from hdmm.paper.sections import chosen

    if out is not None:
        prepare(out)
    cells: list[Cell] = []
    cache = Cache(user_directory()) if cached else None
    for section in chosen(names or (), check):
        with bars() as report:  # nothing is printed inside: the bar would take the place of standard output
            outcomes = run(
                section,
                cache,
                fast=fast,
                jobs=jobs or os.cpu_count() or 1,
                on_progress=stage(report, f"hdmm paper {section.name}"),
            )
        computed = section.cells(outcomes)
        typer.echo(f"\n{section.title}\n")
        for text in (*tables(section, computed), *section.remarks(outcomes)):
            typer.echo(text)
        typer.echo(f"{section.name}: {summary(computed)}")
        if out is not None:
            typer.echo(f"wrote {', '.join(path.name for path in save(section, outcomes, computed, out))} to {out}")
        cells += computed
    typer.echo(f"\n{summary(cells)}")
    if not all(cell.agrees for cell in cells):
        raise typer.Exit(1)
