"""The ledger: a SQLite file that says what was granted, reserved and published, for one privacy unit.

A release is reserved, durably, before its noise is drawn. From then on it is charged for good, published or not: once
noise may have been drawn, nothing can be refunded.

What a ledger counts, and why each rule is an upper bound:

- Laplace releases, ε alone: the ε add up (basic composition), as exact fractions.
- Gaussian releases, (ε, δ) or ρ: each is a Gaussian mechanism with μ = 1/σ at sensitivity one, rounded afterwards. Such
  releases together are again one, whose μ² is the sum (Dong, Roth and Su 2019), so that nothing is lost. μ² is kept
  as a decimal that is rounded up.
- Granted ρ: ρ-zCDP adds up (Bun and Steinke 2016). A Gaussian release has ρ = μ²/2, a Laplace release ρ = ε²/2.
- Granted (ε, δ): the Gaussian releases must fit (ε', δ) by the analytic Gaussian mechanism, where ε' is ε less what
  Laplace releases took: if P(S) ≤ exp(ε')·Q(S) + δ holds for the Gaussian part alone, then the Laplace part, whose
  likelihood ratio is never above exp(ε - ε'), gives P(S) ≤ exp(ε)·Q(S) + δ for both. A Gaussian release that is the
  only one may also use that (ε', δ) exactly, because that is what it promises.
- Granted ε alone: Gaussian releases have no such ε and are refused.

Queries may be chosen by looking at earlier releases, and so may budgets (Feldman and Zrnic 2021; Smith and Thakurta
2022). For mixtures under (ε, δ) that holds because Laplace releases come first: after a Gaussian one they are refused,
since shares that are chosen by looking at it could add up to more than δ.

Each entry holds the hash of its content and of the entry before, beginning with the grant. Damage, and edits of single
rows, are found whenever the ledger is read. A chain cannot tell an older copy of the file, or one that was rewritten
from the beginning: note the hash that `verify` reports elsewhere to see that too. Nothing about the data is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, final

from hdmm.errors import ArtefactError, BudgetError, FaultError, InputError
from hdmm.privacy.budget import Budget, decimal_text
from hdmm.privacy.calibrate import certified_sigma
from hdmm.privacy.unit import Unit
from hdmm.texttable import text_table

FORMAT = 1

_PATIENCE = 5.0  # seconds for which another process may keep the file locked
_LONGEST_ID = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_UP, _DOWN = Context(prec=20, rounding=ROUND_CEILING), Context(prec=6, rounding=ROUND_FLOOR)
_LEAST = Fraction(1, 10**100)  # the least epsilon that a budget may have
_TABLES = (
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE tip (hash TEXT NOT NULL)",  # of the last entry: no later one would miss it
    "INSERT INTO tip VALUES ('')",
)


@final
@dataclass(frozen=True)
class Entry:
    """A release in the ledger: what it is charged, and how far it came; the time is that of its last step."""

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
class Amount:
    """What is spent or left: ε of Laplace noise and ρ of Gaussian noise, or ρ of both where ρ is granted."""

    epsilon: Fraction | None
    rho: Fraction | None
    joined: Literal["and", "or"] = "and"

    def __str__(self) -> str:
        epsilon = None if self.epsilon is None else f"ε = {decimal_text(self.epsilon)}"
        rho = None if self.rho is None else f"ρ = {decimal_text(self.rho)}"
        if epsilon and rho:
            return f"{epsilon} by Laplace noise {self.joined} {rho} by Gaussian noise"
        return epsilon or rho or ""


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
        super().__init__(f"id={entry.id!r}: was published on {entry.time} with {entry.budget}; nothing was charged")
        self.entry = entry


@final
@dataclass(frozen=True)
class Ledger:
    """A ledger file. It is opened for each step alone, so that any thread or process may use the same ledger."""

    path: Path
    granted: Budget
    unit: Unit

    @classmethod
    def create(cls, path: str | Path, total: Budget, unit: Unit) -> Ledger:
        """Write a new ledger that grants this budget for this privacy unit."""
        path = Path(path)
        _check_new(path)
        head = {"hdmm": "ledger", "format": FORMAT, "granted": _texts(total), "time": _clock()}
        head["unit"] = {"rows": unit.rows, "neighbours": unit.neighbours}
        try:
            # Made beside its place, then linked to it: there whole or not at all, and never over another file.
            with tempfile.TemporaryDirectory(prefix=".hdmm-", dir=path.absolute().parent) as directory:
                temporary = Path(directory) / "ledger"
                temporary.touch()
                with _transaction(temporary, path, writing=True) as connection:
                    for statement in _TABLES:
                        connection.execute(statement)
                    _append(connection, 0, "", head)
                    _commit(connection)
                os.link(temporary, path)
            _sync_directory(path.absolute().parent)
        except FileExistsError:
            raise _exists(path) from None
        except OSError as error:
            raise FaultError(f"{path}: cannot be written: {error.strerror}; choose another place") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Read and check a ledger."""
        path = Path(path)
        with _transaction(path, path) as connection:
            account = _read(connection, path)
        return cls(path, account.granted, account.unit)

    def reserve(self, id: str, budget: Budget, unit: Unit, plan_digest: str) -> Entry:
        """Charge a release before its noise is drawn; durable on return. Refused where too little is left.

        An id that is published already raises `AlreadyPublished` and is not charged again.
        """
        _check_id(id)
        _check_digest("plan_digest", plan_digest)
        mu_squared = _mu_squared(budget)
        with _transaction(self.path, self.path, writing=True) as connection:
            account = _read(connection, self.path)
            known = account.latest(id)
            if known is not None and known.state == "published":
                raise AlreadyPublished(known)
            if known is not None and known.state == "reserved":
                raise BudgetError(
                    f"id={id!r}: was reserved on {known.time} and not published; noise may have been drawn, so it "
                    "stays charged: choose another id, or abandon this one and reserve it again, and spend once more"
                )
            if unit != account.unit:
                raise BudgetError(
                    f"unit={str(unit)!r}: the ledger {self.path} accounts for {account.unit}; plan for that unit, or "
                    "charge a ledger of this one"
                )
            self._check_suffices(account, budget, mu_squared)
            step: dict[str, Any] = {"state": "reserved", "id": id, "budget": _texts(budget), "plan": plan_digest}
            if mu_squared is not None:
                step["mu_squared"] = decimal_text(mu_squared)
            return self._append(connection, account, step)

    def publish(self, id: str, release_digest: str) -> Entry:
        """Note that a reserved release is written. Again with the same digest, it changes nothing."""
        _check_digest("release_digest", release_digest)
        with _transaction(self.path, self.path, writing=True) as connection:
            account = _read(connection, self.path)
            known = account.latest(id)
            if known is not None and known.state == "published":
                if known.release == release_digest:
                    return known
                raise BudgetError(
                    f"id={id!r}: was published on {known.time} with another release; reserve another id for this one"
                )
            self._check_reserved(id, known)
            return self._append(connection, account, {"state": "published", "id": id, "release": release_digest})

    def abandon(self, id: str) -> Entry:
        """Give up a reserved release. It stays charged; its id may be reserved again, which is charged again."""
        with _transaction(self.path, self.path, writing=True) as connection:
            account = _read(connection, self.path)
            known = account.latest(id)
            if known is not None and known.state == "published":
                raise BudgetError(f"id={id!r}: was published on {known.time} and cannot be abandoned; keep it")
            self._check_reserved(id, known)
            return self._append(connection, account, {"state": "abandoned", "id": id})

    def entries(self) -> tuple[Entry, ...]:
        """Every release that was charged, in order."""
        return self._account().entries

    def spent(self) -> Amount:
        """What all releases took together, published or not."""
        return self._account().spent()

    def left(self) -> Amount:
        """What one more release may take; under (ε, δ) it is so much by Laplace noise or so much by Gaussian noise."""
        return self._account().left()

    def verify(self) -> Verified:
        """Check the file, its chain, the order of its steps, and that nothing is overspent."""
        with _transaction(self.path, self.path) as connection:
            if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise _damaged(self.path, "SQLite finds errors in its pages")
            account = _read(connection, self.path)
        charged = _Charged()
        for entry in account.entries:
            charged = charged.plus(entry.budget, entry.mu_squared)
            if not charged.fits(account.granted):
                raise _damaged(self.path, f"entry {entry.number} spends more than was left of {account.granted}")
        return Verified(account.steps - 1, account.hash, account.spent(), account.left())

    def describe(self) -> str:
        """The grant, what is spent and left, and a table of the releases."""
        account = self._account()
        rows = [
            [entry.id, entry.state, entry.budget, entry.time, entry.plan[:12], (entry.release or "")[:12]]
            for entry in account.entries
        ]
        summary = text_table(
            ["ledger", str(self.path)],
            [
                ["unit", account.unit],
                ["granted", account.granted],
                ["spent", account.spent()],
                ["left", account.left()],
            ],
        )
        return f"{summary}\n\n{text_table(['id', 'state', 'budget', 'time', 'plan', 'release'], rows)}"

    def _account(self) -> _Account:
        with _transaction(self.path, self.path) as connection:
            return _read(connection, self.path)

    def _check_reserved(self, id: str, known: Entry | None) -> None:
        if known is None:
            raise BudgetError(f"id={id!r}: is not in the ledger {self.path}; reserve it first")
        if known.state == "abandoned":
            raise BudgetError(f"id={id!r}: was abandoned on {known.time}; reserve it again, which is charged again")

    def _check_suffices(self, account: _Account, budget: Budget, mu_squared: Fraction | None) -> None:
        granted = account.granted
        if mu_squared is not None and granted.rho is None and granted.delta is None:
            raise BudgetError(
                f"budget {budget}: the ledger {self.path} grants {granted} alone, which Gaussian noise cannot keep; "
                "plan with Laplace noise, or charge a ledger that grants epsilon with delta, or rho"
            )
        charged = account.charged().plus(budget, mu_squared)
        if charged.late and granted.delta is not None:
            raise BudgetError(
                f"budget {budget}: under {granted} the ledger {self.path} takes no Laplace release after a Gaussian "
                "one; plan with Gaussian noise, or charge a ledger that grants rho"
            )
        if not charged.fits(granted):
            raise BudgetError(
                f"budget {budget}: the ledger {self.path} has {account.left()} left of {granted}; "
                "spend less, or charge another ledger"
            )

    def _append(self, connection: sqlite3.Connection, account: _Account, step: dict[str, Any]) -> Entry:
        _append(connection, account.steps, account.hash, {**step, "time": _clock()})
        entry = _read(connection, self.path).latest(step["id"])
        assert entry is not None
        _commit(connection)
        return entry


@final
@dataclass(frozen=True)
class _Charged:
    """What releases add up to, by each of the rules."""

    epsilon: Fraction = Fraction(0)  # of Laplace releases
    mu_squared: Fraction = Fraction(0)  # of Gaussian releases
    rho: Fraction = Fraction(0)  # of all
    gaussians: int = 0
    last: Budget | None = None  # of the Gaussian releases
    late: bool = False  # whether a Laplace release came after a Gaussian one

    def plus(self, budget: Budget, mu_squared: Fraction | None) -> _Charged:
        if mu_squared is None:
            assert budget.epsilon is not None
            rho = self.rho + budget.epsilon**2 / 2
            return replace(self, epsilon=self.epsilon + budget.epsilon, rho=rho, late=self.last is not None)
        return replace(
            self,
            mu_squared=self.mu_squared + mu_squared,
            rho=self.rho + (mu_squared / 2 if budget.rho is None else budget.rho),
            gaussians=self.gaussians + 1,
            last=budget,
        )

    def fits(self, granted: Budget) -> bool:
        if granted.rho is not None:
            return self.rho <= granted.rho
        assert granted.epsilon is not None
        rest = granted.epsilon - self.epsilon
        if self.last is None:
            return rest >= 0
        if granted.delta is None or self.late:
            return False
        promised = self.gaussians == 1 and _within(self.last, rest, granted.delta)
        return promised or self.mu_squared <= _capacity(rest, granted.delta)


@final
@dataclass(frozen=True)
class _Account:
    """A ledger's content, read and checked."""

    granted: Budget
    unit: Unit
    entries: tuple[Entry, ...]
    steps: int
    hash: str

    def latest(self, id: str) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if entry.id == id), None)

    def charged(self) -> _Charged:
        charged = _Charged()
        for entry in self.entries:
            charged = charged.plus(entry.budget, entry.mu_squared)
        return charged

    def spent(self) -> Amount:
        charged = self.charged()
        if self.granted.rho is not None:
            return Amount(None, charged.rho)
        return Amount(charged.epsilon, None if self.granted.delta is None else charged.mu_squared / 2)

    def left(self) -> Amount:
        charged = self.charged()
        if self.granted.rho is not None:
            return Amount(None, max(self.granted.rho - charged.rho, Fraction(0)))
        assert self.granted.epsilon is not None
        rest = max(self.granted.epsilon - charged.epsilon, Fraction(0))
        if self.granted.delta is None:
            return Amount(rest, None)

        free = max(_capacity(rest, self.granted.delta) - charged.mu_squared, Fraction(0))
        rho = _rounded(free / 2, _DOWN)
        return Amount(None, rho) if charged.gaussians else Amount(rest, rho, "or")


def _within(budget: Budget, epsilon: Fraction, delta: Fraction) -> bool:
    if budget.epsilon is None or budget.delta is None:
        return False
    return budget.epsilon <= epsilon and budget.delta <= delta


def _mu_squared(budget: Budget) -> Fraction | None:
    """μ² of a Gaussian release at this budget, rounded up; None for a Laplace release."""
    if budget.rho is not None:
        return _rounded(2 * budget.rho, _UP)
    return None if budget.delta is None else _rounded(1 / certified_sigma(budget) ** 2, _UP)


@lru_cache(maxsize=256)
def _capacity(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The μ² that Gaussian releases may have together at (ε, δ): one for which ball arithmetic proves it."""
    if epsilon < _LEAST:
        return Fraction(0)
    try:
        return 1 / certified_sigma(Budget(epsilon, delta)) ** 2
    except (FaultError, BudgetError):  # no noise that could be verified, or drawn
        return Fraction(0)


def _rounded(value: Fraction, context: Context) -> Fraction:
    return Fraction(_decimal(value, context))


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


@contextmanager
def _transaction(file: Path, name: Path, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a ledger for one transaction, which is undone unless it was committed; ``name`` is for messages."""
    try:
        if not file.is_file():
            raise ArtefactError(
                f"{name}: there is no such ledger; create it, for example with hdmm ledger create {name} --epsilon 1"
            )
        if writing and not file.stat().st_mode & 0o222:  # the administrator may write to it, and should not
            raise _read_only(name)
        address = f"{file.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)) as connection:
            # EXTRA is FULL that also makes the end of a transaction outlast a power failure.
            connection.execute("PRAGMA synchronous=EXTRA")
            connection.execute("PRAGMA fullfsync=1")  # macOS
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            yield connection
    except OSError as error:
        raise FaultError(f"{name}: cannot be read: {error.strerror}; check its permissions") from None
    except sqlite3.Error as error:
        raise _explained(error, name) from None


def _commit(connection: sqlite3.Connection) -> None:
    connection.execute("COMMIT")


def _explained(error: sqlite3.Error, name: Path) -> ArtefactError | FaultError:
    code = str(getattr(error, "sqlite_errorname", ""))
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return FaultError(
            f"{name}: another process has kept the ledger locked for {_PATIENCE:g} seconds; nothing was charged: try "
            "again when it is done"
        )
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return _read_only(name)
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")):
        return FaultError(
            f"{name}: the ledger cannot be read or written: {error}; free some space or check the disk, then see "
            f"what is charged with hdmm ledger show {name}"
        )
    if code in ("SQLITE_NOTADB", "SQLITE_ERROR"):
        return _no_ledger(name)
    return _damaged(name, "SQLite cannot read it")


def _no_ledger(name: Path) -> ArtefactError:
    return ArtefactError(f"{name}: is not an hdmm ledger; name the file that hdmm ledger create made")


def _damaged(name: Path, reason: str) -> ArtefactError:
    return ArtefactError(f"{name}: the ledger is damaged: {reason}; spend nothing, and look for an intact copy")


def _read_only(name: Path) -> FaultError:
    return FaultError(
        f"{name}: the ledger cannot be written to; allow writing to the file and its directory, or choose another one"
    )


def _exists(path: Path) -> ArtefactError:
    return ArtefactError(f"{path}: exists already and is never overwritten; choose another name")


def _check_new(path: Path) -> None:
    try:
        there = path.exists() or path.is_symlink()
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be written: {error.strerror}; choose another name") from None
    if there:
        raise _exists(path)
    if not path.absolute().parent.is_dir():
        raise ArtefactError(f"{path}: its parent directory does not exist; create it first")


def _check_id(id: str) -> None:
    if not isinstance(id, str) or not id.isprintable() or not 1 <= len(id) <= _LONGEST_ID:
        raise InputError(f"id={id!r}: expected 1 to {_LONGEST_ID} printable characters, for example id='2026-census'")


def _check_digest(name: str, digest: str) -> None:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InputError(f"{name}={digest!r}: expected a SHA-256 digest, 64 hexadecimal digits in lower case")


def _append(connection: sqlite3.Connection, number: int, previous: str, content: dict[str, Any]) -> None:
    text = _canonical(content)
    digest = _link(previous, text)
    connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", (number, text, digest))
    connection.execute("UPDATE tip SET hash = ?", (digest,))


def _canonical(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _link(previous: str, text: str) -> str:
    return hashlib.sha256((previous + text).encode()).hexdigest()


def _clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _texts(budget: Budget) -> dict[str, str]:
    parts = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return {name: decimal_text(value) for name, value in parts.items() if value is not None}


def _budget(texts: dict[str, str]) -> Budget:
    return Budget(**{name: Fraction(text) for name, text in texts.items()})


def _read(connection: sqlite3.Connection, name: Path) -> _Account:
    """The content of a ledger; its chain and the order of its steps are checked on the way."""
    contents, previous = _chain(connection, name)
    try:
        granted, unit = _budget(contents[0]["granted"]), Unit(**contents[0]["unit"])
    except (InputError, ValueError, TypeError, KeyError) as error:
        raise _damaged(name, f"entry 0 holds no grant that this version knows ({error})") from None
    entries: list[Entry] = []
    places: dict[str, int] = {}
    for number, step in enumerate(contents[1:], 1):
        try:
            place = places.get(step["id"])
            known = None if place is None else entries[place]
            entry = _after(known, step, number)
        except (InputError, ValueError, TypeError, KeyError):
            raise _damaged(name, f"entry {number} is not one that this version writes") from None
        if entry is None:
            raise _damaged(name, f"entry {number} does not follow from what was {known.state if known else 'recorded'}")
        if step["state"] == "reserved":
            places[entry.id] = len(entries)
            entries.append(entry)
        else:
            entries[places[entry.id]] = entry
    return _Account(granted, unit, tuple(entries), len(contents), previous)


def _chain(connection: sqlite3.Connection, name: Path) -> tuple[list[dict[str, Any]], str]:
    """The content of all entries and the hash of the last one."""
    rows = connection.execute("SELECT number, content, hash FROM ledger ORDER BY number").fetchall()
    tips = connection.execute("SELECT hash FROM tip").fetchall()
    contents: list[dict[str, Any]] = []
    previous = ""
    for expected, (number, text, digest) in enumerate(rows):
        if number != expected:
            raise _damaged(name, f"entry {expected} is missing")
        content = _parsed(text)
        if number == 0 and content is not None and content.get("hdmm") == "ledger" and content.get("format") != FORMAT:
            raise ArtefactError(f"{name}: has format {content.get('format')}, this version reads {FORMAT}; update hdmm")
        if content is None or digest != _link(previous, text):
            raise _damaged(name, f"entry {number} was changed: its hash does not match")
        contents.append(content)
        previous = digest
    if not contents or contents[0].get("hdmm") != "ledger":
        raise _no_ledger(name)
    if tips != [(previous,)]:
        raise _damaged(name, f"entry {len(contents)}, the last one, is missing")
    return contents, previous


def _parsed(text: object) -> dict[str, Any] | None:
    """A JSON object in the one form that is written; None for anything else."""
    try:
        content = json.loads(text) if isinstance(text, str) else None
        return content if isinstance(content, dict) and _canonical(content) == text else None
    except (ValueError, RecursionError):
        return None


def _after(known: Entry | None, step: dict[str, Any], number: int) -> Entry | None:
    """A release after one more step; None if that step cannot follow."""
    state, id, time = step["state"], step["id"], step["time"]
    if state == "reserved":
        if known is not None and known.state != "abandoned":
            return None
        budget = _budget(step["budget"])
        mu_squared = Fraction(step["mu_squared"]) if "mu_squared" in step else None
        if (mu_squared is None) != (budget.rho is None and budget.delta is None):
            raise ValueError("Gaussian releases have μ², and no others")
        return Entry(id, "reserved", budget, mu_squared, time, step["plan"], None, number)
    if known is None or known.state != "reserved":
        return None
    if state == "published":
        return replace(known, state="published", time=time, release=step["release"])
    if state == "abandoned":
        return replace(known, state="abandoned", time=time)
    raise ValueError(f"the state {state!r} is not known")


def _sync_directory(path: Path) -> None:
    """Make new names in a directory durable, where the system lets a directory be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
