"""Conditions across attributes as signed sums of products (paper, appendix A).

A set of cells of several attributes is written Σ_j c_j ⊗_i mask_ij, which is 0 or 1 at every cell. Disjoint boxes make
such a sum, and so does everything minus the boxes of the complement; the shorter of the two is taken: ``a OR b OR c``
is 1 − ¬a ⊗ ¬b ⊗ ¬c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
ClassMasks = dict[int, Mask]
"""For each restricted dimension of a table of classes, which classes are inside."""
SignedMasks = tuple[int, ClassMasks]


@final
@dataclass(frozen=True, eq=False)
class Box:
    """A coefficient and the masks of the attributes that it restricts, by axis."""

    coefficient: int
    masks: Mapping[int, Mask]


@final
@dataclass(frozen=True, eq=False)
class Condition:
    """A set of cells of several attributes, as a signed sum of products of masks."""

    boxes: tuple[Box, ...]

    @staticmethod
    def of(signed: Sequence[SignedMasks], classes: Mapping[int, NDArray[np.int64]]) -> Condition:
        """The condition with these boxes of classes.

        ``classes`` gives for each axis, in the order of the boxes' dimensions, the class of every cell.
        """
        axes = list(classes)
        return Condition(
            tuple(
                Box(sign, MappingProxyType({axes[i]: chosen[classes[axes[i]]] for i, chosen in sorted(masks.items())}))
                for sign, masks in signed
            )
        )

    @property
    def axes(self) -> tuple[int, ...]:
        """The attributes that it restricts."""
        return tuple(sorted({axis for box in self.boxes for axis in box.masks}))

    @property
    def coefficients(self) -> NDArray[np.int64]:
        """The coefficient of each box."""
        return np.array([box.coefficient for box in self.boxes], np.int64)

    def masks(self, axis: int, size: int) -> Mask:
        """The masks of an axis of ``size`` cells, one row for each box."""
        whole = np.ones(size, bool)
        return np.stack([box.masks.get(axis, whole) for box in self.boxes])

    def moved(self, places: Mapping[int, int]) -> Condition:
        """The same condition with its axes renumbered."""
        return Condition(
            tuple(
                Box(box.coefficient, MappingProxyType({places[axis]: mask for axis, mask in box.masks.items()}))
                for box in self.boxes
            )
        )

    def dense(self, sizes: Sequence[int]) -> Mask:
        """Whether it holds, for every cell in row-major order. The size is not checked."""
        holds = np.zeros(sizes, np.int8)
        for box in self.boxes:
            inside: NDArray[Any] = np.array(box.coefficient, np.int8).reshape([1] * len(sizes))
            for axis, mask in box.masks.items():
                shape = [1] * len(sizes)
                shape[axis] = sizes[axis]
                inside = inside * mask.reshape(shape)
            holds += inside
        return holds.astype(bool).reshape(-1)


def signed_boxes(table: NDArray[np.bool_]) -> list[SignedMasks]:
    """Few boxes, each added or subtracted, that add up to a table."""
    inside, outside = _boxes(table), _boxes(~table)
    if len(outside) + 1 < len(inside):
        return [(1, {}), *((-1, box) for box in outside)]
    return [(1, box) for box in inside]


def _boxes(table: NDArray[np.bool_]) -> list[ClassMasks]:
    """Disjoint boxes whose union is the true entries: cut along the axis with the fewest different slices, recurse."""
    if not table.any():
        return []
    if table.all():
        return [{}]
    cuts = []
    for axis in range(table.ndim):
        numbers: dict[bytes, int] = {}
        which = np.array([numbers.setdefault(part.tobytes(), len(numbers)) for part in np.moveaxis(table, axis, 0)])
        filled = len(numbers) - (bytes(table.size // table.shape[axis]) in numbers)
        cuts.append((filled, len(numbers) == 1, axis, which))
    # An axis that changes nothing comes last: once the others are cut, nothing depends on it.
    _, _, axis, which = min(cuts, key=lambda cut: (cut[1], cut[0], cut[2]))
    boxes = []
    for pattern in range(which.max() + 1):
        chosen = which == pattern
        inner = np.take(table, int(np.flatnonzero(chosen)[0]), axis=axis)
        for box in _boxes(inner):
            boxes.append({axis: chosen} | {i + (i >= axis): mask for i, mask in box.items()})
    return boxes
