"""Plans: what will be measured and the error to expect, their files, and the budget that they need."""

from hdmm.plans.candidate import Candidate
from hdmm.plans.goal import Goal
from hdmm.plans.mechanism import Mechanism
from hdmm.plans.plan import Plan

__all__ = ["Candidate", "Goal", "Mechanism", "Plan"]
