"""Workloads whose Gram is written out: those of one attribute, or of several with few cells together."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from hdmm.matrix import Array, Norm
from hdmm.operators.base import MAX_CELLS_TOGETHER, Aside, Proposal, Solution
from hdmm.strategy import Block, Strategy
from hdmm.text import count_text
from hdmm.workload import Encoded

_LIGHT = 2.0**-10
"""The weight of a query on a single cell, as a share of its column's norm: it adds a thousandth to the error."""


def propose_over_cells(workload: Encoded, limit: int, solve: Callable[[Array], Solution | Aside]) -> Proposal | Aside:
    """What ``solve`` finds for the Gram of the workload, if it has at most ``limit`` cells.

    Several attributes may have at most as many cells together as for OPT_0.
    """
    axes = workload.axes
    if not axes:
        return Aside("only totals are asked for: there is nothing to optimise")
    cells = prod(workload.sizes[axis] for axis in axes)
    if len(axes) > 1:
        limit = min(limit, MAX_CELLS_TOGETHER)
    if cells > limit:
        many = f"the {len(axes)} attributes asked about have" if len(axes) > 1 else f"{workload.attribute(axes[0])} has"
        together = " together" if len(axes) > 1 else ""
        return Aside(f"{many} {count_text(cells)} cells{together}; at most {count_text(limit)} are written out")
    solution = solve(workload.compact.gram().on(axes).dense())
    if isinstance(solution, Aside):
        return solution
    block = Block(axes, (solution.matrix,))
    strategy = Strategy(workload.sizes, (block,), "kron" if len(axes) == 1 else "explicit")
    return Proposal(strategy, solution.bound)


def with_light_cells(queries: Array, norm: Norm, weight: float = _LIGHT) -> Array:
    """Queries of unit sensitivity with a light query on every cell beside them.

    Queries that span no more than a singular workload would, once rounded to integers, miss a part of it.
    """
    rest = (1 - weight**norm) ** (1 / norm)
    return np.concatenate([rest * queries, weight * np.eye(queries.shape[1])])
