"""The command line: arguments, progress and exit codes. No logic.

Exit codes: 0 done, 1 a fault of hdmm or of the machine, 2 a mistake in the arguments or files (nothing was charged or
written), 130 ended by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import sys
import traceback
from io import TextIOWrapper
from typing import Annotated

import typer

from hdmm import __version__
from hdmm.cli import answers, check, init, ledger, others, plan, release
from hdmm.cli.signals import stoppable
from hdmm.errors import HdmmError
from hdmm.syntax import messages_for

app = typer.Typer(
    name="hdmm",
    help="Publish counts about people without exposing any of them.\n\n"
    "1. `hdmm init` writes a spec to start from: the columns of your data and the tables you want.\n\n"
    "2. `hdmm check` says, to you alone, which records would be dropped, and what to write instead.\n\n"
    "3. `hdmm plan` finds what to measure, and `hdmm show` shows the error at a budget. Neither needs data.\n\n"
    "4. `hdmm ledger create` grants a privacy budget for your data.\n\n"
    "5. `hdmm release` charges it, measures the data once, and writes the tables with margins of error.\n\n"
    "6. `hdmm answer`, `hdmm tables` and `hdmm synthesize` get more out of a release, at no cost.\n\n"
    "`hdmm demo` shows every step on made-up people.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

ledgers = typer.Typer(help="Keep account of the privacy budget that was spent on a set of data.", no_args_is_help=True)
app.add_typer(ledgers, name="ledger")

_INTERRUPTED = 130
"""Typer's exit code for an interrupt."""
_UNPUBLISHED = "anything that is not on disk was not published"
for _command in (init.init, plan.plan, plan.show, release.release, answers.answer, answers.tables, answers.synthesize):
    app.command()(_command)
app.command("check")(check.check_spec)
for _other in (others.demo, others.paper):
    app.command()(_other)
for _ledger_command in (ledger.create, ledger.grant, ledger.show, ledger.verify, ledger.abandon):
    ledgers.command()(_ledger_command)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"hdmm {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every error is one clear sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks ε or × must not end the command
    try:
        with messages_for("command line"), stoppable() as stopped:
            app(standalone_mode=True)
    except HdmmError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except SystemExit as exit:
        if exit.code == _INTERRUPTED:
            word, code = stopped()
            typer.echo(f"{word}; {_UNPUBLISHED}", err=True)
            sys.exit(code)
        raise
    except MemoryError:
        fault = "out of memory; state the limit with --memory, ask for smaller products, or declare coarser domains"
        typer.echo(f"error: {fault}; {_UNPUBLISHED}", err=True)
        sys.exit(1)
    except Exception as error:  # its message might hold a value from the data: only its type and place are shown
        frames = "".join(traceback.format_tb(error.__traceback__))
        typer.echo(f"{frames}error: a fault in hdmm ({type(error).__name__}); {_UNPUBLISHED}", err=True)
        sys.exit(1)
