"""SQL conditions, decided cell by cell, by SQL's logic of three values.

The cell "missing" is NULL: comparisons with it are unknown, and so are their negations. A condition selects the cells
for which it is true.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import TooLargeError, WorkloadError, closest, unquoted
from hdmm.matrix import Condition
from hdmm.matrix.condition import signed_boxes
from hdmm.numbers import shown
from hdmm.schema import Domain, Schema
from hdmm.schema.levels import level_names
from hdmm.workload.cells import Column, Computed, Resolve, check_cells
from hdmm.workload.clauses import read_condition, read_expression, shallow
from hdmm.workload.truth import Leaf, Mask, Truth, evaluate, leaves_of

_MAX_COMBINATIONS = 1 << 20
"""Combinations of classes of cells for which a condition is decided."""
_MAX_DECIDED = 1 << 31
"""Combinations of classes times comparisons: some seconds."""
_MAX_TERMS = 32
"""Products of masks that a condition across attributes may take."""


def truths(condition: str, name: str, domain: Domain) -> Truth:
    """The truth value in each cell of an attribute of a condition on it and on its levels."""
    check_cells(name, domain)
    with shallow(condition):
        tree = read_condition(condition, _within(name, domain), {name: domain})
        truth = evaluate(tree, lambda leaf: leaf.truth)
    return np.broadcast_to(truth, domain.size).copy()


def holds(condition: str, name: str, domain: Domain) -> Mask:
    """Which cells of an attribute satisfy a condition on it and on its levels."""
    return truths(condition, name, domain) > 0


def expression_cells(expression: str, name: str, domain: Domain) -> Column | Computed:
    """The values of an expression on an attribute and on its levels."""
    check_cells(name, domain)
    with shallow(expression):
        return read_expression(expression, _within(name, domain), {name: domain})


def _within(name: str, domain: Domain) -> Resolve:
    """What names mean beside one attribute: itself or one of its levels."""

    def resolve(column: str) -> tuple[str, str | None]:
        meanings: dict[str, str | None] = {**level_names(name, domain), name: None}
        if column in meanings:
            return name, meanings[column]
        close = [level for meant, level in meanings.items() if column.lower() == meant.lower()]
        if len(close) == 1:
            return name, close[0]
        near = closest(column, [name, *domain.levels])
        hint = f"; did you mean {near!r}?" if near is not None else "; give each attribute a predicate set of its own"
        raise WorkloadError(f"attribute {column!r} is not {name!r}{unquoted(column, [name]) or hint}")

    return resolve


def across(condition: str, schema: Schema) -> Condition:
    """The records that satisfy a condition on several attributes, as a signed sum of products of masks.

    If no record can satisfy it, the sum has no terms.
    """
    leaves: dict[str, list[Leaf]] = {}
    with shallow(condition):
        tree = read_condition(condition, schema.resolve, schema)
        for leaf in leaves_of(tree):
            leaves.setdefault(leaf.attribute, []).append(leaf)
    # Cells on which all leaves agree are one class: the condition is decided once for each combination of classes.
    names = [name for name in schema if name in leaves]
    classes: dict[int, NDArray[np.int64]] = {}
    outcomes: dict[int, Truth] = {}  # of each leaf, by its `id`, for every class of its attribute
    shape = []
    for place, name in enumerate(names):
        truth = np.stack([leaf.truth for leaf in leaves[name]])
        packed = np.ascontiguousarray(np.vstack([np.packbits(truth > 0, axis=0), np.packbits(truth < 0, axis=0)]).T)
        _, first, which = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True, return_inverse=True)
        classes[schema.axis(name)] = which.reshape(-1)
        shape.append(len(first))
        along = [len(first) if i == place else 1 for i in range(len(names))]
        outcomes |= {id(leaf): part.reshape(along) for leaf, part in zip(leaves[name], truth[:, first], strict=True)}
    _check_combinations(condition, prod(shape), len(outcomes))
    with shallow(condition):
        table = np.broadcast_to(evaluate(tree, lambda leaf: outcomes[id(leaf)]), shape)
    signed = signed_boxes(table > 0)
    if len(signed) > _MAX_TERMS:
        raise TooLargeError(
            f"condition {condition[:60]!r}: it takes {len(signed)} products; the limit is {_MAX_TERMS}; "
            "ask for its parts as products of their own, or merge its attributes"
        )
    return Condition.of(signed, classes)


def _check_combinations(condition: str, combinations: int, comparisons: int) -> None:
    """Refuse a condition that would take too long to decide."""
    if combinations > _MAX_COMBINATIONS:
        raise TooLargeError(
            f"condition {condition[:60]!r}: it distinguishes {combinations} combinations of values; the limit is "
            f"{_MAX_COMBINATIONS}; ask for its parts as products of their own"
        )
    if combinations * comparisons > _MAX_DECIDED:
        raise TooLargeError(
            f"condition {shown(condition)}: {comparisons:,} comparisons among {combinations:,} combinations of values "
            "are too many; ask for its parts as products of their own"
        )
