"""What is shown while a command runs: the candidates of a search, and a progress bar for each stage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import typer

from hdmm.progress import OnProgress, Progress

if TYPE_CHECKING:
    from rich.status import Status


@final
class SearchReport:
    """Prints a line for every candidate; on a terminal also what runs now, and the best so far."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self.interrupted = False

    def __call__(self, progress: Progress) -> None:
        if progress.interrupted:
            self.interrupted = True
        elif progress.reason is not None:
            typer.echo(f"  {progress.stage:<12} {'–':>12}  {progress.reason}")
        elif progress.error is None:
            best = "" if progress.best is None else f"; best so far {progress.best:,.2f}"
            self._status.update(f"{progress.stage} …{best}{_ratio(progress.best, progress.bound)}")
        else:
            ratio = _ratio(progress.error, progress.bound)
            typer.echo(f"  {progress.stage:<12} {progress.error:>12,.2f}{ratio}")


@contextmanager
def search() -> Iterator[SearchReport]:
    """Report on a search while it runs."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        if not sys.stderr.isatty():
            status.stop()
        yield SearchReport(status)


def _ratio(error: float | None, bound: float | None) -> str:
    return "" if error is None or not bound else f", {error / bound:.2f} times the lower bound"


@contextmanager
def bars() -> Iterator[OnProgress]:
    """Show a progress bar for each stage on a terminal; write nothing to a log."""
    from rich import progress as rich
    from rich.console import Console

    console, silent = Console(stderr=True), not sys.stderr.isatty()
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn())
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=console, transient=True, disable=silent) as drawn:
        tasks: dict[str, rich.TaskID] = {}

        def report(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = drawn.add_task(progress.stage, total=1.0)
            drawn.update(tasks[progress.stage], completed=progress.done)

        yield report
