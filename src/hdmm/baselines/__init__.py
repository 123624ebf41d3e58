"""Baselines: operators that need no optimisation."""

from hdmm.baselines.identity import Identity
from hdmm.baselines.marginals import Marginals
from hdmm.baselines.plain import Plain

__all__ = ["Identity", "Marginals", "Plain"]
