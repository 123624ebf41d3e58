"""Baselines: operators that need no optimisation."""

from hdmm.baselines.greedy_h import GreedyH
from hdmm.baselines.hb import HB
from hdmm.baselines.h2 import H2
from hdmm.baselines.identity import Identity
from hdmm.baselines.marginals import Marginals
from hdmm.baselines.plain import Plain
from hdmm.baselines.privelet import Privelet

__all__ = ["GreedyH", "H2", "HB", "Identity", "Marginals", "Plain", "Privelet"]
