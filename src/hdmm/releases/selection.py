"""The records to count: conditions and values as signed sums of boxes of cells, and as queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import product
from typing import TypeAlias

import numpy as np

from hdmm.errors import InputError, WorkloadError
from hdmm.matrix import Condition, Matrix, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.condition import Box, Mask
from hdmm.plans import Plan
from hdmm.schema import Schema
from hdmm.workload import EncodedProduct, Predicates
from hdmm.workload.conditions import across
from hdmm.workload.products import named_in
from hdmm.workload.values import Total as AllValues

Boxes: TypeAlias = tuple[Box, ...]
Counted: TypeAlias = str | Mapping[str, object] | None
"""The records to count: an SQL condition, or a value or predicate for each of some attributes; None for all."""
EVERYTHING: Boxes = (Box(1, {}),)


def read_boxes(plan: Plan, counted: Counted, argument: str) -> Boxes:
    """The cells that are counted; refuse attributes that the release did not read."""
    boxes = boxes_of(plan.workload.schema, counted, argument)
    if isinstance(counted, str):
        check_counted(plan, named_in(counted, plan.workload.schema), argument)
    elif counted is not None:
        check_counted(plan, {name for name, value in counted.items() if not isinstance(value, AllValues)}, argument)
    return boxes


def boxes_of(schema: Schema, counted: Counted, argument: str) -> Boxes:
    """The cells that are counted, as a signed sum of boxes."""
    if counted is None:
        return EVERYTHING
    if isinstance(counted, str):
        return across(counted, schema).boxes
    if not isinstance(counted, Mapping):
        raise InputError(
            f"{argument}={counted!r}: expected an SQL condition or a mapping from attributes to values, for example "
            "{'sex': 'F'}"
        )
    masks = {}
    for attribute, value in counted.items():
        axis, domain = schema.axis(attribute), schema[attribute]
        if isinstance(value, Predicates):
            rows = rows_of(schema, attribute, value)
            if len(rows) != 1:
                raise InputError(f"{argument}: {value!r} on {attribute!r} holds {len(rows)} predicates; give one")
            masks[axis] = rows[0]
        else:
            masks[axis] = np.arange(domain.size) == domain.code(value)
    return among(masks, EVERYTHING)


def check_counted(plan: Plan, names: Set[str], place: str) -> None:
    """Refuse attributes that the release did not read: even a condition that every value satisfies says something."""
    unread = [repr(name) for name in plan.workload.schema if name in names and name not in plan.counted]
    if unread:
        raise WorkloadError(
            f"{place}: the release measured nothing about {', '.join(unread)}; a new plan must ask for it"
        )


def rows_of(schema: Schema, attribute: str, predicates: Predicates) -> Mask:
    """The cells of every predicate on an attribute."""
    rows = predicates.matrix(attribute, schema[attribute]).dense()
    if not ((rows == 0) | (rows == 1)).all():
        raise InputError(f"attribute {attribute!r}: {predicates!r} does not count records; there are no shares of it")
    return rows.astype(bool)


def among(masks: Mapping[int, Mask], boxes: Boxes) -> Boxes:
    """The cells of some boxes that lie in one mask for each of some attributes."""
    return in_both((Box(1, masks),), boxes)


def in_both(first: Boxes, second: Boxes) -> Boxes:
    """The cells that two signed sums have in common."""
    products = []
    for a, b in product(first, second):
        common = {axis: a.masks[axis] & b.masks[axis] for axis in a.masks.keys() & b.masks.keys()}
        products.append(Box(a.coefficient * b.coefficient, {**a.masks, **b.masks, **common}))
    return summed([(1, tuple(products))])


def summed(parts: Iterable[tuple[int, Boxes]]) -> Boxes:
    """A sum of signed sums, each with a factor; equal boxes are merged, and boxes without cells are left out."""
    merged: dict[tuple[tuple[int, bytes], ...], Box] = {}
    for factor, boxes in parts:
        for box in boxes:
            masks = {axis: box.masks[axis] for axis in sorted(box.masks) if not box.masks[axis].all()}
            if all(mask.any() for mask in masks.values()):
                key = tuple((axis, mask.tobytes()) for axis, mask in masks.items())
                before = merged[key].coefficient if key in merged else 0
                merged[key] = Box(before + factor * box.coefficient, masks)
    return tuple(box for box in merged.values() if box.coefficient)


def encoded(sizes: Sequence[int], boxes: Boxes, factors: Mapping[int, Matrix] | None = None) -> EncodedProduct:
    """Queries on some attributes that count only the cells of a signed sum."""
    if len(boxes) == 1 and boxes[0].coefficient == 1:
        return each_alone(sizes, boxes, factors)[0]
    factors = factors or {}
    axes = sorted({*factors, *(axis for box in boxes for axis in box.masks)})
    return EncodedProduct.of({axis: factors.get(axis) or Total(sizes[axis]) for axis in axes}, Condition(boxes))


def each_alone(sizes: Sequence[int], boxes: Boxes, factors: Mapping[int, Matrix] | None = None) -> list[EncodedProduct]:
    """The same for each box alone, without its coefficient: what determines all of them determines their sum."""
    factors = factors or {}
    products = []
    for box in boxes:
        axes = sorted({*factors, *box.masks})
        matrices = {axis: restricted(factors.get(axis) or Total(sizes[axis]), box.masks.get(axis)) for axis in axes}
        products.append(EncodedProduct.of(matrices))
    return products
