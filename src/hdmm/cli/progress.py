"""What is shown while a command runs: candidates as they come, and a bar for each stage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from hdmm.progress import OnProgress, Progress


@contextmanager
def search() -> Iterator[OnProgress]:
    """A line for every candidate; on a terminal also what runs now, and the best so far."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        if not sys.stderr.isatty():
            status.stop()

        def report(progress: Progress) -> None:
            if progress.interrupted:
                return
            if progress.reason is not None:
                typer.echo(f"  {progress.stage:<12} {'–':>12}  {progress.reason}")
            elif progress.error is None:
                best = "" if progress.best is None else f"; best so far {progress.best:,.2f}"
                status.update(f"{progress.stage} …{best}{_ratio(progress.best, progress.bound)}")
            else:
                ratio = _ratio(progress.error, progress.bound)
                typer.echo(f"  {progress.stage:<12} {progress.error:>12,.2f}{ratio}")

        yield report


def _ratio(error: float | None, bound: float | None) -> str:
    return "" if error is None or not bound else f", {error / bound:.2f} times the lower bound"


@contextmanager
def bars() -> Iterator[OnProgress]:
    """A progress bar for each stage on the terminal; nothing in a log."""
    from rich import progress as rich
    from rich.console import Console

    console, silent = Console(stderr=True), not sys.stderr.isatty()
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn())
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=console, transient=True, disable=silent) as shown:
        tasks: dict[str, rich.TaskID] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = shown.add_task(progress.stage, total=1.0)
            shown.update(tasks[progress.stage], completed=progress.done)

        yield report
