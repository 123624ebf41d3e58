"""The factors of strategies as plan files hold them: by name, as an array, or by what a structured one is made of."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from hdmm import matrix
from hdmm.files.artefact import decode_numbers, encode_array
from hdmm.files.model import Model
from hdmm.matrix import Array, Folded, Matrix
from hdmm.matrix.haar import Haar
from hdmm.matrix.hats import Hats
from hdmm.matrix.tree import Tree

_NAMED_FACTORS: dict[str, Callable[[int], Matrix]] = {
    "identity": matrix.Identity,
    "total": matrix.Total,
    "centred": matrix.Spiked.centred,
    "haar": Haar,
}
"""Factors that files hold by their name; their size is that of the attribute."""
_TREE = re.compile(r"tree (?P<branching>[2-9]|[1-9][0-9]{1,8})(?P<rootless> without root)?")
"""Names of balanced hierarchies: into how many parts a part is divided, and whether all cells together are one."""


class TreeData(Model):
    """A hierarchy that is no balanced one: the sizes and weights of all parts, level by level."""

    sizes: str
    weights: str

    def factor(self) -> Matrix:
        """The hierarchy."""
        sizes, weights = read_array(self.sizes), read_array(self.weights)
        if sizes.ndim != 1 or sizes.shape != weights.shape or {sizes.dtype.kind, weights.dtype.kind} != {"i"}:
            raise ValueError("a hierarchy has an integer size and weight for every part")
        return Tree.of_parts(sizes, weights)


class FoldedData(Model):
    """A folded convolution: its basis, its kernel and the scale of each cell."""

    basis: Literal["sine", "cosine"]
    kernel: str
    scales: str

    def factor(self) -> Matrix:
        """The folded convolution."""
        kernel, scales = read_array(self.kernel), read_array(self.scales)
        if {kernel.dtype.kind, scales.dtype.kind} != {"i"}:
            raise ValueError("a folded convolution has an integer kernel and integer scales")
        return Folded(self.basis, kernel, scales)


class HatsData(Model):
    """A pyramid of hats: how many cells, the spacings of its levels, the heights of all hats, and a column's sum."""

    cells: int
    spacings: list[int]
    heights: str
    scale: int

    def factor(self) -> Matrix:
        """The pyramid."""
        heights = read_array(self.heights)
        if heights.ndim != 1 or heights.dtype.kind != "i":
            raise ValueError("a pyramid of hats has an integer height for every hat")
        return Hats.of_heights(self.cells, self.spacings, heights, self.scale)


FactorData: TypeAlias = str | TreeData | HatsData | FoldedData
"""An array as text (its rows, or the ends of groups of cells), or a structured matrix."""


def read_factor(data: FactorData, cells: int) -> Matrix:
    """A factor of at most this many cells from its data; anything else is a ValueError."""
    if isinstance(data, HatsData):
        if data.cells > cells:  # it takes memory for each
            raise ValueError("a pyramid of hats has more cells than any attribute")
        return data.factor()
    if not isinstance(data, str):
        return data.factor()
    array = read_array(data)
    if array.ndim == 1 and array.size and array.dtype.kind == "i":
        return matrix.Partition(int(array[-1]), tuple(array.tolist()))
    if array.ndim != 2:
        raise ValueError("a factor is not a matrix over its attribute")
    return matrix.Dense(array)


def factor_data(factor: Matrix) -> FactorData:
    """A factor that has no name, as files hold it."""
    if isinstance(factor, matrix.Partition):
        return array_text(np.array(factor.ends))
    if isinstance(factor, Folded):
        return FoldedData(basis=factor.basis, kernel=array_text(factor.values), scales=array_text(factor.scales))
    if isinstance(factor, Hats):
        heights = array_text(np.concatenate(factor.heights))
        return HatsData(cells=factor.n, spacings=list(factor.spacings), heights=heights, scale=factor.scale)
    if not isinstance(factor, Tree):
        return array_text(factor.dense())
    sizes, weights = np.concatenate(factor.sizes), np.concatenate(factor.weights)
    return TreeData(sizes=array_text(sizes), weights=array_text(weights))


def factor_name(factor: Matrix) -> str | None:
    """The name that says everything about a factor but its size; None for factors that are stored."""
    if isinstance(factor, Tree):
        form = factor.balanced_form
        return None if form is None else f"tree {form[0]}{'' if form[1] else ' without root'}"
    return next((name for name, of in _NAMED_FACTORS.items() if factor == of(factor.shape[1])), None)


def named_factor(name: str, size: int) -> Matrix | None:
    """The factor of a name; None if the name is none of those that all files share."""
    if name in _NAMED_FACTORS:
        return _NAMED_FACTORS[name](size)
    form = _TREE.fullmatch(name)
    return None if form is None else Tree.balanced(size, int(form["branching"]), root=form["rootless"] is None)


def read_array(text: str) -> Array:
    """An array from its text."""
    return decode_numbers(base64.b64decode(text, validate=True), "a factor")


def array_text(array: Array) -> str:
    """An array as text: base64 of its npy form."""
    return base64.b64encode(encode_array(array)).decode()
