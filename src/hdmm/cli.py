"""The command line: arguments, progress and exit codes. No logic.

Exit codes: 0 done, 1 a fault of ours or of the machine, 2 a mistake in what was given (nothing charged or written).
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hdmm import Budget, Ledger, Plan, Progress, Release, Spec, Table, Unit, Workload, __version__, release, select
from hdmm._release.write import save_table
from hdmm.errors import HdmmError, InputError
from hdmm.memory import allowed
from hdmm.privacy.budget import decimal_text
from hdmm.texttable import bytes_text, count_text, text_table

if TYPE_CHECKING:
    from hdmm.paper.check import Cell

app = typer.Typer(
    name="hdmm",
    help="Publish counts about people without exposing any of them.\n\n"
    "1. Write a spec: the columns of your data and the tables you want (see the README).\n\n"
    "2. `hdmm plan` finds what to measure; `hdmm show` tells the error at a budget. Neither needs data.\n\n"
    "3. `hdmm release` measures the data once and writes the tables with margins of error.\n\n"
    "`hdmm demo` shows all of it on made-up people.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

ledgers = typer.Typer(help="Keep account of what was spent on a set of data.", no_args_is_help=True)
app.add_typer(ledgers, name="ledger")

_ALL_CORES, _LONG = -1, 5
"""More restarts than that are shared by all cores."""
_LONGEST = 200
"""Characters of a release's name in the ledger."""

Epsilon = Annotated[str | None, typer.Option(help="Privacy budget ε, an exact decimal such as 0.5.")]
Delta = Annotated[str | None, typer.Option(help="δ beside ε, for Gaussian noise, such as 1e-6.")]
Rho = Annotated[str | None, typer.Option(help="ρ instead of ε and δ, for Gaussian noise.")]

Level = Annotated[float, typer.Option(help="How likely an interval holds its true answer.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Make all intervals of a table hold together at that level.")
]
Estimators = Annotated[
    Literal["global", "local", "nonnegative", "pgm"],
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


@app.command()
def plan(
    spec: Annotated[Path, typer.Argument(help="A YAML file with the sections schema, workload and privacy.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The plan file; by default SPEC.plan, in place of SPEC.yaml.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan file.")] = False,
    restarts: Annotated[int, typer.Option(help="How many random starts to try: more search longer.")] = 5,
    seed: Annotated[int, typer.Option(help="Where random starts come from; the same seed gives the same plan.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which the best plan so far is kept; so does Ctrl-C.")
    ] = None,
    objective: Annotated[
        Literal["total", "max"] | None,
        typer.Option(help="Make the error of all answers small together, or the largest one; by default as in SPEC."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="An accuracy that a table is to have, such as 'by sex and age=50@95%': every answer within ±50 of the "
            "truth, with 95% confidence. May be repeated. The plan is then the one that needs the least budget."
        ),
    ] = None,
    delta: Annotated[str, typer.Option(help="δ at which targets' ε is told, for Gaussian noise.")] = "1e-6",
    jobs: Annotated[
        int | None, typer.Option(help="How many processes share the search; by default all cores if it is a long one.")
    ] = None,
) -> None:
    """Find the measurements with the least error for the questions of a spec. Needs no data.

    With targets it answers the reverse question: how much budget do these accuracies need?

    What was found so far is kept beside the plan, in PLAN.partial: after a crash the same command goes on from there.
    """
    read = Spec.load(spec)
    targets = _targets(target) if target else read.targets
    aim = objective or ("total" if targets else read.objective)
    path = output or spec.with_suffix(".plan")
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; choose another name with -o, or replace it with --force")
    partial = path.with_name(path.name + ".partial")
    unit = Unit(read.rows, read.neighbours, read.id)
    products, queries = len(read.workload.products), count_text(read.workload.query_count)
    typer.echo(f"{products:,} products, {queries} queries, {count_text(read.schema.cells)} cells")
    weighted = "RMSE" if all(product.weight == 1 for product in read.workload.products) else "weighted RMSE"
    if targets:
        weighted = "largest ratio of a margin to its target"
    elif aim == "max":
        weighted = "largest standard error"
    typer.echo(f"candidates, with their {weighted} at ε = 1" + (", δ = 1e-6" if read.noise == "gaussian" else "") + ":")
    try:
        with _search() as tell:
            found = select(
                read.workload,
                noise=read.noise,
                unit=unit,
                objective=aim,
                targets=targets,
                restarts=restarts,
                seed=seed,
                time_limit=time_limit,
                jobs=jobs if jobs is not None else _ALL_CORES if restarts > _LONG else 1,
                checkpoint=partial,
                on_progress=tell,
            )
    except InputError:
        partial.unlink(missing_ok=True)
        raise
    found.save(path, overwrite=force)
    partial.unlink(missing_ok=True)
    typer.echo(f"{found.operator} {'needs the least budget' if targets else 'has the least error'}; wrote {path}")
    usual = " --epsilon 1" + (" --delta 1e-6" if read.noise == "gaussian" else "")
    if targets:
        usual = _tell_needed(found, delta)
    typer.echo(f"next: hdmm show {path}{usual}")


@app.command()
def show(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the strategy into this new .png or .svg file.")
    ] = None,
) -> None:
    """Tell the error of every table at a budget, before any of it is spent. Needs no data.

    For a plan with targets the budget may be left out: it is then the least one that meets them.
    """
    loaded = Plan.load(plan)
    if loaded.targets and epsilon is None and rho is None:
        budget = loaded.least_budget(delta)
        typer.echo("the least budget that meets the targets:")
    else:
        budget = _budget(epsilon, delta, rho)
    typer.echo(loaded.describe(budget))
    if picture is not None:
        from hdmm.picture import draw

        draw(loaded, picture)
        typer.echo(f"\ndrew the strategy into {picture}")


@app.command(name="release")
def release_command(
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
    format: Annotated[Literal["parquet", "csv"], typer.Option(help="The format of the tables.")] = "parquet",
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="What separates the fields of a text file, such as ';'; by default a comma, in .tsv files a tab."
        ),
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table or view of a database that holds the records.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="How much memory may be used, such as 8GB; by default half of the machine's."),
    ] = None,
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
    budget = _budget(epsilon, delta, rho)
    with allowed(memory):
        loaded = Plan.load(plan)
    name = None if no_ledger else id or _id(output)
    known = output.exists()
    with _bars() as advance:
        release(
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
    if known:
        typer.echo(f"{output}: was published before under this id; nothing was spent")
        return
    typer.echo(f"spent {budget}; wrote {len(loaded.workload.products)} tables to {output}")


@app.command()
def answer(
    release: Annotated[Path, typer.Argument(help="A directory that hdmm release wrote.")],
    sql: Annotated[str, typer.Argument(help="A counting query: SELECT …, COUNT(*) FROM t WHERE … GROUP BY …")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the table to this new .csv or .parquet file.")
    ] = None,
) -> None:
    """Answer a new question from a release, with its margin: at no cost, and without the data.

    hdmm answer out "SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex"
    """
    loaded = Release.load(release)
    asked = Workload(loaded.plan.workload.schema).add_sql("answer", sql)
    tables = loaded.answer(
        asked, level=level, simultaneous=simultaneous, estimator=estimator, exact=exact, rounded=rounded
    )
    if output is None:
        for table in tables.values():
            typer.echo(text_table(table.column_names, [list(row.values()) for row in table.to_pylist()]) + "\n")
        return
    if len(tables) > 1:
        raise InputError(
            f"{output}: the query has {len(tables)} tables; ask for one of them at a time, or leave -o out"
        )
    (table,) = tables.values()
    save_table(table, output)
    typer.echo(f"wrote {output}; nothing was spent")


@app.command()
def tables(
    release: Annotated[Path, typer.Argument(help="A directory that hdmm release wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A directory that does not exist yet.")],
    level: Level = 0.95,
    simultaneous: Simultaneous = False,
    estimator: Estimators = "global",
    exact: Exact = False,
    rounded: Rounded = False,
    format: Annotated[Literal["parquet", "csv"], typer.Option(help="The format of the tables.")] = "parquet",
) -> None:
    """Write the tables of a release in another way: other intervals, never negative, or rounded. It costs nothing.

    hdmm tables out --simultaneous --level 0.9 --format csv -o wide

    hdmm tables out --estimator nonnegative --rounded -o published
    """
    loaded = Release.load(release)
    with _bars() as advance:
        loaded.save_tables(
            output,
            level=level,
            simultaneous=simultaneous,
            estimator=estimator,
            exact=exact,
            rounded=rounded,
            format=format,
            on_progress=partial(advance, "writing tables"),
        )
    typer.echo(f"wrote {len(loaded.plan.workload.products)} tables to {output}; nothing was spent")


@app.command()
def synthesize(
    release: Annotated[Path, typer.Argument(help="A directory that hdmm release wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A new .csv or .parquet file.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many records, by default the estimated number of people.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same records.")] = None,
) -> None:
    """Make up records that agree with a release as well as they can: at no cost, and without the data.

    They are biased, and say nothing that the release does not: take its tables for numbers, and these to try things.
    """
    made = Release.load(release).synthesize(rows, seed=seed)
    save_table(made, output)
    typer.echo(f"wrote {made.num_rows:,} made-up records to {output}; nothing was spent")


@ledgers.command()
def create(
    ledger: Annotated[Path, typer.Argument(help="A file that does not exist yet.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    rows: Annotated[int | None, typer.Option(help="How many rows of a person are protected, by default 1.")] = None,
    neighbours: Annotated[
        Literal["add-remove", "replace-one"] | None,
        typer.Option(help="Whether rows are added and removed (the default), or replaced."),
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="The column that tells people apart.")] = None,
    unit_of: Annotated[Path | None, typer.Option(help="Take the privacy unit from this plan instead.")] = None,
) -> None:
    """Make a ledger that grants a budget for one set of data and one privacy unit."""
    given = {"rows": rows, "neighbours": neighbours, "id": id_column}
    said = {name: value for name, value in given.items() if value is not None}
    if unit_of is not None and said:
        raise InputError("--unit-of: takes the whole unit from the plan; leave --rows, --neighbours, --id-column out")
    unit = Unit(**said) if unit_of is None else Plan.load(unit_of).unit  # type: ignore[arg-type]
    made = Ledger.create(ledger, _budget(epsilon, delta, rho), unit)
    typer.echo(f"{ledger}: grants {made.granted} for {made.unit}")


@ledgers.command(name="show")
def show_ledger(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Tell what was granted, spent and published, and what is left."""
    typer.echo(Ledger.open(ledger).describe())


@ledgers.command()
def verify(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Check every entry of a ledger and its chain of hashes."""
    found = Ledger.open(ledger).verify()
    typer.echo(f"{ledger}: {found.steps} entries in order; spent {found.spent}, left {found.left}")
    typer.echo(f"its hash, to be noted elsewhere: {found.hash}")


@ledgers.command()
def abandon(
    ledger: Annotated[Path, typer.Argument(help="A ledger.")],
    id: Annotated[str, typer.Argument(help="A release that was reserved and never published.")],
) -> None:
    """Give up a release that failed after it was charged: it stays charged, and its id may be used again."""
    Ledger.open(ledger).abandon(id)
    typer.echo(f"{id}: abandoned; what it was charged stays spent")


@app.command()
def demo(
    epsilon: Annotated[str, typer.Option(help="Privacy budget ε.")] = "1",
    keep: Annotated[Path | None, typer.Option(help="Keep the people, plan and release in this new directory.")] = None,
) -> None:
    """Make up 100,000 people, plan a mixed workload, release it, and compare with the truth."""
    from hdmm.demo import run

    with _search() as tell:
        run(Budget(epsilon), keep, typer.echo, tell, _bars)


@app.command()
def paper(
    check: Annotated[
        Literal["all", "workloads", "baselines", "multi-d", "one-d"],
        typer.Option(
            help="workloads: the census workloads from SQL, compacted, and their sizes. "
            "baselines: the columns Identity, Baseline and SVDB of all four tables, cell by cell. "
            "multi-d: the columns OPT_⊗, OPT_+, OPT_M and HDMM. one-d: the column OPT_0."
        ),
    ] = "all",
) -> None:
    """Print our numbers beside those of the paper; exit code 1 if one differs, or is worse, in its printed digits."""
    from hdmm.paper.check import check_baselines, check_strategies

    if check in ("all", "workloads"):
        _check_workloads()
    cells: dict[str, Callable[[], Iterable[Cell]]] = {
        "baselines": check_baselines,
        "multi-d": lambda: check_strategies("multi-d"),
        "one-d": lambda: check_strategies("one-d"),
    }
    fine = [_check_cells(make()) for name, make in cells.items() if check in ("all", name)]
    if not all(fine):
        raise typer.Exit(1)


def _check_workloads() -> None:
    from hdmm.paper.sizes import check_sizes

    for found in check_sizes():
        typer.echo(
            f"{found.workload}: {found.queries:,} queries on {found.cells:,} cells, from {found.statements:,} SQL "
            f"statements to {found.products} products in {found.seconds:.1f} s"
        )
        rows = [[size.form, size.parts, bytes_text(size.ours), size.paper] for size in found.sizes]
        typer.echo(text_table(["form", "parts", "size", "paper"], rows) + "\n")


def _check_cells(cells: Iterable[Cell]) -> bool:
    """Print cells as they come; whether all of them agree."""
    count = agree = off = 0
    rounding: list[float] = []
    for cell in cells:
        if not count:
            typer.echo(f"{'table':<16} {'workload':<36} {'column':<10} {'ours':>16} {'paper':>16}  note")
        mark = "" if cell.agrees else "  WORSE" if cell.at_most else "  DIFFERS"
        place = f"{cell.table:<16} {cell.workload:<36} {cell.column:<10}"
        typer.echo(f"{place} {cell.ours:>16,.2f} {cell.paper:>16,.2f}  {cell.note}{mark}")
        count, agree, off = count + 1, agree + cell.agrees, off + cell.known_to_be_off
        rounding += [] if cell.rounding is None else [cell.rounding]
    typer.echo(f"\n{agree - off} of {count} cells are as printed or better; {off} of the paper's are known to be off")
    if rounding:
        typer.echo(f"rounded to integers, as they are measured, {len(rounding)} cells lose at most {max(rounding):.1e}")
    typer.echo("")
    return agree == count


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"hdmm {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every error is one clear sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # ε and × must not be the end on a terminal that lacks them
    try:
        app(standalone_mode=True)
    except HdmmError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted; what is not there was not published", err=True)
        sys.exit(130)
    except Exception as error:  # its message might hold a value from the data: only its type and place are shown
        frames = "".join(traceback.format_tb(error.__traceback__))
        fault = f"a fault in hdmm ({type(error).__name__}); what is not there was not published"
        typer.echo(f"{frames}error: {fault}", err=True)
        sys.exit(1)


def _budget(epsilon: str | None, delta: str | None, rho: str | None) -> Budget:
    if epsilon is None and rho is None:
        raise InputError("--epsilon: give a budget, for example --epsilon 1, or with Gaussian noise --rho 0.5")
    return Budget(epsilon, delta, rho)


def _table(data: list[str], name: str) -> Table:
    if len(data) != 1:
        raise InputError(f"--table {name}: goes with one database; give one")
    return Table(data[0], name)


def _id(output: Path) -> str:
    """The name of a release in the ledger, from where it is written."""
    text = str(output.resolve())
    return text if len(text) <= _LONGEST and text.isprintable() else hashlib.sha256(text.encode()).hexdigest()


def _targets(given: list[str]) -> dict[str, str]:
    """Targets by name, from NAME=MARGIN@LEVEL; a name may hold an equals sign."""
    targets: dict[str, str] = {}
    for text in given:
        name, equals, wanted = text.rpartition("=")
        if not equals or name.strip() in targets:
            why = "is given twice" if equals else "expected NAME=MARGIN@LEVEL, for example 'by sex and age=50@95%'"
            raise InputError(f"--target {text!r}: {why}")
        targets[name.strip()] = wanted
    return targets


def _tell_needed(plan: Plan, delta: str) -> str:
    """Tell the least budget that meets the targets; return it as options."""
    from hdmm._plan.describe import target_lines

    if plan.noise == "laplace":
        budget = plan.least_budget()
        typer.echo(f"\nleast budget that meets all targets: {budget}")
        options = f" --epsilon {decimal_text(budget.epsilon or Fraction(0))}"
    else:
        budget = plan.least_budget(delta)
        typer.echo(f"\nleast budget that meets all targets: {budget}; or {plan.least_budget()}")
        options = f" --epsilon {decimal_text(budget.epsilon or Fraction(0))} --delta {delta}"
    typer.echo("\n".join(target_lines(plan, budget)))
    return options


@contextmanager
def _search() -> Iterator[Callable[[Progress], None]]:
    """A line for every candidate; on a terminal also what runs now, and the best so far."""
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        if not sys.stderr.isatty():
            status.stop()

        def tell(progress: Progress) -> None:
            if progress.rmse is None:
                best = "" if progress.best is None else f"; best so far {progress.best:,.2f}{_ratio(progress)}"
                status.update(f"{progress.operator} …{best}")
            else:
                ratio = f", {progress.rmse / progress.bound:.2f} times the lower bound" if progress.bound else ""
                typer.echo(f"  {progress.operator:<12} {progress.rmse:>12,.2f}{ratio}")

        yield tell


def _ratio(progress: Progress) -> str:
    if progress.best is None or not progress.bound:
        return ""
    return f", {progress.best / progress.bound:.2f} times the lower bound"


@contextmanager
def _bars() -> Iterator[Callable[[str, float], None]]:
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
