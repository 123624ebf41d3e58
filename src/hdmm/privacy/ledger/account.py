"""What a ledger's entries mean: what is granted, and for each release its charge and its state."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, final

from hdmm.errors import InputError
from hdmm.numbers import fraction
from hdmm.privacy.budget import Budget, decimal_text
from hdmm.privacy.ledger.chain import contents, damaged
from hdmm.privacy.ledger.composition import Amount, Charged
from hdmm.privacy.unit import Unit


@final
@dataclass(frozen=True)
class Entry:
    """A release in the ledger: its charge and its state; the time is that of its last step."""

    id: str
    state: Literal["reserved", "published", "abandoned"]
    budget: Budget
    mu_squared: Fraction | None
    time: str
    plan: str
    release: str | None
    number: int


@final
@dataclass(frozen=True)
class Account:
    """A ledger's content, read and checked."""

    granted: Budget
    unit: Unit
    entries: tuple[Entry, ...]
    steps: int
    hash: str

    def latest(self, id: str) -> Entry | None:
        """The release of this id that was charged last."""
        return next((entry for entry in reversed(self.entries) if entry.id == id), None)

    def charged(self) -> Charged:
        """What all releases add up to."""
        charged = Charged()
        for entry in self.entries:
            charged = charged.plus(entry.budget, entry.mu_squared)
        return charged

    def check_not_overspent(self, name: Path) -> None:
        """Refuse a ledger if any of its entries spent more than was left at its time."""
        charged = Charged()
        for entry in self.entries:
            charged = charged.plus(entry.budget, entry.mu_squared)
            if not charged.fits(self.granted):
                raise damaged(name, f"entry {entry.number} spends more than was left of {self.granted}")

    def spent(self) -> Amount:
        """What all releases took together."""
        return self.charged().spent(self.granted)

    def left(self) -> Amount:
        """What one more release may take."""
        return self.charged().left(self.granted)


def read_account(connection: sqlite3.Connection, name: Path) -> Account:
    """The content of a ledger; its chain and the order of its steps are checked on the way."""
    steps, last = contents(connection, name)
    try:
        granted, unit = _budget(steps[0]["granted"]), Unit(**steps[0]["unit"])
    except (InputError, ValueError, TypeError, KeyError) as error:
        raise damaged(name, f"entry 0 holds no grant that this version knows ({error})") from None
    entries: list[Entry] = []
    places: dict[str, int] = {}
    for number, step in enumerate(steps[1:], 1):
        try:
            place = places.get(step["id"])
            before = None if place is None else entries[place]
            entry = _after(before, step, number)
        except (InputError, ValueError, TypeError, KeyError):
            raise damaged(name, f"entry {number} is not one that this version writes") from None
        if entry is None:
            raise damaged(
                name, f"entry {number} does not follow from what was {before.state if before else 'recorded'}"
            )
        if step["state"] == "reserved":
            places[entry.id] = len(entries)
            entries.append(entry)
        else:
            entries[places[entry.id]] = entry
    return Account(granted, unit, tuple(entries), len(steps), last)


def budget_texts(budget: Budget) -> dict[str, str]:
    """A budget as entries hold it: exact decimals, or fractions."""
    parts = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return {name: decimal_text(value) for name, value in parts.items() if value is not None}


def _budget(texts: dict[str, str]) -> Budget:
    return Budget(**{name: _fraction(text) for name, text in texts.items()})


def _fraction(text: object) -> Fraction:
    if not isinstance(text, str):
        raise ValueError("amounts are written as texts")
    return fraction(text)


def _after(before: Entry | None, step: dict[str, Any], number: int) -> Entry | None:
    """A release after one more step; None if that step cannot follow."""
    state, id, time = step["state"], step["id"], step["time"]
    if state == "reserved":
        if before is not None and before.state != "abandoned":
            return None
        budget = _budget(step["budget"])
        mu_squared = _fraction(step["mu_squared"]) if "mu_squared" in step else None
        if (mu_squared is None) != (budget.rho is None and budget.delta is None):
            raise ValueError("Gaussian releases have μ², and no others")
        return Entry(id, "reserved", budget, mu_squared, time, step["plan"], None, number)
    if before is None or before.state != "reserved":
        return None
    if state == "published":
        return replace(before, state="published", time=time, release=step["release"])
    if state == "abandoned":
        return replace(before, state="abandoned", time=time)
    raise ValueError(f"the state {state!r} is not known")
