"""`hdmm plan` and `hdmm show`: what to measure, and the error to expect. Neither needs data."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget, Plan, Progress, Spec, select
from hdmm.cli.options import Delta, Epsilon, Memory, Rho, budget_of
from hdmm.cli.progress import search
from hdmm.errors import InputError
from hdmm.objective import Aim
from hdmm.plans import Goal
from hdmm.privacy.budget import decimal_text
from hdmm.text import count_text

_ALL_CORES, _LONG = -1, 5
"""More restarts than that are shared by all cores."""


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
        Aim | None,
        typer.Option(help="Make the error of all answers small together, or the largest one; by default as in SPEC."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="An accuracy that a table is to have, such as 'by sex and age=50@95%': every answer within ±50 of the "
            "truth, with 95% confidence. May be repeated. The plan is then the one that needs the least budget."
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="The ε that the release will spend, if you know it: candidates are compared at just that."),
    ] = None,
    delta: Annotated[str, typer.Option(help="δ beside ε, for Gaussian noise; also that of the targets' ε.")] = "1e-6",
    rho: Rho = None,
    jobs: Annotated[
        int | None, typer.Option(help="How many processes share the search; by default all cores if it is a long one.")
    ] = None,
    memory: Memory = None,
) -> None:
    """Find the measurements with the least error for the questions of a spec. Needs no data.

    With targets it answers the reverse question: how much budget do these accuracies need?

    What was found so far is kept beside the plan, in PLAN.partial: after a crash the same command goes on from there.

    At an interrupt (Ctrl-C, SIGTERM) the best plan so far is written, with exit code 130 or 143; with --force the
    search goes on.
    """
    read = Spec.load(spec)
    targets = _targets(target) if target else read.targets
    budget = None
    if epsilon is not None or rho is not None:
        budget = Budget(epsilon, delta if read.noise == "gaussian" and rho is None else None, rho)
    aim = objective or ("total" if targets else read.objective)
    path = output or spec.with_suffix(".plan")
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; choose another name with -o, or replace it with --force")
    partial = path.with_name(path.name + ".partial")
    begun = partial.exists()
    products, queries = len(read.workload.products), count_text(read.workload.query_count)
    typer.echo(f"{products:,} products, {queries} queries, {count_text(read.schema.cells)} cells")
    weighted = "RMSE" if all(product.weight == 1 for product in read.workload.products) else "weighted RMSE"
    if targets:
        weighted = "largest ratio of a margin to its target"
    elif aim == "max":
        weighted = "largest standard error"
    typer.echo(f"candidates, with their {weighted} at {Goal(budget=budget).budgets(read.noise)[0]}:")
    cut = False

    def told(progress: Progress) -> None:
        nonlocal cut
        cut = cut or progress.interrupted
        tell(progress)

    try:
        with search() as tell:
            found = select(
                read.workload,
                noise=read.noise,
                unit=read.unit,
                objective=aim,
                targets=targets,
                budget=budget,
                restarts=restarts,
                seed=seed,
                time_limit=time_limit,
                jobs=jobs if jobs is not None else _ALL_CORES if restarts > _LONG else 1,
                checkpoint=partial,
                memory=memory,
                on_progress=told,
            )
    except InputError:
        if not begun:  # what an earlier search has found is not lost to a mistake in this command
            partial.unlink(missing_ok=True)
        raise
    found.save(path, overwrite=force)
    if cut:
        typer.echo(f"wrote the best plan so far, by {found.operator}, to {path}; --force searches on")
        raise typer.Exit(130)
    partial.unlink(missing_ok=True)
    typer.echo(f"{found.operator} {'needs the least budget' if targets else 'has the least error'}; wrote {path}")
    usual = " --epsilon 1" + (" --delta 1e-6" if read.noise == "gaussian" else "")
    if targets:
        usual = _tell_needed(found, delta)
    typer.echo(f"next: hdmm show {path}{usual if budget is None else ''}")


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
    """Tell the error of every table at a budget, before any of it is spent. Needs no data.

    For a plan with targets the budget may be left out: it is then the least one that meets them. So it may for a plan
    that was made for a budget.
    """
    loaded = Plan.load(plan, memory=memory)
    if loaded.targets and epsilon is None and rho is None:
        budget = loaded.least_budget(delta)
        typer.echo("the least budget that meets the targets:")
    elif loaded.budget is not None and epsilon is None and rho is None:
        budget = loaded.budget
    else:
        budget = budget_of(epsilon, delta, rho)
    typer.echo(loaded.describe(budget))
    if picture is not None:
        from hdmm.picture import draw

        draw(loaded, picture)
        typer.echo(f"\ndrew the strategy into {picture}")


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
    from hdmm.plans.describe import target_lines

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
