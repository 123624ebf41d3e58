"""What is made of a release at no cost: `hdmm answer`, `hdmm tables` and `hdmm synthesize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import Release, Workload
from hdmm.cli.options import Made, Memory, TableFormat
from hdmm.cli.progress import bars
from hdmm.errors import InputError
from hdmm.memory import memory_allowed
from hdmm.releases.options import Word
from hdmm.releases.write import check_table_path, save_table
from hdmm.text import text_table

Level = Annotated[float, typer.Option(help="How likely an interval holds its true answer.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Make all intervals of a table hold together at that level.")
]
Estimators = Annotated[
    Word,
    typer.Option(
        help="global: least squares over all measurements, unbiased, all tables add up. local: each table from one "
        "block. nonnegative, pgm (Private-PGM): never negative, so biased, without intervals."
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Where errors are told as upper bounds, work them out: one solve for each answer."),
]
Rounded = Annotated[bool, typer.Option("--rounded", help="Whole numbers, rounded together with their sums.")]


def answer(
    release: Made,
    sql: Annotated[str, typer.Argument(help="A counting query: SELECT …, COUNT(*) FROM t WHERE … GROUP BY …")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the table to this new .csv or .parquet file.")
    ] = None,
    memory: Memory = None,
) -> None:
    """Answer a new question from a release, with its margin: at no cost, and without the data.

    hdmm answer out "SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex"
    """
    if output is not None:
        check_table_path(output)
    with memory_allowed(memory):
        loaded = Release.load(release)
        asked = Workload(loaded.plan.workload.schema).add_sql("answer", sql)
        if output is not None and len(asked.products) > 1:
            raise InputError(
                f"{output}: the query has {len(asked.products)} tables; ask for one of them at a time, or leave -o out"
            )
        tables = loaded.answer(
            asked, level=level, simultaneous=simultaneous, estimator=estimator, exact=exact, rounded=rounded
        )
    if output is None:
        for table in tables.values():
            typer.echo(text_table(table.column_names, [list(row.values()) for row in table.to_pylist()]) + "\n")
        return
    (table,) = tables.values()
    save_table(table, output)
    typer.echo(f"wrote {output}; nothing was spent")


def tables(
    release: Made,
    output: Annotated[Path, typer.Option("-o", "--output", help="A directory that does not exist yet.")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    format: TableFormat = "parquet",
    memory: Memory = None,
) -> None:
    """Write the tables of a release in another way: other intervals, never negative, or rounded. It costs nothing.

    hdmm tables out --simultaneous --level 0.9 --format csv -o wide

    hdmm tables out --estimator nonnegative --rounded -o published
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
            on_progress=advance,
        )
    typer.echo(f"wrote {len(loaded.plan.workload.products)} tables to {output}; nothing was spent")


def synthesize(
    release: Made,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new .csv or .parquet file.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many records, by default as many as the release estimates.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same records.")] = None,
    memory: Memory = None,
) -> None:
    """Make up records that agree with a release as well as they can: at no cost, and without the data.

    They are biased, and say nothing that the release does not: take its tables for numbers, and these to try things.
    Values are the labels of tables: bins are intervals, and an empty field is "missing".
    """
    check_table_path(output)
    with memory_allowed(memory):
        made = Release.load(release).synthesize(rows, seed=seed)
    save_table(made, output)
    typer.echo(f"wrote {made.num_rows:,} made-up records to {output}; nothing was spent")
