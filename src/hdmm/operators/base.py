"""What every operator and every competitor can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from hdmm.matrix import Matrix, Norm
from hdmm.optimise.descent import DEFAULT, Effort
from hdmm.strategy import Strategy
from hdmm.workload import Encoded

MAX_CELLS_TOGETHER = 512
"""The most cells of several attributes together over which OPT_0 is solved."""


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
    """A strategy for a workload, and a proved lower bound on every strategy's loss, if the operator found one."""

    strategy: Strategy
    bound: float | None = None


@final
@dataclass(frozen=True)
class Aside:
    """An operator stands aside: the reason why it has no strategy for a workload."""

    reason: str


class Operator(ABC):
    """A way of choosing what to measure for a workload. It never sees data."""

    @property
    def name(self) -> str:
        """The name under which plans list it."""
        return type(self).__name__

    def random(self, norm: Norm) -> bool:
        """Whether random starts decide what it finds, so that more of them may find better. By default they do not."""
        return False

    @abstractmethod
    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """A strategy under noise of that norm (1: Laplace, 2: Gaussian), or why the operator does not apply."""


class WorstCase(ABC):
    """An operator that also has a search of its own for the least largest error."""

    @abstractmethod
    def propose_worst(
        self, workload: Encoded, limits: Sequence[float | None], norm: Norm, effort: Effort
    ) -> Proposal | None:
        """The strategy with the least worst ratio of a variance to its limit; None if the search does not apply."""
