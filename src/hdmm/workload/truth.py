"""SQL's three truth values over cells, and trees of conditions.

True is 1, unknown is 0 and false is −1: then AND is the minimum, OR the maximum, and NOT the negative (Kleene).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Truth: TypeAlias = NDArray[np.int8]
Mask: TypeAlias = NDArray[np.bool_]


@final
@dataclass(frozen=True, eq=False)
class Leaf:
    """A condition on one attribute, decided for each of its cells."""

    attribute: str
    truth: Truth


@final
@dataclass(frozen=True, eq=False)
class Conjunction:
    """Every part holds."""

    parts: tuple[Tree, ...]


@final
@dataclass(frozen=True, eq=False)
class Negation:
    """The inner condition is false."""

    inner: Tree


@final
@dataclass(frozen=True, eq=False)
class Is:
    """The inner condition has this truth value; itself it is never unknown."""

    inner: Tree
    value: bool | None


Tree: TypeAlias = Leaf | Conjunction | Negation | Is | bool | None
"""A condition; None is one that is always unknown."""


def disjunction(*parts: Tree) -> Tree:
    """Some part holds, by De Morgan's law."""
    return Negation(Conjunction(tuple(Negation(part) for part in parts)))


def truth_of(true: Mask, false: Mask) -> Truth:
    """Truth values from what is true and what is false; the rest is unknown."""
    return true.astype(np.int8) - false.astype(np.int8)


def truth_value(value: bool | None) -> int:
    """A truth value as a number."""
    return 0 if value is None else 1 if value else -1


def evaluate(tree: Tree, lookup: Callable[[Leaf], Truth]) -> Truth:
    """The truth values of a tree from those of its leaves."""
    match tree:
        case Leaf():
            return lookup(tree)
        case Conjunction():  # one part after the other: together they could fill the memory
            return reduce(np.minimum, (evaluate(part, lookup) for part in tree.parts))
        case Negation():
            return -evaluate(tree.inner, lookup)
        case Is():
            held = evaluate(tree.inner, lookup) == truth_value(tree.value)
            return truth_of(held, ~held)
    return np.array(truth_value(tree), np.int8)


def leaves_of(tree: Tree) -> Iterator[Leaf]:
    """All leaves of a tree."""
    match tree:
        case Leaf():
            yield tree
        case Conjunction():
            for part in tree.parts:
                yield from leaves_of(part)
        case Negation() | Is():
            yield from leaves_of(tree.inner)
