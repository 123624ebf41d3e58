"""Implicit matrices: known by what they do to vectors, never by their entries. No privacy and no schema here."""

from hdmm.matrix.arrays import Array
from hdmm.matrix.axis_gram import AxisGram
from hdmm.matrix.base import Matrix, Norm, Number
from hdmm.matrix.compose import Filtered, Kron, Stack
from hdmm.matrix.condition import Condition
from hdmm.matrix.folded import Folded
from hdmm.matrix.gram import Gram
from hdmm.matrix.haar import Haar
from hdmm.matrix.hats import Hats
from hdmm.matrix.leaf import MAX_ENTRY, AllRange, Dense, Identity, Prefix, Spiked, Total, Width
from hdmm.matrix.partition import Partition
from hdmm.matrix.pidentity import PIdentity, PIdentityInverse
from hdmm.matrix.solvable import Solvable
from hdmm.matrix.spans import Spans, many_cells, sum_over, sums_over
from hdmm.matrix.tree import Tree
from hdmm.matrix.wrappers import Complement, Repeated, Restricted, Select, constant_rows
from hdmm.memory.workspace import DENSE_LIMIT

__all__ = [
    "DENSE_LIMIT",
    "MAX_ENTRY",
    "AllRange",
    "Array",
    "AxisGram",
    "Complement",
    "Condition",
    "Dense",
    "Filtered",
    "Folded",
    "Gram",
    "Haar",
    "Hats",
    "Identity",
    "Kron",
    "Matrix",
    "Norm",
    "Number",
    "PIdentity",
    "PIdentityInverse",
    "Partition",
    "Prefix",
    "Repeated",
    "Restricted",
    "Select",
    "Solvable",
    "Spans",
    "Spiked",
    "Stack",
    "Total",
    "Tree",
    "Width",
    "constant_rows",
    "many_cells",
    "sum_over",
    "sums_over",
]
