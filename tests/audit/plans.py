"""Small plans of every family, found by the operators, that several audits release again and again."""

from collections.abc import Mapping
from functools import cache

import hdmm
from hdmm import baselines, operators
from hdmm.operators.base import Operator
from hdmm.privacy.calibrate import NoiseKind

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(8), hispanic=[False, True])
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    .add("prefixes", age=hdmm.Prefix(), hispanic=hdmm.Identity() | hdmm.Total(), weight=2)
    .add("either", sex=hdmm.Identity(), where="hispanic OR age >= 5")
    .add("total")
)

_SHARED: tuple[Operator, ...] = (
    baselines.Identity(),
    baselines.Plain(),
    baselines.Marginals(),
    operators.Kron(),
    operators.Union(groups=()),
    operators.Marginal(),
    operators.MarginalPlus(),
    operators.Explicit(),
)
OPERATORS: Mapping[NoiseKind, tuple[Operator, ...]] = {
    "laplace": _SHARED,
    "gaussian": (*_SHARED, operators.Residual(), operators.Symmetric()),
}
CASES = [(operator, noise) for noise, found in OPERATORS.items() for operator in found]


@cache
def plan(operator: Operator, noise: NoiseKind) -> hdmm.Plan:
    """The plan of an operator for the workload of this module."""
    return hdmm.select(WORKLOAD, noise, operators=[operator], restarts=1)
