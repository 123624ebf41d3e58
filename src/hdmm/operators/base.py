"""What every operator and every competitor can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from hdmm.matrix import Matrix, Norm
from hdmm.operators.descent import DEFAULT, Effort
from hdmm.strategy import Strategy, loss
from hdmm.workload import Encoded

__all__ = ["Aside", "Operator", "Proposal", "Solution", "loss"]


@final
@dataclass(frozen=True, eq=False)
class Solution:
    """A strategy A over one attribute, of sensitivity at most 1 in its norm, for a Gram matrix V.

    ``error`` is tr((AᵀA)⁺V), and ``bound`` a proved lower bound on it for every strategy, where one is known.
    """

    matrix: Matrix
    error: float
    bound: float | None = None


@final
@dataclass(frozen=True, eq=False)
class Proposal:
    """A strategy for a workload, and a proved lower bound on every strategy's loss, where the operator found one."""

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
        """Whether random starts decide what it finds, so that more of them may find better."""
        return False

    @abstractmethod
    def propose(self, workload: Encoded, norm: Norm, effort: Effort = DEFAULT) -> Proposal | Aside:
        """A strategy under noise of that norm (1: Laplace, 2: Gaussian), or why the operator does not apply."""
