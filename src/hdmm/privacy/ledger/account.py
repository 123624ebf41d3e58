"""What a ledger's entries mean: what is granted, and for each release its charge and its state."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, final

from hdmm.errors import BudgetError, InputError
from hdmm.numbers import fraction
from hdmm.privacy.budget import Budget, decimal_text
from hdmm.privacy.ledger.chain import GRANTS_FORMAT, contents, damaged
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
class Grant:
    """A grant in the ledger: the first one, or one that raised it. The note says who decided so, or why."""

    budget: Budget
    total: Budget
    """What is granted from here on: this grant and all before it."""
    time: str
    note: str | None
    number: int


@final
@dataclass(frozen=True)
class Account:
    """A ledger's content, read and checked."""

    grants: tuple[Grant, ...]
    unit: Unit
    entries: tuple[Entry, ...]
    steps: int
    hash: str

    @property
    def granted(self) -> Budget:
        """All grants together."""
        return self.grants[-1].total

    def granted_before(self, number: int) -> Budget:
        """All grants together that stand before this entry."""
        return next(grant.total for grant in reversed(self.grants) if grant.number < number)

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
            granted = self.granted_before(entry.number)
            if not charged.fits(granted):
                raise damaged(name, f"entry {entry.number} spends more than was left of {granted}")

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
        first = _budget(steps[0]["granted"])
        grants = [Grant(first, first, steps[0]["time"], None, 0)]
        unit = Unit(**steps[0]["unit"])
    except (InputError, ValueError, TypeError, KeyError) as error:
        raise damaged(name, f"entry 0 holds no grant that this version knows ({error})") from None
    entries: list[Entry] = []
    places: dict[str, int] = {}
    for number, step in enumerate(steps[1:], 1):
        try:
            if step["state"] == "granted":
                grants.append(_raised(grants[-1].total, step, number))
                continue
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
    return Account(tuple(grants), unit, tuple(entries), len(steps), last)


def raised(granted: Budget, budget: Budget) -> Budget:
    """A grant with one more; refuse one of another kind, and a total that no budget may have."""
    if (budget.rho is None) != (granted.rho is None) or (granted.delta is None and budget.delta is not None):
        raise BudgetError(f"{granted} cannot be raised by {budget}, which is of another kind")

    def added(name: str) -> Fraction | None:
        before, more = getattr(granted, name), getattr(budget, name)
        return None if before is None else before + (more or 0)

    return Budget(added("epsilon"), added("delta"), added("rho"))


def _raised(granted: Budget, step: dict[str, Any], number: int) -> Grant:
    """The grant of a step that raises what is granted."""
    if step["format"] != GRANTS_FORMAT:
        raise ValueError("the step has a format of its own")
    note = step.get("note")
    if note is not None and not isinstance(note, str):
        raise ValueError("a note is text")
    budget = _budget(step["budget"])
    return Grant(budget, raised(granted, budget), step["time"], note, number)


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
