"""`hdmm init`: a commented spec, by questions and answers or from public data."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from hdmm import DatabaseTable
from hdmm.cli.progress import bars
from hdmm.data import CsvFile, Source, open_source
from hdmm.data.look import Column, header_delimiter
from hdmm.errors import InputError
from hdmm.progress import stage
from hdmm.proposal import Interview, Request, columns_of, draft_by_name, draft_by_values, propose_by_name, render
from hdmm.proposal.draft import Draft

_WHY_PUBLIC = (
    "--public says that these records may be looked at: they are public, a public extract, or last year's published "
    "file. Without it only the names and types of columns are read, because a domain that was chosen by looking at "
    "private records is not covered by the guarantee"
)


def init(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="CSV or Parquet files, or with --table a database. Without --public only the names and types of the "
            "columns are read, never a record."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The spec to write.")] = Path("spec.yaml"),
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="The records are public: look at all of them, and propose values, bins, dates and levels. Never for "
            "private data: what a domain reveals is not covered by the guarantee.",
        ),
    ] = False,
    codes: Annotated[
        list[str] | None,
        typer.Option(
            help="A code list, as FILE or COLUMN=FILE: CSV with the columns code, label and parent, a Frictionless "
            "Table Schema or data package (.json), or CSVW metadata (.json). May be repeated."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "--defaults", help="Take the default of every question, and ask none.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing spec.")] = False,
    table: Annotated[str | None, typer.Option(help="The table or view of a database that holds the records.")] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="What separates the fields of a text file, such as ';' or tab (default: found in the header)."
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="The encoding of a text file, such as latin-1 (default: UTF-8).")
    ] = None,
) -> None:
    """Write a commented spec to start from.

    Without --public it asks about each column, with defaults from its name and type; `?` explains a question. No record
    is read.

    With --public it looks at all records, and proposes a domain for every column that has a sensible one.

    Example: hdmm init people.csv -o people.yaml

    Example: hdmm init --public last-year.csv --codes county.csv -o people.yaml
    """
    if output.exists() and not force:
        raise InputError(f"{output}: exists already; choose another name with -o, or replace it with --force")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output}: its parent directory does not exist; create it first")
    source, found = _source(data or [], table, delimiter, encoding)
    name = None if not data else ", ".join(_base(path) for path in data) + (f" ({table})" if table else "")
    request = Request(source, name, public, tuple(codes or ()))
    draft, warnings = _drafted(request, yes)
    if not draft.attributes:
        raise InputError(
            "no column has a domain yet, and a spec needs one; answer the questions on a terminal, give a code list "
            f"(--codes), or give --public if it applies. {_WHY_PUBLIC}"
        )
    output.write_text(render(draft), encoding="utf-8")
    for warning in warnings:
        typer.echo(f"note: {warning}", err=True)
    options = _options(found, encoding, table)
    used, left_out = len(draft.attributes), len(draft.left_out)
    typer.echo(
        f"wrote {output}: {used} attribute{'s' * (used != 1)}, {left_out} column{'s' * (left_out != 1)} left out"
    )
    typer.echo("read it and edit it, then:")
    typer.echo(
        f"  hdmm check {shlex.quote(str(output))}{''.join(f' {shlex.quote(path)}' for path in data or [])}{options}"
    )
    typer.echo(f"  hdmm plan {shlex.quote(str(output))}")


def _drafted(request: Request, yes: bool) -> tuple[Draft, list[str]]:
    if request.public:
        with bars() as advance:
            draft, warnings = draft_by_values(request, stage(advance, "looking at records"))
        return draft, list(warnings)
    if not yes and not sys.stdin.isatty():
        raise InputError(
            "init asks questions, and there is no terminal to answer them; give --yes to take every default, or "
            f"--public if it applies. {_WHY_PUBLIC}"
        )
    columns = ([] if yes else _asked_columns()) if request.source is None and not request.codes else columns_of(request)
    if not columns:
        raise InputError("there are no columns; give a file whose header names them, or --codes with a table schema")
    if yes:
        return draft_by_name(columns, request), []
    typer.echo(f"{_WHY_PUBLIC}.\nEnter takes the default in brackets, ? explains a question, Ctrl-C stops.")
    return Interview(_ask, typer.echo).draft(*propose_by_name(columns, request)), []


def _asked_columns() -> list[Column]:
    text = _ask("Names of the columns, separated by commas", "")
    return [Column(name.strip()) for name in text.split(",") if name.strip()]


def _ask(question: str, default: str) -> str:
    """Ask on the terminal."""
    try:
        return input(f"{question}{f' [{default}]' if default else ''}: ") or default
    except EOFError:
        typer.echo("")
        raise InputError("the questions were not answered to the end; nothing was written") from None


def _source(
    data: list[str], table: str | None, delimiter: str | None, encoding: str | None
) -> tuple[Source | None, str | None]:
    """The source that the arguments name, and its delimiter if it must be stated."""
    if not data:
        if table is not None:
            raise InputError(f"--table {table}: goes with a database; give one")
        return None, None
    if table is not None:
        if len(data) != 1:
            raise InputError(f"--table {table}: goes with one database; give one")
        return DatabaseTable(data[0], table), None
    source = open_source(data, delimiter, encoding)
    if delimiter is None and isinstance(source, CsvFile):
        delimiter = header_delimiter(source)
        if delimiter is not None:
            source = open_source(data, delimiter, encoding)
    return source, delimiter


def _options(delimiter: str | None, encoding: str | None, table: str | None) -> str:
    """The options that later commands need to read the same data."""
    shown = {"\t": "tab"}.get(delimiter or "", delimiter)
    options = {"--delimiter": shown, "--encoding": encoding, "--table": table}
    return "".join(f" {key} {shlex.quote(value)}" for key, value in options.items() if value is not None)


def _base(path: str) -> str:
    """The name of a file, or a server's address without what may be a password."""
    return f"{path.partition('://')[0]}://…" if "://" in path else os.path.basename(path)
