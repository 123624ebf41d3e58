"""`hdmm ledger`: the account of the privacy budget that was spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import Ledger, Plan, Unit
from hdmm.cli.options import Delta, Epsilon, Rho, budget_of
from hdmm.errors import InputError
from hdmm.privacy.unit import Neighbours


def create(
    ledger: Annotated[Path, typer.Argument(help="A file that does not exist yet.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    rows: Annotated[int | None, typer.Option(help="Rows of a person that are protected (default: 1).")] = None,
    neighbours: Annotated[
        Neighbours | None,
        typer.Option(help="Whether a person's rows are added or removed (add-remove, the default) or replaced."),
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="The column that identifies people.")] = None,
    unit_of: Annotated[Path | None, typer.Option(help="Take the privacy unit from this plan instead.")] = None,
) -> None:
    """Create a ledger, which grants a budget for one set of data and one privacy unit.

    Example: hdmm ledger create budget.db --epsilon 1

    Example: hdmm ledger create budget.db --epsilon 1 --unit-of people.plan
    """
    options = {"rows": rows, "neighbours": neighbours, "id": id_column}
    parts = {name: value for name, value in options.items() if value is not None}
    if unit_of is not None and parts:
        raise InputError("--unit-of: takes the whole unit from the plan; leave --rows, --neighbours, --id-column out")
    unit = Unit(**parts) if unit_of is None else Plan.load(unit_of).unit  # type: ignore[arg-type]
    created = Ledger.create(ledger, budget_of(epsilon, delta, rho), unit)
    typer.echo(f"{ledger}: grants {created.granted} for {created.unit}")


def grant(
    ledger: Annotated[Path, typer.Argument(help="A ledger.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    note: Annotated[str | None, typer.Option(help="Who decided so, or why; kept in the ledger.")] = None,
) -> None:
    """Raise what a ledger grants, if whoever is responsible for the data decides so. The entry stays for good.

    Decide without looking at the releases: a grant that depends on them protects less than it states.

    Example: hdmm ledger grant budget.db --epsilon 1 --note "the board, 3 May"
    """
    added = Ledger.open(ledger).grant(budget_of(epsilon, delta, rho), note)
    typer.echo(f"{ledger}: grants {added.total} now, {added.budget} more than before")


def show(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Show what was granted, spent and published, and what is left."""
    typer.echo(Ledger.open(ledger).describe())


def verify(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Check every entry of a ledger and its chain of hashes.

    Note the hash that it prints somewhere else: an older copy of the ledger, put in its place, has another one.
    """
    verified = Ledger.open(ledger).verify()
    entries = "1 entry" if verified.steps == 1 else f"{verified.steps} entries"
    typer.echo(f"{ledger}: {entries} in order; spent {verified.spent}, left {verified.left}")
    typer.echo(f"its hash, to be noted elsewhere: {verified.hash}")


def abandon(
    ledger: Annotated[Path, typer.Argument(help="A ledger.")],
    id: Annotated[str, typer.Argument(help="The id of a release that was reserved and never published.")],
) -> None:
    """Give up a release that failed after it was charged. It stays charged; its id may be used again."""
    Ledger.open(ledger).abandon(id)
    typer.echo(f"{id}: abandoned; what it was charged stays spent")
