"""Operators: each proposes a strategy for a workload. `select` runs several and keeps the best."""

from hdmm.operators.base import Operator

__all__ = ["Operator"]
