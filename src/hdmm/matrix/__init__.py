"""Implicit matrices: known by what they do to vectors, never by their entries. No privacy and no schema here."""

from hdmm.matrix.base import Array, Matrix, Norm, Number
from hdmm.matrix.cells import Complement, Repeated, Restricted, Select, constant_rows
from hdmm.matrix.compose import Filtered, Kron, Stack
from hdmm.matrix.condition import Condition
from hdmm.matrix.factors import Factor
from hdmm.matrix.gram import Gram
from hdmm.matrix.leaf import LARGEST, AllRange, Dense, Identity, Prefix, Spiked, Total, Width
from hdmm.matrix.marginal import MarginalGram, marginal_matrix
from hdmm.matrix.pidentity import PIdentity, PIdentityInverse
from hdmm.matrix.workspace import DENSE_LIMIT

__all__ = [
    "DENSE_LIMIT",
    "LARGEST",
    "AllRange",
    "Array",
    "Complement",
    "Condition",
    "Dense",
    "Factor",
    "Filtered",
    "Gram",
    "Identity",
    "Kron",
    "MarginalGram",
    "Matrix",
    "Norm",
    "Number",
    "PIdentity",
    "PIdentityInverse",
    "Prefix",
    "Repeated",
    "Restricted",
    "Select",
    "Spiked",
    "Stack",
    "Total",
    "Width",
    "constant_rows",
    "marginal_matrix",
]
