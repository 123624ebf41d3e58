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
    own: Callable[[int, Array, int], Array],
    even: Callable[[int], Array],
) -> Array:
    """The sum over all subsets b of the attributes of what the parts say: own on the attributes in b, even on others.

    ``own(axis, array, place)`` acts on an attribute that lies at a place of the array; ``even(axis)`` is how a total is
    spread over its cells. Parts are shaped by their attributes; there may be none.
    """
    axes = tuple(sizes)
    known = {subset: part(subset) for subset in subsets(axes)}
    for place in reversed(range(len(axes))):
        axis = axes[place]
        for rest in subsets(axes[:place]):
            inside, outside = known.pop((*rest, axis)), known[rest]
            total: Array | None = None
            if outside is not None:
                lacking = np.expand_dims(outside, len(rest))
                shape = [-1 if dimension == len(rest) else 1 for dimension in range(lacking.ndim)]
                total = lacking * even(axis).reshape(shape)
            if inside is not None:
                acted = own(axis, inside, len(rest))
                total = acted if total is None else np.add(total, acted, out=total)
            known[rest] = total
    found = known[()]
    return np.zeros(tuple(sizes.values())) if found is None else found
