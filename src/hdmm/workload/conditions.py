"""SQL conditions, decided cell by cell.

Comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses, on attributes and on their levels. The cells "other"
and "missing" satisfy no comparison, so they are in the negation of every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from math import prod

import numpy as np

from hdmm.errors import TooLargeError, WorkloadError, closest
from hdmm.matrix import Condition
from hdmm.matrix.condition import signed_boxes
from hdmm.numbers import shown
from hdmm.schema import Domain, Schema
from hdmm.workload.clauses import All, Leaf, Mask, Not, Tree, check_cells, read_condition, shallow

_COMBINATIONS = 1 << 20
"""The most combinations of cells, equal ones taken together, among which a condition is decided."""
_DECIDED = 1 << 31
"""The most combinations of cells times comparisons: some seconds."""
_TERMS = 32
"""The most products that a condition across attributes may take."""


def holds(condition: str, name: str, domain: Domain) -> Mask:
    """Which cells of an attribute satisfy a condition on it and on its levels."""

    def resolve(column: str) -> tuple[str, str | None]:
        known = [None, *domain.levels]
        for level in known:
            if column == (level or name):
                return name, level
        close = [level for level in known if column.lower() == (level or name).lower()]
        if len(close) == 1:
            return name, close[0]
        near = closest(column, [name, *domain.levels])
        hint = f"did you mean {near!r}?" if near is not None else "give each attribute a predicate set of its own"
        raise WorkloadError(f"attribute {column!r} is not {name!r}; {hint}")

    check_cells(name, domain)
    with shallow(condition):
        tree = read_condition(condition, resolve, {name: domain})
        mask = _evaluate(tree, lambda leaf: leaf.mask)
    return np.broadcast_to(mask, domain.size).copy()


def across(condition: str, schema: Schema) -> Condition:
    """The records that satisfy a condition on several attributes, as a signed sum of products of masks.

    Where no record can satisfy it, the sum has no terms.
    """
    leaves: dict[str, list[Leaf]] = {}
    with shallow(condition):
        tree = read_condition(condition, schema.resolve, schema)
        for leaf in _leaves(tree):
            leaves.setdefault(leaf.attribute, []).append(leaf)
    names = [name for name in schema if name in leaves]
    # Cells that no leaf tells apart are one class: the condition is decided once for each combination of classes.
    patterns, classes = {}, {}
    for name in names:
        masks = np.stack([leaf.mask for leaf in leaves[name]])
        packed = np.ascontiguousarray(np.packbits(masks, axis=0).T)
        _, first, which = np.unique(packed.view(f"V{packed.shape[1]}"), return_index=True, return_inverse=True)
        patterns[name] = masks[:, first]
        classes[schema.axis(name)] = which.reshape(-1)
    shape = [patterns[name].shape[1] for name in names]
    if prod(shape) > _COMBINATIONS:
        raise TooLargeError(
            f"condition {condition[:60]!r}: it tells {prod(shape)} combinations of values apart; the limit is "
            f"{_COMBINATIONS}; ask for its parts as products of their own"
        )

    if prod(shape) * sum(map(len, leaves.values())) > _DECIDED:
        raise TooLargeError(
            f"condition {shown(condition)}: {sum(map(len, leaves.values())):,} comparisons among "
            f"{prod(shape):,} combinations of values are too many; ask for its parts as products of their own"
        )
    places = {id(leaf): place for own in leaves.values() for place, leaf in enumerate(own)}

    def lookup(leaf: Leaf) -> Mask:
        place = places[id(leaf)]
        axis = names.index(leaf.attribute)
        pattern: Mask = patterns[leaf.attribute][place]
        return pattern.reshape([len(pattern) if i == axis else 1 for i in range(len(names))])

    with shallow(condition):
        table = np.broadcast_to(_evaluate(tree, lookup), shape)
    signed = signed_boxes(table)
    if len(signed) > _TERMS:
        raise TooLargeError(
            f"condition {condition[:60]!r}: it takes {len(signed)} products; the limit is {_TERMS}; "
            "ask for its parts as products of their own, or merge its attributes"
        )
    return Condition.of(signed, classes)


def _evaluate(tree: Tree, lookup: Callable[[Leaf], Mask]) -> Mask:
    match tree:
        case Leaf():
            return lookup(tree)
        case All():  # one part after the other: together they could fill the memory
            return reduce(np.bitwise_and, (_evaluate(part, lookup) for part in tree.parts))
        case Not():
            return ~_evaluate(tree.inner, lookup)
    return np.full((), tree)


def _leaves(tree: Tree) -> Iterator[Leaf]:
    match tree:
        case Leaf():
            yield tree
        case All():
            for part in tree.parts:
                yield from _leaves(part)
        case Not():
            yield from _leaves(tree.inner)
