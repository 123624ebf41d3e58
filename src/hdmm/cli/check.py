"""`hdmm check`: a look at a spec, and for the custodian alone at the records, before anything is planned or charged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import DatabaseTable, check
from hdmm.cli.progress import bars
from hdmm.errors import InputError
from hdmm.progress import Progress


def check_spec(
    spec: Annotated[Path, typer.Argument(help="A YAML file with the sections schema, workload and privacy.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(help="The records, as for `hdmm release`. Without them only the spec is checked."),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What separates the fields of a text file: a character, or comma, tab, ….")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="The encoding of a text file, such as latin-1.")] = None,
    table: Annotated[str | None, typer.Option(help="The table or view of a database that holds the records.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write the private report to this new file.")
    ] = None,
) -> None:
    """Check a spec; with data, report privately which records would be dropped, why, and what to write instead.

    The report on data holds exact counts and values. It is for whoever keeps the data, and must not be published.

    Example: hdmm check people.yaml

    Example: hdmm check people.yaml people.csv
    """
    if data is None and (delimiter or encoding or table):
        raise InputError("--delimiter, --encoding and --table go with data; give the records after the spec")
    if output is not None and output.exists():
        raise InputError(f"{output}: exists already; choose another name with -o")
    source = None
    if data is not None:
        if table is not None and len(data) != 1:
            raise InputError(f"--table {table}: goes with one database; give one")
        source = DatabaseTable(data[0], table) if table is not None else data if len(data) > 1 else data[0]
    with bars() as advance:
        report = check(
            spec,
            source,
            delimiter=delimiter,
            encoding=encoding,
            on_progress=lambda done: advance(Progress("looking at the records", done=done)),
        )
    typer.echo(str(report))
    if output is not None:
        output.touch(mode=0o600, exist_ok=False)
        output.write_text(f"{report}\n", encoding="utf-8")
    if source is None:
        typer.echo(f"next: hdmm plan {spec}")
