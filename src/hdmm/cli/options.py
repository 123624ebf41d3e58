"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget
from hdmm.errors import InputError
from hdmm.releases.present import Digits
from hdmm.releases.write import Format

Epsilon = Annotated[str | None, typer.Option(help="Privacy budget ε, an exact decimal such as 0.5.")]
Delta = Annotated[str | None, typer.Option(help="The δ that goes with ε, for Gaussian noise, such as 1e-6.")]
Rho = Annotated[str | None, typer.Option(help="Privacy budget ρ (zCDP) instead of ε and δ, for Gaussian noise.")]
Memory = Annotated[str | None, typer.Option(help="Memory limit, such as 8GB (default: half of RAM).")]
TableFormat = Annotated[Format, typer.Option("--format", help="The format of the tables.")]
TableDigits = Annotated[
    Digits,
    typer.Option(
        "--digits",
        help="meaningful: CSV files and the terminal show the digits that the standard error leaves a meaning. full: "
        "all of them, as Parquet files always have.",
    ),
]
ReleaseDirectory = Annotated[Path, typer.Argument(help="A directory that `hdmm release` wrote.")]


def budget_of(epsilon: str | None, delta: str | None, rho: str | None) -> Budget:
    """The budget that the three options state."""
    if epsilon is None and rho is None:
        raise InputError("--epsilon: give a budget, for example --epsilon 1, or with Gaussian noise --rho 0.5")
    return Budget(epsilon, delta, rho)
