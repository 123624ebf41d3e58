"""Whether a workload asks for ranges on two attributes, whatever way it is written; or why it asks for more."""

from __future__ import annotations

from math import prod

import numpy as np

from hdmm.matrix import AllRange, Identity, Matrix, Partition, Prefix, Repeated, Select, Stack, Total, Width
from hdmm.matrix.axes import Axes
from hdmm.workload import Encoded

_MAX_WRITTEN = 1 << 24
"""The most entries of a matrix that is written out to see what it is."""


def attributes_of_ranges(workload: Encoded) -> Axes | str:
    """The two attributes on which ranges are asked; the reason if the workload is another one."""
    axes = workload.axes
    if not axes:
        return "only totals are asked for; it takes ranges on two attributes"
    if len(axes) != 2:
        names = f": {', '.join(map(workload.attribute, axes))}" if 0 < len(axes) <= 5 else ""
        many = "1 attribute" if len(axes) == 1 else f"{len(axes)} attributes"
        return f"the workload is about {many}{names}; it takes ranges on two"
    known: dict[int, bool] = {}
    for product in workload.products:
        if product.condition is not None:
            return f"the product {product.name!r} has a condition across attributes; it takes ranges"
        for axis, factor in product.factors.items():
            if id(factor) not in known:
                known[id(factor)] = _asks_ranges(factor)
            if not known[id(factor)]:
                return (
                    f"the product {product.name!r} asks about more than ranges of {workload.attribute(axis)}; it takes "
                    "Prefix, AllRange, Width, Ranges, Identity and Total"
                )
    return axes


def _asks_ranges(factor: Matrix) -> bool:
    """Whether every row is a range of neighbouring cells, or a multiple of one."""
    match factor:
        case AllRange() | Identity() | Partition() | Prefix() | Total() | Width():
            return True
        case Repeated():
            return _asks_ranges(factor.inner)
        case Stack():
            return all(map(_asks_ranges, factor.parts))
        case Select() if (np.diff(factor.columns) == 1).all():
            return _asks_ranges(factor.inner)
    if prod(factor.shape) > _MAX_WRITTEN:
        return False
    entries = factor.dense()
    counted = entries != 0
    begins = np.count_nonzero(np.diff(counted.astype(np.int8), axis=1, prepend=0) > 0, axis=1)
    even = (
        counted * abs(entries).max(axis=1, keepdims=True) * np.sign(entries.sum(axis=1, keepdims=True)) == entries
    ).all()
    return bool(even and (begins <= 1).all())
