"""How long the parts of hdmm take, by the size of the domain: seconds on this machine (paper, section 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from hdmm import matrix, operators
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Norm
from hdmm.operators.base import Operator, Proposal
from hdmm.optimise.descent import Effort
from hdmm.paper import workloads
from hdmm.workload import Encoded
from hdmm.workload.encoded import EncodedProduct

OPERATORS: dict[str, Operator] = {
    "OPT_⊗": operators.Kron(),
    "OPT_+": operators.Union(groups=()),
    "OPT_M": operators.Marginal(),
}
"""The operators on several attributes."""
_PRODUCTS = 10
_ONE_START = Effort(restarts=0, quick=True)
"""A search from one start: the paper stops after 5 rounds of 100 steps."""
_LEAST_SECONDS = 0.5
"""What is quicker is run again until this much time has passed; the quickest run counts."""


def opt0_time(n: int, norm: Norm) -> Mapping[str, Any]:
    """Seconds to find a strategy for all ranges of n cells, from every start and until nothing improves it."""
    encoded = workloads.one_d("all-range", n).encoded
    return {"seconds": _quickest(lambda: operators.Explicit().propose(encoded, norm))}


def operator_time(name: str, attributes: int, size: int) -> Mapping[str, Any]:
    """Seconds of an operator for ten products of all ranges, from one start, under Laplace noise."""
    encoded = ten_products(attributes, size)
    assert encoded.compact.products  # merging products is not the operator's work
    return {"seconds": _quickest(lambda: _proposed(name, encoded, 1))}


def reconstruct_time(name: str, attributes: int, size: int) -> Mapping[str, Any]:
    """Seconds from the noisy answers of an operator's strategy to the estimated count of every cell.

    The strategy is for Gaussian noise, whose factors are dense.
    """
    encoded = ten_products(attributes, size)
    strategy = _proposed(name, encoded, 2).strategy
    estimator = local_least_squares(strategy)
    answers = [np.ones(block.queries) for block in strategy.blocks]
    noise = strategy.unit_noise(2)
    cells = EncodedProduct.of(dict.fromkeys(range(attributes), matrix.Identity(size)))
    return {
        "seconds": _quickest(lambda: estimator.answer(cells, estimator.reconstruct(answers, noise))),
        "cells": size**attributes,
    }


def ten_products(attributes: int, size: int) -> Encoded:
    """Ten products of all ranges on every attribute, each in an order of values of its own.

    In one order, the ten would be one product with a weight, and so no longer a union.
    """
    products = []
    for seed in range(_PRODUCTS):
        order = np.array(workloads.shuffled(size, seed))
        factor = matrix.Select(matrix.AllRange(size), order, size)
        products.append(EncodedProduct.of(dict.fromkeys(range(attributes), factor)))
    return Encoded((size,) * attributes, tuple(products))


def _proposed(name: str, encoded: Encoded, norm: Norm) -> Proposal:
    proposal = OPERATORS[name].propose(encoded, norm, _ONE_START)
    assert isinstance(proposal, Proposal)
    return proposal


def _quickest(work: Callable[[], object]) -> float:
    best, start = float("inf"), perf_counter()
    while True:
        before = perf_counter()
        work()
        best = min(best, perf_counter() - before)
        if perf_counter() - start > _LEAST_SECONDS:
            return best
