"""A marginal put together from parts, one for each subset of its attributes: what marginal and residual answers share.

A part lacks attributes, over which it is spread evenly. Attributes are added one by one, the last first, to all parts
that lack them, so that only the last step is about arrays of the full size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hdmm.matrix import Array
from hdmm.matrix.axes import Axes, subsets


def assemble(
    sizes: Mapping[int, int],
    part: Callable[[Axes], Array | None],
    act: Callable[[int, Array, int], Array],
    shares: Callable[[int], Array],
) -> Array:
    """The sum over all subsets of the attributes of what their parts say about the marginal.

    ``part(subset)`` is shaped by its attributes; there may be none. ``act(axis, array, place)`` acts on an attribute of
    the part, which lies at a place of the array. ``shares(axis)`` says how a total is spread over the cells of an
    attribute that the part lacks.
    """
    axes = tuple(sizes)
    parts = {subset: part(subset) for subset in subsets(axes)}
    for place in reversed(range(len(axes))):
        axis = axes[place]
        for rest in subsets(axes[:place]):
            inside, outside = parts.pop((*rest, axis)), parts[rest]
            total: Array | None = None
            if outside is not None:
                spread = shares(axis).reshape(-1, *[1] * (outside.ndim - len(rest)))
                total = np.expand_dims(outside, len(rest)) * spread
            if inside is not None:
                acted = act(axis, inside, len(rest))
                total = acted if total is None else np.add(total, acted, out=total)
            parts[rest] = total
    marginal = parts[()]
    return np.zeros(tuple(sizes.values())) if marginal is None else marginal
