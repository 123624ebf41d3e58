"""Attributes whose workloads are built from Identity and Total only: a strategy for them is two scalars.

It measures the identity with weight a and the total with weight b, where a + b = 1 under Laplace noise and a² + b² = 1
under Gaussian. X has the eigenvalues a² on vectors that sum to zero and a² + nb² on the constant one, so errors are
closed forms, and the scalars of all such attributes are optimised jointly (docs/math.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np

from hdmm.matrix import Array, Dense, Identity, Matrix, Norm


@final
@dataclass(frozen=True)
class TwoScalars:
    """The strategies of one such attribute, by the weight of the total: t = b for Laplace, t = b² for Gaussian."""

    size: int
    norm: Norm

    def errors(self, t: float, eigenvalues: Array) -> tuple[Array, Array]:
        """tr(X⁻¹V) for each Gram, given by its two eigenvalues, and the derivatives by t."""
        n = self.size
        if self.norm == 1:
            rest, constant = (1 - t) ** 2, (1 - t) ** 2 + n * t**2
            by_rest, by_constant = -2 * (1 - t), -2 * (1 - t) + 2 * n * t
        else:
            rest, constant = 1 - t, 1 - t + n * t
            by_rest, by_constant = -1, n - 1
        asked_rest, asked_constant = (n - 1) * eigenvalues[:, 0], eigenvalues[:, 1]
        slopes = -asked_rest * by_rest / rest**2 - asked_constant * by_constant / constant**2
        return asked_rest / rest + asked_constant / constant, slopes

    def matrix(self, t: float) -> Matrix:
        """The strategy itself, of sensitivity 1."""
        a, b = (1 - t, t) if self.norm == 1 else (sqrt(1 - t), sqrt(t))
        if b < 1e-9:
            return Identity(self.size)
        return Dense(np.concatenate([a * np.eye(self.size), np.full((1, self.size), b)]))
