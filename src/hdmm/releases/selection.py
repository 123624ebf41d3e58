"""Which records are counted: conditions and cells as signed sums of products of masks, and as queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from hdmm.errors import InputError
from hdmm.matrix import Condition, Matrix, Total
from hdmm.matrix.compose import restricted
from hdmm.matrix.condition import Box, Mask
from hdmm.schema import Schema
from hdmm.workload import EncodedProduct, Predicates
from hdmm.workload.conditions import across

Boxes: TypeAlias = tuple[Box, ...]
Counted: TypeAlias = str | Mapping[str, object] | None
"""Which records are counted: an SQL condition, or a value or predicate for each of some attributes; None for all."""
EVERYTHING: Boxes = (Box(1, {}),)


def boxes_of(schema: Schema, counted: Counted, argument: str) -> Boxes:
    """The cells that are counted, as a signed sum of products of masks."""
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


def rows_of(schema: Schema, attribute: str, predicates: Predicates) -> Mask:
    """The cells of every predicate on an attribute."""
    rows = predicates.matrix(attribute, schema[attribute]).dense()
    if not ((rows == 0) | (rows == 1)).all():
        raise InputError(f"attribute {attribute!r}: {predicates!r} does not count records; there are no shares of it")
    return rows.astype(bool)


def among(masks: Mapping[int, Mask], boxes: Boxes) -> Boxes:
    """Only the cells of one mask for each of some attributes."""
    return in_both((Box(1, masks),), boxes)


def in_both(one: Boxes, other: Boxes) -> Boxes:
    """The cells that two signed sums have in common."""
    products = []
    for left in one:
        for right in other:
            masks = {**left.masks, **right.masks}
            masks |= {axis: left.masks[axis] & right.masks[axis] for axis in left.masks.keys() & right.masks.keys()}
            products.append(Box(left.coefficient * right.coefficient, masks))
    return summed([(1, tuple(products))])


def summed(parts: Iterable[tuple[int, Boxes]]) -> Boxes:
    """A sum with factors; products that agree are taken together, and those that count nothing left out."""
    found: dict[tuple[tuple[int, bytes], ...], tuple[int, dict[int, Mask]]] = {}
    for factor, boxes in parts:
        for box in boxes:
            masks = {axis: box.masks[axis] for axis in sorted(box.masks) if not box.masks[axis].all()}
            if all(mask.any() for mask in masks.values()):
                key = tuple((axis, mask.tobytes()) for axis, mask in masks.items())
                known, _ = found.get(key, (0, masks))
                found[key] = (known + factor * box.coefficient, masks)
    return tuple(Box(coefficient, masks) for coefficient, masks in found.values() if coefficient)


def encoded(sizes: Sequence[int], boxes: Boxes, factors: Mapping[int, Matrix] | None = None) -> EncodedProduct:
    """Queries on some attributes, of which only what a signed sum holds is counted."""
    if len(boxes) == 1 and boxes[0].coefficient == 1:
        return each_alone(sizes, boxes, factors)[0]
    given = dict(factors or {})
    axes = sorted({*given, *(axis for box in boxes for axis in box.masks)})
    return EncodedProduct.of({axis: given.get(axis) or Total(sizes[axis]) for axis in axes}, Condition(boxes))


def each_alone(sizes: Sequence[int], boxes: Boxes, factors: Mapping[int, Matrix] | None = None) -> list[EncodedProduct]:
    """The same for each box of the sum, without its coefficient: what determines all of them determines their sum."""
    given = dict(factors or {})
    products = []
    for box in boxes:
        axes = sorted({*given, *box.masks})
        restrict = {axis: restricted(given.get(axis) or Total(sizes[axis]), box.masks.get(axis)) for axis in axes}
        products.append(EncodedProduct.of(restrict))
    return products
