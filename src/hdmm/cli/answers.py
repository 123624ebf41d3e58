"""What a release gives at no further cost: `hdmm answer`, `hdmm tables` and `hdmm synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import Release, Workload
from hdmm.cli.options import Memory, ReleaseDirectory, TableDigits, TableFormat
from hdmm.cli.progress import bars
from hdmm.errors import InputError
from hdmm.memory import memory_allowed
from hdmm.plans.footprint import listed
from hdmm.releases.options import Word
from hdmm.releases.present import presented, terminal_rows
from hdmm.releases.write import check_table_path, save_table
from hdmm.text import text_table

Level = Annotated[float, typer.Option(help="The probability that an interval holds the true answer.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Make all intervals of a table hold at once with that probability.")
]
Estimators = Annotated[
    Word,
    typer.Option(
        help="How answers are computed. global: least squares over all measurements; unbiased, and all tables add up. "
        "local: each table from one measured block; unbiased. nonnegative, pgm (Private-PGM): never negative, and so "
        "biased and without intervals."
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Compute errors that are otherwise only upper bounds: slow, one solve per answer."),
]
Rounded = Annotated[bool, typer.Option("--rounded", help="Round answers to whole numbers that still add up.")]


def answer(
    release: ReleaseDirectory,
    sql: Annotated[str, typer.Argument(help="A counting query: SELECT …, COUNT(*) FROM t WHERE … GROUP BY …")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    digits: TableDigits = "meaningful",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the table to this new .csv or .parquet file.")
    ] = None,
    memory: Memory = None,
) -> None:
    """Answer a new question from a release, with margins of error: at no cost, and without the data.

    A question that the release's measurements do not determine is refused with the reason.

    Example: hdmm answer out "SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex"
    """
    if output is not None:
        check_table_path(output)
    with memory_allowed(memory):
        loaded = Release.load(release)
        workload = Workload(loaded.plan.workload.schema).add_sql("answer", sql)
        if output is not None and len(workload.products) > 1:
            raise InputError(
                f"{output}: the query has {len(workload.products)} tables; ask for one at a time, or leave -o out"
            )
        tables = loaded.answer(
            workload, level=level, simultaneous=simultaneous, estimator=estimator, exact=exact, rounded=rounded
        )
    if output is None:
        for table in tables.values():
            typer.echo(text_table(table.column_names, terminal_rows(table, digits)) + "\n")
        return
    (table,) = tables.values()
    save_table(presented(table, digits) if output.suffix == ".csv" else table, output)
    typer.echo(f"wrote {output}; nothing was spent")


def tables(
    release: ReleaseDirectory,
    output: Annotated[Path, typer.Option("-o", "--output", help="A directory that does not exist yet.")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    format: TableFormat = "parquet",
    digits: TableDigits = "meaningful",
    memory: Memory = None,
) -> None:
    """Write a release's tables again with other intervals, never negative, or rounded. It costs nothing.

    Example: hdmm tables out --simultaneous --level 0.9 --format csv -o wide

    Example: hdmm tables out --estimator nonnegative --rounded -o published
    """
    with memory_allowed(memory), bars() as advance:
        loaded = Release.load(release)
        loaded.save_tables(
            output,
            level=level,
            simultaneous=simultaneous,
            estimator=estimator,
            exact=exact,
            rounded=rounded,
            format=format,
            digits=digits,
            on_progress=advance,
        )
    typer.echo(f"wrote {len(listed(loaded.plan.workload.encoded))} tables to {output}; nothing was spent")


def synthesize(
    release: ReleaseDirectory,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new .csv or .parquet file.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="Number of records (default: as many as the release estimates).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same records.")] = None,
    memory: Memory = None,
) -> None:
    """Make up records that agree with a release as closely as possible: at no cost, and without the data.

    They are biased, and reveal nothing that the release does not. Use them to try out programs; take numbers from the
    release's tables. Values are the labels of the tables: bins are intervals, and an empty field is "missing".

    Example: hdmm synthesize out -o made-up.csv
    """
    check_table_path(output)
    with memory_allowed(memory):
        records = Release.load(release).synthesize(rows, seed=seed)
    save_table(records, output)
    typer.echo(f"wrote {records.num_rows:,} made-up records to {output}; nothing was spent")
