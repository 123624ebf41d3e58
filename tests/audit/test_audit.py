"""Every audit passes on the code as it is, and fails on each fault that is planted; `make audit` has the full sizes.

False alarms: at most 1e-6 for each audit. A planted fault is missed with a chance below 1e-4.
"""

import pytest

from tests.audit.audits import AUDITS
from tests.audit.verdict import Audit

FAULTS = [(audit, fault) for audit in AUDITS for fault in audit.faults]


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: audit.name)
def test_the_audit_passes(audit: Audit):
    verdict = audit.run(audit.honest, audit.fast)
    assert verdict.passes, f"{verdict}, must be {verdict.limit}"


@pytest.mark.parametrize(("audit", "fault"), FAULTS, ids=[f"{audit.name}, {fault}" for audit, fault in FAULTS])
def test_the_planted_fault_is_caught(audit: Audit, fault: str):
    verdict = audit.run(audit.faults[fault], audit.fast)
    assert not verdict.passes, f"{verdict}, must not be {verdict.limit}"


def test_every_audit_has_a_planted_fault():
    assert all(audit.faults for audit in AUDITS)
