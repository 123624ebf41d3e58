"""Implicit matrices: known by what they do to vectors, never by their entries. No privacy and no schema here."""

from hdmm.matrix.base import DENSE_LIMIT, Array, Matrix, Norm, Number
from hdmm.matrix.cells import Complement, Select
from hdmm.matrix.compose import Kron, Stack, Sum
from hdmm.matrix.factors import Factor
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import LARGEST, AllRange, Dense, Identity, Prefix, Total, Width
from hdmm.matrix.marginal import MarginalGram, marginal_matrix

__all__ = [
    "DENSE_LIMIT",
    "LARGEST",
    "AllRange",
    "Array",
    "Complement",
    "Dense",
    "Factor",
    "Gram",
    "Identity",
    "Kron",
    "MarginalGram",
    "Matrix",
    "Norm",
    "Number",
    "Prefix",
    "Select",
    "Stack",
    "Sum",
    "Total",
    "Width",
    "marginal_matrix",
]
