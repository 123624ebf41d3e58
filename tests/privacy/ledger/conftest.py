"""A ledger that grants ε = 1."""

from pathlib import Path

import pytest

from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from hdmm.privacy.unit import Unit


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", Budget("1"), Unit())
