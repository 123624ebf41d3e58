"""What is audited of the errors in tables: plans of every family, with every unbiased estimator that they have."""

from functools import cache

import hdmm
from hdmm import baselines, operators
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.split import SplitLeastSquares
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.plans import CASES, plan
from tests.audit.published import Case

BUDGETS: dict[NoiseKind, hdmm.Budget] = {"laplace": hdmm.Budget("0.02"), "gaussian": hdmm.Budget("0.1", "1e-6")}
"""Small enough that the steps of the noise do not show."""
SOLVED = {(baselines.Plain, "gaussian"), (operators.Union, "laplace")}
"""Where exact errors of a large plan are worked out: each takes seconds."""


@cache
def cases() -> list[Case]:
    """Every plan; where answers from all blocks and from one differ, both, and as if too large, with bounds."""
    found = []
    for operator, noise in CASES:
        case = Case(plan(operator, noise), BUDGETS[noise])
        found.append(case)
        if isinstance(case.plan.mechanism.estimator, (JointLeastSquares, SplitLeastSquares)):
            found += [Case(case.plan, case.budget, "local"), Case(case.plan, case.budget, large=True)]
        if (type(operator), noise) in SOLVED:
            found.append(Case(case.plan, case.budget, large=True, exact=True))
    return found
