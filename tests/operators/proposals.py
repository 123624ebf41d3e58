"""What operators propose, for tests that know whether they have a strategy or stand aside."""

from hdmm.matrix import Norm
from hdmm.operators.base import Aside, Operator, Proposal
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.workload import Encoded


def proposed(operator: Operator, encoded: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal:
    """The proposal of an operator that has a strategy for the workload."""
    proposal = operator.propose(encoded, norm, effort)
    assert isinstance(proposal, Proposal), proposal
    return proposal


def reason_aside(operator: Operator, encoded: Encoded, norm: Norm) -> str:
    """The reason of an operator that has none."""
    proposal = operator.propose(encoded, norm)
    assert isinstance(proposal, Aside), proposal
    return proposal.reason
