"""Estimators as values: what a user asks for, before it is known what was measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

from hdmm.estimators.estimator import Estimator
from hdmm.estimators.graphical import PrivatePGM
from hdmm.estimators.least_squares import least_squares, local_least_squares
from hdmm.estimators.nonnegative import NonnegativeLeastSquares
from hdmm.strategy import Strategy
from hdmm.workload import Encoded


class Choice(ABC):
    """A way to estimate answers."""

    word: ClassVar[str]
    """What the command line calls it."""
    biased: ClassVar[bool]
    """Whether it keeps counts from being negative, and so has no intervals."""

    @abstractmethod
    def estimator(self, strategy: Strategy, workload: Encoded) -> Estimator[Any]:
        """The estimator for what was measured."""


@final
@dataclass(frozen=True)
class LeastSquares(Choice):
    """Least squares over all measurements, so that all tables add up to each other. Unbiased, with intervals."""

    word = "global"
    biased = False

    def estimator(self, strategy: Strategy, workload: Encoded) -> Estimator[Any]:
        return least_squares(strategy)


@final
@dataclass(frozen=True)
class Local(Choice):
    """Least squares on one block for each table. Unbiased, with intervals."""

    word = "local"
    biased = False

    def estimator(self, strategy: Strategy, workload: Encoded) -> Estimator[Any]:
        return local_least_squares(strategy)


@final
@dataclass(frozen=True)
class Nonnegative(Choice):
    """Non-negative least squares over all measurements. Biased, without intervals."""

    word = "nonnegative"
    biased = True

    def estimator(self, strategy: Strategy, workload: Encoded) -> Estimator[Any]:
        return NonnegativeLeastSquares(least_squares(strategy), workload)


@final
@dataclass(frozen=True)
class GraphicalModel(Choice):
    """Private-PGM: the graphical model that fits all measurements best. Biased; needs ``hdmm[pgm]``."""

    word = "pgm"
    biased = True

    def estimator(self, strategy: Strategy, workload: Encoded) -> Estimator[Any]:
        return PrivatePGM(least_squares(strategy))


CHOICES: dict[str, Choice] = {
    choice.word: choice for choice in (LeastSquares(), Local(), Nonnegative(), GraphicalModel())
}
"""All of them by their words."""
