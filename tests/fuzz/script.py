"""A finding as a script of its own."""

from tests.fuzz.cases import Case
from tests.fuzz.session import PRELUDE, Finding


def script(finding: Finding, case: Case) -> str:
    """Python that shows the finding with hdmm alone."""
    detail = finding.detail.replace("\n", " ")[:300]
    head = [
        f"# {finding.check}: {finding.kind}",
        f"# {detail}",
        f"# found with seed {case.seed}, {case.noise}, operators: {case.operator}",
    ]
    return "\n".join([*head, PRELUDE, *finding.lines]) + "\n"
