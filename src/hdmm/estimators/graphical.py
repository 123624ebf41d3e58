"""Private-PGM (McKenna, Sheldon and Miklau 2019): the graphical model that fits the noisy measurements best.

Of all distributions over the full domain whose answers fit the measurements best, each weighted by its noise, the model
is the one of most entropy: it says nothing that was not measured. So it answers any product, also across tables, and
its records can be drawn. It is fitted by `mbi`, an optional dependency; the total is always the noisy least-squares
one. What it costs grows with its junction tree, whose size is estimated first. Biased, because it is never negative.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from math import prod, sqrt
from typing import Any, final

import numpy as np

from hdmm.errors import FaultError, InputError, NotSupportedError, TooLargeError
from hdmm.estimators.biased import LEAST_VARIANCE, BiasedEstimator, estimated_total
from hdmm.estimators.estimator import LinearEstimator, Noise, weighing_variances
from hdmm.matrix import Array, Identity
from hdmm.matrix.axes import Axes
from hdmm.memory import memory_limit, more_memory
from hdmm.strategy import Block, Strategy
from hdmm.text import bytes_text, count_text
from hdmm.workload import EncodedProduct

MAX_TREE_CELLS = 10_000_000
"""The most cells of a junction tree that is fitted: it takes minutes."""
_CELL_BYTES = 256
"""Bytes for each cell of a junction tree while it is fitted, with some to spare."""
_MAX_ROUNDS = 5_000
"""The most rounds of mirror descent."""
_TOLERANCE = 1e-6
"""The fit has settled if fifty rounds lower the loss by less than this share, twice in a row."""


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A distribution over the full domain, times a number of records. Biased; no interval is claimed."""

    sizes: tuple[int, ...]
    total: float
    model: Any
    """The model as mbi has it; its attributes are the axes."""
    label: str = "Private-PGM"

    def answer(self, product: EncodedProduct) -> Array:
        """The answers to any product, also of attributes that no measurement has together."""
        sizes = {axis: self.sizes[axis] for axis in product.axes}
        if not sizes:
            return product.matrix({}).apply(np.array([self.total]))
        if prod(sizes.values()) > MAX_TREE_CELLS:
            raise TooLargeError(
                f"product {product.name!r}: its table has {count_text(prod(sizes.values()))} cells; at most "
                f"{count_text(MAX_TREE_CELLS)} are worked out: ask for products of fewer attributes"
            )
        with double():
            table = np.asarray(self.model.project(product.axes).datavector(), float)
        return product.matrix(sizes).apply(table)


def available() -> bool:
    """Whether mbi is installed."""
    return find_spec("mbi") is not None


@final
class PrivatePGM(BiasedEstimator[FittedModel]):
    """The graphical model that fits all measurements best."""

    def __init__(self, unbiased: LinearEstimator[Any]) -> None:
        self.strategy = unbiased.strategy
        self._unbiased = unbiased

    def reconstruct(self, answers: Sequence[Array], noise: Noise) -> FittedModel:
        strategy = self.strategy
        check_tree(strategy)
        if not available():
            raise InputError("Private-PGM needs the package mbi, which is not installed: pip install 'hdmm[pgm]'")
        unbiased_total = estimated_total(self._unbiased, answers, noise)
        if unbiased_total is None:
            raise NotSupportedError(
                "Private-PGM needs an estimate of the number of records, which the plan's measurements do not give: "
                "plan for a workload with the product 'total'"
            )
        total = max(unbiased_total, 1.0)  # a distribution times no records has no shape
        variances = weighing_variances(strategy.blocks, noise, LEAST_VARIANCE)
        scale = max(1.0, *noise) / max(variances)  # only how blocks are weighed against each other matters
        with double():
            from mbi import Domain, LinearMeasurement
            from mbi.estimation import MirrorDescent

            domain = Domain(tuple(range(len(strategy.sizes))), strategy.sizes)
            measured = [
                LinearMeasurement(answer.astype(float), block.axes, stddev=sqrt(scale * variance), query=_Query(block))
                for block, answer, variance in zip(strategy.blocks, answers, variances, strict=True)
                if block.axes  # the total is fixed already
            ]
            model = MirrorDescent().estimate(domain, measured, known_total=total, iters=_MAX_ROUNDS, tol=_TOLERANCE)
            if not all(np.isfinite(np.asarray(table.values)).all() for table in model.marginals.tables.values()):
                raise FaultError("Private-PGM did not settle; use non-negative least squares, or report the spec")
        return FittedModel(strategy.sizes, total, model)


def check_tree(strategy: Strategy) -> None:
    """Refuse measurements whose junction tree is too large, from public shapes alone."""
    cells = tree_cells(strategy.sizes, {block.axes for block in strategy.blocks})
    if cells > MAX_TREE_CELLS:
        raise TooLargeError(
            f"Private-PGM would work on a junction tree of about {count_text(cells)} cells; at most "
            f"{count_text(MAX_TREE_CELLS)} are fitted: plan for fewer or smaller tables, for example pairs of "
            "attributes without large cycles, or use non-negative least squares"
        )
    if cells * _CELL_BYTES > memory_limit():
        raise TooLargeError(
            f"Private-PGM needs {bytes_text(cells * _CELL_BYTES)} for a junction tree of {count_text(cells)} cells; "
            f"the limit is {bytes_text(memory_limit())}: use non-negative least squares"
            f"{more_memory()}"
        )


def tree_cells(sizes: Sequence[int], cliques: Collection[Axes]) -> int:
    """How many cells a junction tree has: attributes leave one by one, the cheapest first, joining their neighbours."""
    neighbours: dict[int, set[int]] = {axis: set() for axes in cliques for axis in axes}
    for axes in cliques:
        for first, second in combinations(axes, 2):
            neighbours[first].add(second)
            neighbours[second].add(first)
    costs = {axis: _cost(axis, neighbours, sizes) for axis in neighbours}
    total = 0
    while costs:
        axis = min(costs, key=lambda axis: (costs[axis], axis))
        total += costs.pop(axis)
        around = neighbours.pop(axis)
        for other in around:
            neighbours[other] |= around
            neighbours[other] -= {axis, other}
        costs |= {other: _cost(other, neighbours, sizes) for other in around}
    return total


def _cost(axis: int, neighbours: Mapping[int, set[int]], sizes: Sequence[int]) -> int:
    return sizes[axis] * prod(sizes[other] for other in neighbours[axis])


@contextmanager
def double() -> Iterator[None]:
    """Let jax compute in double precision inside the `with` block; counts of large populations need it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mbi warns about settings of jax that are changed here, or do no harm
        import jax

        with jax.enable_x64(True):
            yield


@final
class _Query:
    """A block's queries on the marginal of its attributes, for jax. Known by its identity, as jax wants it."""

    def __init__(self, block: Block) -> None:
        self._shape = tuple(factor.shape[1] for factor in block.factors)
        self._factors = tuple(
            None if isinstance(factor, Identity) else factor.dense().astype(float) for factor in block.factors
        )
        places = {axis: place for place, axis in enumerate(block.axes)}
        self._mask = None if block.condition is None else block.condition.moved(places).dense(self._shape)
        self._norm = prod(1.0 if matrix is None else float(np.linalg.norm(matrix, 2)) for matrix in self._factors)

    def __call__(self, marginal: Any) -> Any:
        import jax.numpy as jnp

        table = marginal.datavector()
        if self._mask is not None:
            table = table * self._mask.reshape(-1)
        table = table.reshape(self._shape)
        for place, matrix in enumerate(self._factors):
            if matrix is not None:
                table = jnp.moveaxis(jnp.tensordot(matrix, table, axes=(1, place)), 0, place)
        return table.reshape(-1)

    def op_norm_sq(self) -> float:
        """The square of the largest factor by which an answer can be longer than a table."""
        return self._norm**2
