"""The interface of operators and baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from hdmm.matrix import Matrix, Norm
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

Limits: TypeAlias = Sequence[float | None]
"""For every product a limit on the variance of its answers, or None."""
MAX_CELLS_TOGETHER = 512
"""The most cells that several attributes may have together for OPT_0 over all of them."""


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """A strategy A over one attribute, of sensitivity at most 1 in its norm, for a Gram matrix V.

    ``error`` is tr((AᵀA)⁺V), and ``bound`` a proved lower bound on it for every strategy, if one is known.
    """

    matrix: Matrix
    error: float
    bound: float | None = None


@final
@dataclass(frozen=True, eq=False)
class Proposal:
    """A strategy for a workload, and a lower bound on the loss of every strategy, if the operator proved one."""

    strategy: Strategy
    bound: float | None = None


@final
@dataclass(frozen=True)
class Aside:
    """The reason why an operator has no strategy for a workload."""

    reason: str
    bound: float | None = None
    """A lower bound on the error of every strategy, if one was found all the same."""


class Operator(ABC):
    """A way of choosing what to measure for a workload. It never sees data."""

    @property
    def name(self) -> str:
        """The name that plans list."""
        return type(self).__name__

    def random(self, norm: Norm) -> bool:
        """Whether random starts decide the result, so that more of them may improve it. By default, no."""
        return False

    @abstractmethod
    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """A strategy for noise of this norm (1: Laplace, 2: Gaussian), or the reason why there is none."""


class WorstCase(ABC):
    """An operator that also has its own search for the least largest error."""

    @abstractmethod
    def propose_worst(self, workload: Encoded, limits: Limits, norm: Norm, effort: Effort) -> Proposal | None:
        """The strategy with the least worst ratio of a variance to its limit; None if the search does not apply."""
