"""Audit: under Laplace noise no event is more than e^ε times as likely on one of two neighbours as on the other.

The events are those on which a likelihood ratio is large, which are the worst ones, with thresholds fixed in advance.
Bounds by Clopper and Pearson on their probabilities prove a least ε, which must not exceed the one that was promised.
"""

from fractions import Fraction
from math import log

import numpy as np

import hdmm
from hdmm.measure import add_noise
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.pairs import CASES, plan, worst_pair
from tests.audit.simulate import Noisy, by_query, exact, releases
from tests.audit.statistics import LEVEL, clopper_pearson
from tests.audit.verdict import Audit, Verdict

BUDGET = hdmm.Budget("1")
EPSILON = 1.0
EVENTS = (1.0, 0.5, 0.0)
"""Log-likelihood ratios above which an event lies, as shares of ε."""


def run(noisy: Noisy, runs: int) -> Verdict:
    """The largest ε that many runs on two neighbours prove, over several plans, both ways round."""
    outside = LEVEL / (2 * len(EVENTS) * 2 * len(CASES))
    proved = []
    for operator, unit in CASES:
        chosen = plan(operator, "laplace", unit)
        tables = worst_pair(chosen)
        a, b = (np.concatenate(exact(chosen, table)) for table in tables)
        scale = by_query(chosen, chosen.mechanism.calibrate(BUDGET).scales)
        moved = a != b  # other answers have the same law under both
        at_a, at_b = (
            (abs(values - a[moved]) - abs(values - b[moved])) @ (1 / scale[moved])
            for values in (releases(chosen, BUDGET, table, runs, noisy)[:, moved] for table in tables)
        )
        for seen, unseen in ((at_b, at_a), (-at_a, -at_b)):
            for event in EVENTS:
                likely, unlikely = (int(np.sum(ratios >= event * EPSILON - 1e-9)) for ratios in (seen, unseen))
                low, high = clopper_pearson(likely, runs, outside)[0], clopper_pearson(unlikely, runs, outside)[1]
                proved.append(log(low / high) if low else 0.0)
    return Verdict("proved ε", max(proved), "<=", EPSILON)


def short(answers: np.ndarray, kind: NoiseKind, scale: Fraction) -> np.ndarray:
    """The fault: a scale that is 10% too small."""
    return add_noise(answers, kind, scale * Fraction(9, 10))


AUDITS = [Audit("pure privacy, likelihood ratios", run, add_noise, {"scale −10%": short}, 300_000, 150_000, "runs × 2")]
