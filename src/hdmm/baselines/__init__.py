"""Baselines: operators that need no optimisation, and published competitors that optimise queries over all cells."""

from hdmm.baselines.coa import COA
from hdmm.baselines.eigen_design import EigenDesign
from hdmm.baselines.identity import Identity
from hdmm.baselines.lrm import LRM
from hdmm.baselines.marginals import Marginals
from hdmm.baselines.matrix_mechanism import MatrixMechanism
from hdmm.baselines.plain import Plain

__all__ = ["COA", "LRM", "EigenDesign", "Identity", "Marginals", "MatrixMechanism", "Plain"]
