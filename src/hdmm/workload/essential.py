"""What is essential of a product: the attributes on which it depends.

However a question is written, it is encoded by what it depends on. An attribute on which every predicate counts all
values, or the same multiple of all, is no attribute of the encoded product, and a product that counts nobody has none.
So searches, measurements and answers never see an attribute that does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import prod

import numpy as np

from hdmm.matrix import Array, AxisGram, Condition, Matrix, Repeated, Total, constant_rows
from hdmm.memory.workspace import check_answers
from hdmm.workload.encoded import ONCE, EncodedProduct


def essential_product(
    factors: Mapping[int, Matrix],
    condition: Condition | None,
    weight: Fraction,
    name: str = "",
    multiples_of: Callable[[Matrix], Array | None] = constant_rows,
    gram_of: Callable[[Matrix], AxisGram] = Matrix.axis_gram,
) -> EncodedProduct:
    """The product of these factors, in axis order, over the attributes on which it depends."""
    kept = _essential(factors, condition, multiples_of)
    if isinstance(kept, np.ndarray):
        return EncodedProduct({}, {}, weight, None, name, kept)
    return EncodedProduct(kept, {axis: gram_of(factor) for axis, factor in kept.items()}, weight, condition, name)


def _essential(
    factors: Mapping[int, Matrix], condition: Condition | None, multiples_of: Callable[[Matrix], Array | None]
) -> dict[int, Matrix] | Array:
    """The factors of the attributes on which a product depends; if there are none, its multiples of the total.

    On the other attributes each predicate is a multiple of the total. These multiples repeat the rows of a neighbouring
    attribute, so that all queries stay in their order.
    """
    constants = {axis: ONCE if isinstance(f, Total) else multiples_of(f) for axis, f in factors.items()}
    if condition is None and constants and all(multiples is None for multiples in constants.values()):
        return dict(factors)
    empty = any(multiples is not None and not multiples.any() for multiples in constants.values())
    if empty or (condition is not None and not satisfying_cells(condition, factors)[0]):
        queries = prod([factor.shape[0] for factor in factors.values()])
        check_answers(queries)
        return np.zeros(queries, np.int64)
    kept: dict[int, Matrix] = {}
    before = ONCE
    for axis, factor in factors.items():
        multiples = constants[axis]
        if multiples is None or (condition is not None and axis in condition.axes):
            kept[axis] = _repeated(factor if multiples is None else Total(factor.shape[1]), before=before)
            before = ONCE
        if multiples is not None and kept:
            last = next(reversed(kept))
            kept[last] = _repeated(kept[last], after=multiples)
        elif multiples is not None:
            check_answers(len(before) * len(multiples))
            before = np.multiply.outer(before, multiples).reshape(-1)
    if kept:
        return kept
    return ONCE if np.array_equal(before, ONCE) else before


def _repeated(factor: Matrix, before: Array = ONCE, after: Array = ONCE) -> Matrix:
    """A factor with its rows repeated; itself if that changes nothing."""
    if np.array_equal(before, ONCE) and np.array_equal(after, ONCE):
        return factor
    if isinstance(factor, Repeated):
        before = np.multiply.outer(before, factor.before).reshape(-1)
        after = np.multiply.outer(factor.after, after).reshape(-1)
        factor = factor.inner
    return Repeated(factor, before, after)


def satisfying_cells(condition: Condition, factors: Mapping[int, Matrix]) -> tuple[int, int]:
    """Of the cells that some query counts, how many satisfy the condition, and how many there are."""
    counted = {axis: factors[axis].column_norms(1) > 0 for axis in condition.axes}
    satisfying = sum(  # the boxes of the condition add up to it
        box.coefficient * prod([int((cells & box.masks.get(axis, True)).sum()) for axis, cells in counted.items()])
        for box in condition.boxes
    )
    return satisfying, prod([int(cells.sum()) for cells in counted.values()])
