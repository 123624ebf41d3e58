"""`hdmm release`: measure once, and write every table."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget, DatabaseTable, Ledger, Plan
from hdmm import release as publish
from hdmm.cli.options import Delta, Epsilon, Memory, Rho, TableDigits, TableFormat, budget_of
from hdmm.cli.progress import bars
from hdmm.errors import HdmmError, InputError
from hdmm.plans.footprint import listed
from hdmm.plans.notes import unlisted_notes
from hdmm.releases.publish import latest_entry

_MAX_ID = 200
"""Most characters of a release's id in the ledger."""


def release(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    data: Annotated[
        list[str],
        typer.Argument(
            help="CSV files whose header names the attributes, or Parquet files, or a pattern such as 'people-*.csv'; "
            "with --table a DuckDB or SQLite file, or postgresql://user@host/database."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The directory to write; it must not exist yet.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger to charge, from `hdmm ledger create`.")] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Spend without a ledger: you keep account of the budget yourself.")
    ] = False,
    id: Annotated[
        str | None,
        typer.Option(help="The release's name in the ledger (default: its output path). Repeating a release is free."),
    ] = None,
    format: TableFormat = "parquet",
    digits: TableDigits = "meaningful",
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="What separates the fields of a text file: a character such as ';', or tab, comma, semicolon, pipe or "
            "space (default: a comma; a tab in .tsv files)."
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="The encoding of a text file, such as latin-1 (default: UTF-8).")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table or view of a database that holds the records.")] = None,
    memory: Memory = None,
) -> None:
    """Measure the data once, with noise, and write every table with its margins of error.

    The budget is charged to the ledger before any noise is drawn; everything that can be refused is refused before.

    Example: hdmm release people.plan people.csv --epsilon 1 --ledger budget.db -o out

    Example: hdmm release people.plan people.duckdb --table people --epsilon 1 --ledger budget.db -o out
    """
    if (ledger is None) != no_ledger:
        raise InputError(
            "--ledger: give the ledger to charge, or --no-ledger to keep account of the budget yourself"
            + ("; not both" if no_ledger else "")
        )
    if id is not None and no_ledger:
        raise InputError(f"--id {id!r}: names a release in a ledger; give --ledger")
    budget = budget_of(epsilon, delta, rho)
    loaded = Plan.load(plan, memory=memory)
    tables = listed(loaded.workload.encoded)
    for note in unlisted_notes(loaded.workload.encoded):
        typer.echo(f"note: {note}")
    name = None if no_ledger else id or _id(output)
    existed = output.exists()
    try:
        with bars() as advance:
            publish(
                loaded,
                data if table is None else _table(data, table),
                budget,
                ledger=ledger,
                id=name,
                out=output,
                format=format,
                digits=digits,
                delimiter=delimiter,
                encoding=encoding,
                memory=memory,
                on_progress=advance,
            )
    except KeyboardInterrupt:
        _report_interrupt(budget, ledger, name, output, written=not existed and output.exists())
        raise
    if existed:
        typer.echo(f"{output}: was published before under this id; nothing was spent")
        return
    typer.echo(f"spent {budget}; wrote {len(tables)} tables to {output}")
    typer.echo("whether records were dropped is private: `hdmm check SPEC DATA` reports it to you alone")


def _report_interrupt(budget: Budget, ledger: Path | None, name: str | None, output: Path, *, written: bool) -> None:
    """Print what was written and charged before an interrupt, if anything was."""
    entry = None
    if ledger is not None and name is not None:
        with suppress(HdmmError):  # the interrupt may have come before the ledger was found to be readable
            entry = latest_entry(Ledger.open(ledger), name)
    reserved = entry is not None and entry.state == "reserved"
    if written and reserved:
        message = f"{output} is written and {budget} charged; the same command again marks it published at no cost"
    elif written:
        message = f"{output} is written, and {budget} spent"
    elif reserved:
        message = (
            f"{budget} was charged before the interrupt and stays charged (hdmm ledger show {ledger}); another try, "
            "with another -o or --id, is charged again"
        )
    else:
        return
    typer.echo(message, err=True)


def _table(data: list[str], name: str) -> DatabaseTable:
    if len(data) != 1:
        raise InputError(f"--table {name}: goes with one database; give one")
    return DatabaseTable(data[0], name)


def _id(output: Path) -> str:
    """The name of a release in the ledger, from its output path."""
    text = str(output.resolve())
    return text if len(text) <= _MAX_ID and text.isprintable() else hashlib.sha256(text.encode()).hexdigest()
