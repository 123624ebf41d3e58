"""Steps that the tests of the ledger share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdmm.errors import BudgetError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from hdmm.privacy.unit import Unit

PLAN, RELEASE, OTHER = "a" * 64, "b" * 64, "c" * 64
UNIT = Unit()


def spend(ledger: Ledger, *budgets: Budget) -> None:
    for budget in budgets:
        ledger.reserve(f"release {len(ledger.entries())}", budget, UNIT, PLAN)


def refused(ledger: Ledger, budget: Budget) -> bool:
    """Whether a budget is refused for what is left; the ledger is the same afterwards."""
    before = ledger.entries()
    try:
        ledger.reserve("too much", budget, UNIT, PLAN)
    except BudgetError as error:
        message = str(error)
    else:
        return False
    assert "left of" in message
    assert ledger.entries() == before
    return True


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory without a disk below it, for tests with many ledgers."""
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as directory:
        yield Path(directory)
