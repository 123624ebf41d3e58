"""Estimators: how answers follow from what was measured, their errors, and how each answer depends on the noise."""

from hdmm.estimators.choices import Choice, GraphicalModel, LeastSquares, Local, Nonnegative

__all__ = ["Choice", "GraphicalModel", "LeastSquares", "Local", "Nonnegative"]
