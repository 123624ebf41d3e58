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


def show(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Show what was granted, spent and published, and what is left."""
    typer.echo(Ledger.open(ledger).describe())


def verify(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Check every entry of a ledger and its chain of hashes.

    Note the hash that it prints somewhere else: an older copy of the ledger, put in its place, has another one.
    """
    verified = Ledger.open(ledger).verify()
    typer.echo(f"{ledger}: {verified.steps} entries in order; spent {verified.spent}, left {verified.left}")
    typer.echo(f"its hash, to be noted elsewhere: {verified.hash}")


def abandon(
    ledger: Annotated[Path, typer.Argument(help="A ledger.")],
    id: Annotated[str, typer.Argument(help="The id of a release that was reserved and never published.")],
) -> None:
    """Give up a release that failed after it was charged. It stays charged; its id may be used again."""
    Ledger.open(ledger).abandon(id)
    typer.echo(f"{id}: abandoned; what it was charged stays spent")
