"""Operators: each proposes a strategy for a workload. `select` runs several and keeps the best."""

from hdmm.operators.base import Operator
from hdmm.operators.explicit import Explicit
from hdmm.operators.kron import Kron
from hdmm.operators.marginal import Marginal
from hdmm.operators.marginal_plus import MarginalPlus
from hdmm.operators.residual import Residual
from hdmm.operators.symmetric import Symmetric
from hdmm.operators.union import Union

__all__ = ["Explicit", "Kron", "Marginal", "MarginalPlus", "Operator", "Residual", "Symmetric", "Union"]
