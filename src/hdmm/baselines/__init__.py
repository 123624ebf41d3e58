"""Baselines: operators that need no optimisation, competitors from the literature among them."""

from hdmm.baselines.coa import COA
from hdmm.baselines.data_cube import DataCube
from hdmm.baselines.eigen_design import EigenDesign
from hdmm.baselines.fourier import Fourier
from hdmm.baselines.greedy_h import GreedyH
from hdmm.baselines.h2 import H2
from hdmm.baselines.hb import HB
from hdmm.baselines.identity import Identity
from hdmm.baselines.kd_tree import KdTree
from hdmm.baselines.lrm import LRM
from hdmm.baselines.marginals import Marginals
from hdmm.baselines.matrix_mechanism import MatrixMechanism
from hdmm.baselines.plain import Plain
from hdmm.baselines.privelet import Privelet
from hdmm.baselines.quadtree import Quadtree

__all__ = [
    "COA",
    "H2",
    "HB",
    "LRM",
    "DataCube",
    "EigenDesign",
    "Fourier",
    "GreedyH",
    "Identity",
    "KdTree",
    "Marginals",
    "MatrixMechanism",
    "Plain",
    "Privelet",
    "Quadtree",
]
