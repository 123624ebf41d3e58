"""Audit: under Gaussian noise P(S) − e^ε·P'(S) is at most δ for the worst event S and neighbours P and P'.

That event is where the likelihood ratio exceeds e^ε. Bounds by Clopper and Pearson prove a least δ. It is promised to
be large here, so that runs by the hundred thousand can tell δ from what 10% less noise would give.
"""

from math import exp

import numpy as np

import hdmm
from hdmm.measure import add_noise
from tests.audit.pairs import CASES, plan, worst_pair
from tests.audit.pure import short
from tests.audit.simulate import Noisy, by_query, exact, releases
from tests.audit.statistics import LEVEL, clopper_pearson
from tests.audit.verdict import Audit, Verdict

BUDGET = hdmm.Budget("1", "0.1")
EPSILON, DELTA = 1.0, 0.1


def run(noisy: Noisy, runs: int) -> Verdict:
    """The largest δ that many runs on two neighbours prove, over several plans, both ways round."""
    outside = LEVEL / (2 * 2 * len(CASES))
    proved = []
    for operator, unit in CASES:
        chosen = plan(operator, "gaussian", unit)
        tables = worst_pair(chosen)
        a, b = (np.concatenate(exact(chosen, table)).astype(float) for table in tables)
        moved = a != b  # other answers have the same law under both
        direction = ((b - a) / by_query(chosen, chosen.mechanism.calibrate(BUDGET).scales) ** 2)[moved]
        middle = (a + b)[moved] @ direction / 2
        # The logarithm of the likelihood ratio, the rounding of the noise left aside.
        at_a, at_b = (releases(chosen, BUDGET, table, runs, noisy)[:, moved] @ direction - middle for table in tables)
        for seen, unseen in ((at_b, at_a), (-at_a, -at_b)):
            likely, unlikely = (int(np.sum(ratios >= EPSILON)) for ratios in (seen, unseen))
            low, high = clopper_pearson(likely, runs, outside)[0], clopper_pearson(unlikely, runs, outside)[1]
            proved.append(low - exp(EPSILON) * high)
    return Verdict("proved δ", max(proved), "<=", DELTA)


AUDITS = [Audit("(ε, δ) privacy, hockey stick", run, add_noise, {"scale −10%": short}, 400_000, 200_000, "runs × 2")]
