"""`Ledger`: what can be done with a ledger's file; each step is checked, and then durable, or undone."""

from __future__ import annotations

import os
import re
import sqlite3
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from hdmm.errors import BudgetError, FaultError, InputError, nearest
from hdmm.files import scratch
from hdmm.files.atomic import already_there, check_new, sync_directory
from hdmm.numbers import shown
from hdmm.privacy.budget import Budget, check_budget, decimal_text
from hdmm.privacy.ledger import chain
from hdmm.privacy.ledger.account import Account, Entry, Grant, budget_texts, raised, read_account
from hdmm.privacy.ledger.composition import Amount, mu_squared_of
from hdmm.privacy.ledger.leakage import USUAL_DELTA, Leak, leaks
from hdmm.privacy.unit import Unit
from hdmm.syntax import example, given
from hdmm.text import text_table

_MAX_ID = 200  # characters
_MAX_NOTE = 500  # characters
_DIGEST = re.compile(r"[0-9a-f]{64}")


@final
@dataclass(frozen=True)
class Verified:
    """What `verify` found: the number of steps after the grant, the hash of the last one, what is spent and left."""

    steps: int
    hash: str
    spent: Amount
    left: Amount


@final
class AlreadyPublished(BudgetError):
    """A release of this id is published; nothing was charged. ``entry`` says with which budget and plan."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(
            f"{given('id', repr(entry.id))}: was published on {entry.time} with {entry.budget}; nothing was charged"
        )
        self.entry = entry


@final
@dataclass(frozen=True)
class Ledger:
    """A ledger file. It is opened for each step alone, so that any thread or process may use the same ledger."""

    path: Path
    unit: Unit

    @property
    def granted(self) -> Budget:
        """What all releases together may spend: the first grant, and what was added to it."""
        return self._account().granted

    @classmethod
    def create(cls, path: str | Path, total: Budget, unit: Unit) -> Ledger:
        """Write a new ledger that grants this budget for this privacy unit.

        Arguments:
            path: A file that does not exist yet.
            total: What all releases together may spend.
            unit: What every release must protect.
        """
        path = Path(path)
        check_new(path)
        try:
            # Made beside its place, then linked to it: there whole or not at all, and never over another file.
            with scratch.directory(beside=path.absolute().parent) as private:
                temporary = private / "ledger"
                temporary.touch()
                with chain.transaction(temporary, path, writing=True) as connection:
                    chain.begin(connection, {"granted": budget_texts(total), "unit": unit.data()})
                    chain.commit(connection)
                os.link(temporary, path)
            sync_directory(path.absolute().parent)
        except FileExistsError:
            raise already_there(path) from None
        except OSError as error:
            raise FaultError(f"{path}: cannot be written: {error.strerror}; choose another place") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Read and check a ledger."""
        path = Path(path)
        with chain.transaction(path, path) as connection:
            account = read_account(connection, path)
        return cls(path, account.unit)

    def grant(self, budget: Budget, note: str | None = None) -> Grant:
        """Raise the grant: a decision of whoever is responsible for the data, kept as an entry of its own.

        Everything that was charged, and everything that will be, is then held to the total. Decide without looking at
        the releases: a grant that depends on them protects less than it states (docs/privacy.md).

        Arguments:
            budget: What is added: ε to ε, or with some δ to ε and δ; ρ to ρ.
            note: Who decided so, or why; up to 500 printable characters.
        """
        check_budget(budget)
        _check_note(note)
        with chain.transaction(self.path, self.path, writing=True) as connection:
            account = read_account(connection, self.path)
            try:
                total = raised(account.granted, budget)
            except BudgetError as error:
                raise BudgetError(
                    f"budget {budget}: the ledger {self.path} grants {account.granted}: {error}"
                ) from None
            if not account.charged().fits(total):  # a capacity that cannot be verified at such a total
                raise BudgetError(f"budget {budget}: a total of {total} cannot be accounted for; add less")
            step: dict[str, Any] = {"state": "granted", "format": chain.GRANTS_FORMAT, "budget": budget_texts(budget)}
            chain.append(connection, account.steps, account.hash, step | ({} if note is None else {"note": note}))
            grant = read_account(connection, self.path).grants[-1]
            chain.commit(connection)
            return grant

    def reserve(self, id: str, budget: Budget, unit: Unit, plan_digest: str) -> Entry:
        """Charge a release before its noise is drawn; durable on return. Refused if too little is left.

        An id that is published already raises `AlreadyPublished` and is not charged again.
        """
        _check_id(id)
        _check_digest("plan_digest", plan_digest)
        mu_squared = mu_squared_of(budget)
        with chain.transaction(self.path, self.path, writing=True) as connection:
            account = read_account(connection, self.path)
            entry = account.latest(id)
            if entry is not None and entry.state == "published":
                raise AlreadyPublished(entry)
            if entry is not None and entry.state == "reserved":
                raise BudgetError(
                    f"{given('id', repr(id))}: was reserved on {entry.time} and not published; noise may have been "
                    "drawn, so it stays charged: choose another id, or abandon this one (hdmm ledger abandon), and "
                    "spend once more"
                )
            if unit != account.unit:
                raise BudgetError(
                    f"the plan protects {unit}, and the ledger {self.path} accounts for {account.unit}; plan for that "
                    "unit (privacy: {unit: …} in the spec), or charge a ledger of this one (hdmm ledger create "
                    "NEW.db --unit-of PLAN)"
                )
            self._check_suffices(account, budget, mu_squared)
            step: dict[str, Any] = {"state": "reserved", "id": id, "budget": budget_texts(budget), "plan": plan_digest}
            if mu_squared is not None:
                step["mu_squared"] = decimal_text(mu_squared)
            return self._append(connection, account, step)

    def publish(self, id: str, release_digest: str) -> Entry:
        """Note that a reserved release is written. Again with the same digest, it changes nothing."""
        _check_digest("release_digest", release_digest)
        with chain.transaction(self.path, self.path, writing=True) as connection:
            account = read_account(connection, self.path)
            entry = account.latest(id)
            if entry is not None and entry.state == "published":
                if entry.release == release_digest:
                    return entry
                raise BudgetError(
                    f"release {id!r}: was published on {entry.time} with another digest; reserve another id for this "
                    "one"
                )
            self._check_reserved(id, account)
            return self._append(connection, account, {"state": "published", "id": id, "release": release_digest})

    def abandon(self, id: str) -> Entry:
        """Give up a reserved release. It stays charged; its id may be reserved again, which is charged again."""
        with chain.transaction(self.path, self.path, writing=True) as connection:
            account = read_account(connection, self.path)
            entry = account.latest(id)
            if entry is not None and entry.state == "published":
                raise BudgetError(f"release {id!r}: was published on {entry.time} and cannot be abandoned; keep it")
            self._check_reserved(id, account)
            return self._append(connection, account, {"state": "abandoned", "id": id})

    def grants(self) -> tuple[Grant, ...]:
        """The first grant, and every one that raised it, in order."""
        return self._account().grants

    def entries(self) -> tuple[Entry, ...]:
        """Every release that was charged, in order."""
        return self._account().entries

    def spent(self) -> Amount:
        """What all releases took together, published or not."""
        return self._account().spent()

    def left(self) -> Amount:
        """What one more release may take; under (ε, δ), one amount by Laplace noise or another by Gaussian noise."""
        return self._account().left()

    def leaked(self) -> tuple[Leak, ...]:
        """What all releases leak, by kind of noise and together.

        An ε with δ is at the granted δ, or at 1e-6 if ρ is granted. It supposes that no budget was chosen by looking
        at an earlier release; what was granted holds in any case.
        """
        return self._leaked(self._account())

    def verify(self) -> Verified:
        """Check the file, its chain, the order of its steps, and that nothing is overspent."""
        with chain.transaction(self.path, self.path) as connection:
            chain.check_pages(connection, self.path)
            account = read_account(connection, self.path)
        account.check_not_overspent(self.path)
        return Verified(account.steps - 1, account.hash, account.spent(), account.left())

    def describe(self) -> str:
        """What is granted, spent, left and leaked, the grants if there are several, and a table of the releases."""
        account = self._account()
        leaked = self._leaked(account)
        summary = text_table(
            ["ledger", str(self.path)],
            [
                ["unit", account.unit],
                ["granted", account.granted],
                ["spent", account.spent()],
                ["left", account.left()],
                *[["leaked", leak] for leak in leaked],
            ],
        )
        if any(leak.delta is not None for leak in leaked):
            summary += "\n\nWhat is leaked at a δ supposes budgets that were not chosen by looking at earlier releases."
        if len(account.grants) > 1:
            grants = [[grant.budget, grant.total, grant.time, grant.note] for grant in account.grants]
            summary += f"\n\n{text_table(['granted', 'in all', 'time', 'note'], grants)}"
        rows = [
            [entry.id, entry.state, entry.budget, entry.time, entry.plan[:12], (entry.release or "")[:12]]
            for entry in account.entries
        ]
        return f"{summary}\n\n{text_table(['id', 'state', 'budget', 'time', 'plan', 'release'], rows)}"

    def _account(self) -> Account:
        with chain.transaction(self.path, self.path) as connection:
            return read_account(connection, self.path)

    def _leaked(self, account: Account) -> tuple[Leak, ...]:
        delta = account.granted.delta or USUAL_DELTA
        return leaks([(entry.budget, entry.mu_squared) for entry in account.entries], delta)

    def _check_reserved(self, id: str, account: Account) -> None:
        entry = account.latest(id)
        if entry is None:
            known = nearest(id, [other.id for other in account.entries]) or "; it holds no release"
            raise BudgetError(f"release {id!r}: is not in the ledger {self.path}{known}")
        if entry.state == "abandoned":
            raise BudgetError(
                f"release {id!r}: was abandoned on {entry.time}; reserve it again, which is charged again"
            )

    def _check_suffices(self, account: Account, budget: Budget, mu_squared: Fraction | None) -> None:
        granted = account.granted
        if mu_squared is not None and granted.rho is None and granted.delta is None:
            raise BudgetError(
                f"budget {budget}: the ledger {self.path} grants {granted} alone, which Gaussian noise cannot keep; "
                "plan with Laplace noise. (For Gaussian noise, a ledger must grant ε with δ, or ρ, from the start)"
            )
        if not account.charged().plus(budget, mu_squared).fits(granted):
            left = account.left()
            more = "--epsilon 1" if granted.rho is None else "--rho 0.5"
            raise BudgetError(
                f"budget {budget}: the ledger {self.path} has {left if left else 'nothing'} left of {granted}; "
                f"{'spend no more than that, or, ' if left else ''}if whoever is responsible for these data decides to "
                f"allow more, raise the grant: hdmm ledger grant {self.path} {more}"
            )

    def _append(self, connection: sqlite3.Connection, account: Account, step: dict[str, Any]) -> Entry:
        chain.append(connection, account.steps, account.hash, step)
        entry = read_account(connection, self.path).latest(step["id"])
        assert entry is not None
        chain.commit(connection)
        return entry


def _check_id(id: str) -> None:
    if not isinstance(id, str) or not id.isprintable() or not 1 <= len(id) <= _MAX_ID:
        raise InputError(
            f"{given('id', shown(id))}: expected 1 to {_MAX_ID} printable characters, for example "
            f"{example('id', '2026-census')}"
        )


def _check_note(note: object) -> None:
    if note is not None and not (isinstance(note, str) and note.isprintable() and 1 <= len(note) <= _MAX_NOTE):
        raise InputError(
            f"{given('note', shown(note))}: expected 1 to {_MAX_NOTE} printable characters, for example "
            f"{example('note', 'the board, 3 May')}"
        )


def _check_digest(name: str, digest: str) -> None:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InputError(f"{name}={digest!r}: expected a SHA-256 digest, 64 hexadecimal digits in lower case")
