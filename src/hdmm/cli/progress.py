"""What is shown while a command runs: candidates as they come, and a bar for each stage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from hdmm import Progress


@contextmanager
def search() -> Iterator[Callable[[Progress], None]]:
    """A line for every candidate; on a terminal also what runs now, and the best so far."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        if not sys.stderr.isatty():
            status.stop()

        def tell(progress: Progress) -> None:
            if progress.interrupted:
                return
            if progress.reason is not None:
                typer.echo(f"  {progress.operator:<12} {'–':>12}  {progress.reason}")
            elif progress.rmse is None:
                best = "" if progress.best is None else f"; best so far {progress.best:,.2f}"
                status.update(f"{progress.operator} …{best}{_ratio(progress.best, progress.bound)}")
            else:
                ratio = _ratio(progress.rmse, progress.bound)
                typer.echo(f"  {progress.operator:<12} {progress.rmse:>12,.2f}{ratio}")

        yield tell


def _ratio(error: float | None, bound: float | None) -> str:
    return "" if error is None or not bound else f", {error / bound:.2f} times the lower bound"


@contextmanager
def bars() -> Iterator[Callable[[str, float], None]]:
    """A progress bar for each stage on the terminal; nothing in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(stage: str, fraction: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=fraction)

        yield advance
