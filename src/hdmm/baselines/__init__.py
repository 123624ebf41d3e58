"""Baselines: operators that need no optimisation, the competitors of the paper among them."""

from hdmm.baselines.data_cube import DataCube
from hdmm.baselines.fourier import Fourier
from hdmm.baselines.identity import Identity
from hdmm.baselines.marginals import Marginals
from hdmm.baselines.plain import Plain

__all__ = ["DataCube", "Fourier", "Identity", "Marginals", "Plain"]
