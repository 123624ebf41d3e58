"""`hdmm plan` and `hdmm show`: what to measure, and the error to expect. Neither needs data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget, Plan, Spec, select
from hdmm.cli.options import Delta, Epsilon, Memory, Rho, budget_of
from hdmm.cli.progress import search
from hdmm.errors import InputError
from hdmm.objective import Aim
from hdmm.plans import Goal
from hdmm.plans.notes import notes
from hdmm.privacy.budget import decimal_text
from hdmm.privacy.calibrate import NoiseKind
from hdmm.text import count_text

_ALL_CORES = -1
_LONG_SEARCH = 5
"""A search with more restarts than this uses all cores by default."""


def plan(
    spec: Annotated[Path, typer.Argument(help="A YAML file with the sections schema, workload and privacy.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The plan file (default: SPEC.plan for SPEC.yaml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan file.")] = False,
    restarts: Annotated[
        int, typer.Option(help="Random starts of each search: more take longer, and may find a better plan.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the random starts; the same seed gives the same plan.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Stop after this many seconds and keep the best plan so far, as Ctrl-C does.")
    ] = None,
    objective: Annotated[
        Aim | None,
        typer.Option(
            help="What to make small. total: the squared error of all answers together. max: the largest standard "
            "error of any answer. (default: as in SPEC)"
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="The accuracy that a table must have, such as 'by sex and age=50@95%': every answer within ±50 of the "
            "truth, with 95% confidence. May be repeated. The plan is then the one that needs the least budget."
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="The ε that the release will spend, if you know it: candidates are then compared at that."),
    ] = None,
    delta: Annotated[str, typer.Option(help="The δ that goes with ε or with targets, for Gaussian noise.")] = "1e-6",
    rho: Rho = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes that share the search (default: all cores if there are more than 5 restarts)."),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory limit of the later release, such as 8GB (default: half of RAM here).")
    ] = None,
) -> None:
    """Find the measurements that answer a spec's questions with the least error. Needs no data.

    With targets it answers the reverse question: how much budget do these accuracies need?

    The state of the search is kept beside the plan, in PLAN.partial: after a crash, the same command resumes it.

    Ctrl-C and SIGTERM stop the search and write the best plan so far (exit codes 130 and 143). The same command with
    --force resumes it.

    Example: hdmm plan people.yaml -o people.plan
    """
    loaded = Spec.load(spec)
    targets = _targets(target) if target else loaded.targets
    aim = objective or ("total" if targets else loaded.objective)
    budget = _budget(loaded.noise, epsilon, delta, rho)
    path = output or spec.with_suffix(".plan")
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; choose another name with -o, or replace it with --force")
    if not path.absolute().parent.is_dir():
        raise InputError(f"-o {path}: its parent directory does not exist; create it first")
    _print_heading(loaded, aim, targets, budget)
    with _checkpoint(path) as partial, search() as report:
        best = select(
            loaded.workload,
            noise=loaded.noise,
            unit=loaded.unit,
            objective=aim,
            targets=targets,
            budget=budget,
            restarts=restarts,
            seed=seed,
            time_limit=time_limit,
            jobs=jobs if jobs is not None else _ALL_CORES if restarts > _LONG_SEARCH else 1,
            checkpoint=partial,
            memory=memory,
            on_progress=report,
        )
    best.save(path, overwrite=force)
    if report.interrupted:
        typer.echo(f"wrote the best plan so far, by {best.operator}, to {path}; resume the search with --force")
        raise typer.Exit(130)
    partial.unlink(missing_ok=True)
    typer.echo(f"{best.operator} {'needs the least budget' if targets else 'has the least error'}; wrote {path}")
    for note in notes(best):
        typer.echo(f"note: {note}")
    usual = "--epsilon 1" if best.noise == "laplace" else "--epsilon 1 --delta 1e-6"
    options = _print_least_budget(best, delta) if targets else f" {usual}"
    typer.echo(f"next: hdmm show {path}{options if budget is None else ''}")


def show(
    plan: Annotated[Path, typer.Argument(help="A plan file.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the strategy into this new .png or .svg file.")
    ] = None,
    memory: Memory = None,
) -> None:
    """Show the error of every table at a budget, before any of it is spent. Needs no data.

    You may leave the budget out if the plan has targets (then it is the least that meets them), or if the plan was made
    for a budget.

    Example: hdmm show people.plan --epsilon 1
    """
    loaded = Plan.load(plan, memory=memory)
    if epsilon is not None or rho is not None:
        budget = budget_of(epsilon, delta, rho)
    elif loaded.targets:
        budget = loaded.least_budget(delta)
        typer.echo("the least budget that meets the targets:")
    else:
        budget = loaded.budget or budget_of(epsilon, delta, rho)
    typer.echo(loaded.describe(budget))
    if picture is not None:
        from hdmm.picture import draw

        draw(loaded, picture)
        typer.echo(f"\ndrew the strategy into {picture}")


def _targets(texts: list[str]) -> dict[str, str]:
    """Targets by name, from NAME=MARGIN@LEVEL; a name may hold an equals sign."""
    targets: dict[str, str] = {}
    for text in texts:
        name, equals, margin = text.rpartition("=")
        if not equals or name.strip() in targets:
            why = "is given twice" if equals else "expected NAME=MARGIN@LEVEL, for example 'by sex and age=50@95%'"
            raise InputError(f"--target {text!r}: {why}")
        targets[name.strip()] = margin
    return targets


def _budget(noise: NoiseKind, epsilon: str | None, delta: str, rho: str | None) -> Budget | None:
    """The budget to plan for, if one was given."""
    if epsilon is None and rho is None:
        return None
    return Budget(epsilon, delta if noise == "gaussian" and rho is None else None, rho)


@contextmanager
def _checkpoint(plan: Path) -> Iterator[Path]:
    """The file that keeps a search's state; a mistake in the command leaves no new one, and loses no earlier one."""
    partial = plan.with_name(plan.name + ".partial")
    resumed = partial.exists()
    try:
        yield partial
    except InputError:
        if not resumed:
            partial.unlink(missing_ok=True)
        raise


def _print_heading(spec: Spec, aim: Aim, targets: Mapping[str, object], budget: Budget | None) -> None:
    """Print the size of the problem, and the error by which candidates are compared."""
    workload = spec.workload
    queries, cells = count_text(workload.query_count), count_text(spec.schema.cells)
    typer.echo(f"{len(workload.products):,} products, {queries} queries, {cells} cells")
    if targets:
        error = "largest ratio of a margin to its target"
    elif aim == "max":
        error = "largest standard error"
    else:
        error = "RMSE" if all(product.weight == 1 for product in workload.products) else "weighted RMSE"
    typer.echo(f"candidates, with their {error} at {Goal(budget=budget).budgets(spec.noise)[0]}:")


def _print_least_budget(plan: Plan, delta: str) -> str:
    """Print the least budget that meets the targets; return it as options."""
    from hdmm.plans.describe import target_lines

    gaussian = plan.noise == "gaussian"
    budget = plan.least_budget(delta if gaussian else None)
    typer.echo(f"\nleast budget that meets all targets: {budget}" + (f"; or {plan.least_budget()}" if gaussian else ""))
    typer.echo("\n".join(target_lines(plan, budget)))
    return f" --epsilon {decimal_text(budget.epsilon or Fraction(0))}" + (f" --delta {delta}" if gaussian else "")
