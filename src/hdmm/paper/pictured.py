"""Three strategies for all ranges of 256 cells, written out to be drawn (paper, section 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import numpy as np

from hdmm.estimators.least_squares import strategy_loss
from hdmm.matrix import Array, Dense, Norm
from hdmm.operators import Explicit
from hdmm.operators.base import Proposal
from hdmm.paper import workloads
from hdmm.paper.errors import noise_variance
from hdmm.strategy import Block, Strategy

CELLS = 256
_EXTRA_QUERIES = 16
_BRANCHES = 16
_DIGITS = 6
"""Decimals that are kept of each entry."""


def pictured(kind: str) -> Mapping[str, Any]:
    """A strategy of sensitivity 1: the weights of single cells, all other queries, and the RMSE at ε = 1."""
    encoded = workloads.one_d("all-range", CELLS).encoded
    norm: Norm = 2 if kind == "cholesky" else 1
    diagonal, queries = _STRATEGIES[kind]()
    matrix = np.vstack([np.diag(diagonal), queries]) if len(diagonal) else queries
    strategy = Strategy(encoded.sizes, (Block((0,), (Dense(matrix),)),), "explicit")
    squared = strategy_loss(strategy, encoded, norm)
    return {
        "rmse": sqrt(noise_variance(norm) * squared / encoded.query_count),
        "diagonal": np.round(diagonal, _DIGITS).tolist(),
        "queries": np.round(queries, _DIGITS).tolist(),
    }


def _cholesky() -> tuple[Array, Array]:
    """The optimum for Gaussian noise in upper triangular form."""
    entries = _optimised(Explicit(), 2)
    return np.empty(0), np.linalg.cholesky(entries.T @ entries).T


def _p_identity() -> tuple[Array, Array]:
    """The best p-Identity strategy found for Laplace noise; queries of no weight are left out, others in order."""
    entries = _optimised(Explicit(p=_EXTRA_QUERIES), 1)
    queries = entries[CELLS:]
    queries = queries[queries.max(axis=1) > 10.0**-_DIGITS]
    centres = queries @ np.arange(CELLS) / queries.sum(axis=1)
    return np.diag(entries[:CELLS]).copy(), queries[np.argsort(centres)]


def _hierarchy() -> tuple[Array, Array]:
    """Every cell, and every interval of 16 cells."""
    intervals = np.kron(np.eye(CELLS // _BRANCHES), np.ones((1, _BRANCHES)))
    return np.full(CELLS, 0.5), intervals / 2


_STRATEGIES: dict[str, Callable[[], tuple[Array, Array]]] = {
    "cholesky": _cholesky,
    "p-identity": _p_identity,
    "hierarchy": _hierarchy,
}


def _optimised(operator: Explicit, norm: Norm) -> Array:
    proposal = operator.propose(workloads.one_d("all-range", CELLS).encoded, norm)
    assert isinstance(proposal, Proposal)
    (block,) = proposal.strategy.blocks
    return block.factors[0].dense()
