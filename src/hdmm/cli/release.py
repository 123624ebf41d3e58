"""`hdmm release`: measure once, and write every table."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget, DatabaseTable, Ledger, Plan
from hdmm import release as publish
from hdmm.cli.options import Delta, Epsilon, Memory, Rho, TableFormat, budget_of
from hdmm.cli.progress import bars
from hdmm.errors import HdmmError, InputError

_LONGEST = 200
"""Characters of a release's name in the ledger."""


def release(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    data: Annotated[
        list[str],
        typer.Argument(
            help="CSV files whose header names the attributes, or Parquet files, or a pattern such as 'people-*.csv'; "
            "with --table a DuckDB or SQLite file, or postgresql://user@host/database."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="A directory that does not exist yet.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that is charged, made by `hdmm ledger create`.")
    ] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Spend without a ledger: you keep the account.")
    ] = False,
    id: Annotated[
        str | None,
        typer.Option(help="The release's name in the ledger, by default its output path; again, it spends nothing."),
    ] = None,
    format: TableFormat = "parquet",
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="What separates the fields of a text file, such as ';'; by default a comma, in .tsv files a tab."
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table or view of a database that holds the records.")] = None,
    memory: Memory = None,
) -> None:
    """Measure the data once, with noise, and write every table with its margins of error.

    hdmm release people.plan people.csv --epsilon 1 --ledger budget.db -o out

    hdmm release people.plan people.duckdb --table people --epsilon 1 --ledger budget.db -o out
    """
    if (ledger is None) != no_ledger:
        raise InputError(
            "--ledger: give the ledger that is charged, or say --no-ledger and account for the budget yourself"
            + ("; not both" if no_ledger else "")
        )
    if id is not None and no_ledger:
        raise InputError(f"--id {id!r}: names a release in a ledger; give --ledger")
    budget = budget_of(epsilon, delta, rho)
    loaded = Plan.load(plan, memory=memory)
    name = None if no_ledger else id or _id(output)
    known = output.exists()
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
                delimiter=delimiter,
                memory=memory,
                on_progress=advance,
            )
    except KeyboardInterrupt:
        _tell_interrupted(budget, ledger, name, None if known else output)
        raise
    if known:
        typer.echo(f"{output}: was published before under this id; nothing was spent")
        return
    typer.echo(f"spent {budget}; wrote {len(loaded.workload.products)} tables to {output}")


def _tell_interrupted(budget: Budget, ledger: Path | None, name: str | None, output: Path | None) -> None:
    """Tell what was written and charged before an interrupt; the output is None where it was there before."""
    written = output is not None and output.exists()
    state = None
    if ledger is not None:
        with suppress(HdmmError):  # which the interrupt may have forestalled
            state = next((one.state for one in reversed(Ledger.open(ledger).entries()) if one.id == name), None)
    if written and state == "reserved":
        told = f"{output} is written and {budget} charged; the same command again marks it published at no cost"
    elif written:
        told = f"{output} is written, and {budget} spent"
    elif state == "reserved":
        told = (
            f"{budget} was charged before the interrupt and stays charged (hdmm ledger show {ledger}); a new try, with "
            "another -o or --id, is charged again"
        )
    else:
        return
    typer.echo(told, err=True)


def _table(data: list[str], name: str) -> DatabaseTable:
    if len(data) != 1:
        raise InputError(f"--table {name}: goes with one database; give one")
    return DatabaseTable(data[0], name)


def _id(output: Path) -> str:
    """The name of a release in the ledger, from where it is written."""
    text = str(output.resolve())
    return text if len(text) <= _LONGEST and text.isprintable() else hashlib.sha256(text.encode()).hexdigest()
