"""What every operator and every competitor can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hdmm.matrix import Norm
from hdmm.strategy import Strategy, sensitivity
from hdmm.workload import Encoded


class Operator(ABC):
    """A way of choosing what to measure for a workload. It never sees data."""

    @property
    def name(self) -> str:
        """The name under which plans list it."""
        return type(self).__name__

    @abstractmethod
    def propose(self, workload: Encoded, norm: Norm) -> Strategy | None:
        """A strategy under noise of that norm (1: Laplace, 2: Gaussian); None where the operator does not apply."""


def loss(strategy: Strategy, workload: Encoded, norm: Norm) -> float:
    """The weighted total squared error at unit noise, ‖A‖²·‖WA⁺‖²_F (paper, prop:error)."""
    squared = float(sensitivity(strategy.blocks, norm)) ** (2 / norm)
    noise = [squared / float(block.weight) ** 2 for block in strategy.blocks]
    return sum(float(product.weight) ** 2 * strategy.squared_error(product, noise) for product in workload.products)
