"""OPT_R: residuals of every set of attributes that a product needs, under Gaussian noise (docs/math.md, section 8).

The residual of a set is what its marginal holds beyond those of the smaller sets. For marginals no search is needed,
and the loss is the SVD bound. Only sets within the attributes of a product occur, so that a hundred attributes are no
obstacle. (Compare ResidualPlanner, 2023, and Weighted Fourier Factorizations, 2025.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hdmm.errors import TooLargeError
from hdmm.matrix import Norm
from hdmm.operators.base import Aside, Limits, Operator, Proposal, WorstCase
from hdmm.operators.minimax.residual import worst_residuals
from hdmm.operators.residual_along import long_axis, residuals_along
from hdmm.operators.residual_search import ResidualSearch
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.parallel import one_blas_thread
from hdmm.workload import Encoded

_MAX_ATTRIBUTES = 14
"""The most attributes of a product."""


@final
@dataclass(frozen=True)
class Residual(Operator, WorstCase):
    """Measure residuals: for each set of attributes what smaller sets do not determine. For Gaussian noise.

    OPT_R in the documentation; the paper does not have it. Choose it for marginals, with or without prefixes and
    ranges, and for workloads on many attributes.
    """

    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """The best residuals found, under Gaussian noise, unless products have too many attributes."""
        if norm == 1:
            return Aside("it is for Gaussian noise")
        gram = workload.compact.gram()
        widest = max(len(term.factors) for term in gram.terms)
        if widest > _MAX_ATTRIBUTES:
            return Aside(f"a product has {widest} attributes; at most {_MAX_ATTRIBUTES} have few enough residuals")
        along = long_axis(gram)
        if along is not None:
            return Proposal(residuals_along(gram, along, effort))
        try:
            search = ResidualSearch(gram)
        except TooLargeError as error:
            return Aside(str(error))
        with one_blas_thread():
            search.run(effort)
        return Proposal(search.strategy(workload.sizes))

    def propose_worst(self, workload: Encoded, limits: Limits, norm: Norm, effort: Effort) -> Proposal | None:
        return worst_residuals(workload, limits, effort) if norm == 2 else None
