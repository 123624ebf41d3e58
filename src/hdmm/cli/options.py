"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdmm import Budget
from hdmm.errors import InputError
from hdmm.releases.write import Format

Epsilon = Annotated[str | None, typer.Option(help="Privacy budget ε, an exact decimal such as 0.5.")]
Delta = Annotated[str | None, typer.Option(help="δ beside ε, for Gaussian noise, such as 1e-6.")]
Rho = Annotated[str | None, typer.Option(help="ρ instead of ε and δ, for Gaussian noise.")]
Memory = Annotated[
    str | None,
    typer.Option(
        help="How much memory may be used, for plans by their release, such as 8GB; by default half of the machine's."
    ),
]
TableFormat = Annotated[Format, typer.Option("--format", help="The format of the tables.")]
Made = Annotated[Path, typer.Argument(help="A directory that hdmm release wrote.")]


def budget_of(epsilon: str | None, delta: str | None, rho: str | None) -> Budget:
    """The budget of the three options."""
    if epsilon is None and rho is None:
        raise InputError("--epsilon: give a budget, for example --epsilon 1, or with Gaussian noise --rho 0.5")
    return Budget(epsilon, delta, rho)
