"""`hdmm ledger`: the account of what was spent."""

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
    rows: Annotated[int | None, typer.Option(help="How many rows of a person are protected, by default 1.")] = None,
    neighbours: Annotated[
        Neighbours | None,
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
    made = Ledger.create(ledger, budget_of(epsilon, delta, rho), unit)
    typer.echo(f"{ledger}: grants {made.granted} for {made.unit}")


def show(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Tell what was granted, spent and published, and what is left."""
    typer.echo(Ledger.open(ledger).describe())


def verify(ledger: Annotated[Path, typer.Argument(help="A ledger.")]) -> None:
    """Check every entry of a ledger and its chain of hashes."""
    found = Ledger.open(ledger).verify()
    typer.echo(f"{ledger}: {found.steps} entries in order; spent {found.spent}, left {found.left}")
    typer.echo(f"its hash, to be noted elsewhere: {found.hash}")


def abandon(
    ledger: Annotated[Path, typer.Argument(help="A ledger.")],
    id: Annotated[str, typer.Argument(help="A release that was reserved and never published.")],
) -> None:
    """Give up a release that failed after it was charged: it stays charged, and its id may be used again."""
    Ledger.open(ledger).abandon(id)
    typer.echo(f"{id}: abandoned; what it was charged stays spent")
