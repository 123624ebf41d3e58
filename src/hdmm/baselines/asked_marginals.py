"""Which marginals a workload asks for, whatever way it is written; or why it asks for more.

A product whose Gram is aI + b11ᵀ on each of its attributes asks for cells if a > 0 and for totals if b > 0: it stands
for a marginal on every choice of these. Errors depend on the workload by its Gram alone, so that nothing else about the
rows matters: neither their order, nor that `Identity() | Total()` on five attributes is one product for 32 marginals.
"""

from __future__ import annotations

from itertools import product as choices
from math import prod

import numpy as np

from hdmm.matrix import AllRange, AxisGram, Matrix, Prefix, Repeated, Select, Stack, Width
from hdmm.matrix.axes import Axes
from hdmm.workload import Encoded, EncodedProduct

_MAX_MARGINALS = 1 << 14
"""The most marginals of a workload."""
_MAX_CELLS = 1 << 11
"""The most cells of an attribute whose Gram is written out to see what it is."""
_ROUNDING = 1e-12
"""Differences that are smaller than this, relative to the largest entry, are rounding."""


def marginals_asked(workload: Encoded) -> list[Axes] | str:
    """The marginals that the products ask for, each once; the reason if some product asks for something else."""
    marginals = _all(workload.sought)
    if isinstance(marginals, str) and workload.compact is not workload.sought:
        together = _all(workload.compact)  # cells that are asked one by one
        return marginals if isinstance(together, str) else together
    return marginals


def _all(workload: Encoded) -> list[Axes] | str:
    known: dict[int, tuple[bool, ...] | None] = {}
    marginals: dict[Axes, None] = {}
    for product in workload.products:
        if product.condition is not None:
            return f"the product {product.name!r} has a condition across attributes; it takes marginals"
        for gram in product.grams.values():
            if id(gram) not in known:
                known[id(gram)] = _asked(gram)
        asked = {axis: known[id(gram)] for axis, gram in product.grams.items()}
        members: list[tuple[bool, ...]] = []
        for axis, kinds in asked.items():
            if kinds is None:
                return _reason(workload, product, axis)
            members.append(kinds)
        if prod(map(len, members)) > _MAX_MARGINALS:
            return f"the product {product.name!r} asks for more than {_MAX_MARGINALS:,} marginals"
        for choice in choices(*members):
            marginals[tuple(axis for axis, inside in zip(asked, choice, strict=True) if inside)] = None
        if len(marginals) > _MAX_MARGINALS:
            return f"the workload asks for more than {_MAX_MARGINALS:,} marginals"
    return list(marginals)


def _asked(gram: AxisGram) -> tuple[bool, ...] | None:
    """Whether an attribute is asked by its cells (True), its total (False), or both; None if by anything else."""
    pair = gram.two_eigenvalues()
    if pair is None:
        pair = _two_eigenvalues(gram)
    if pair is None:
        return None
    rest, total = pair
    negligible = _ROUNDING * max(abs(rest), abs(total))
    if rest < -negligible or total < rest - negligible:
        return None
    asked = ([True] if rest > negligible else []) + ([False] if total > rest + negligible else [])
    return tuple(asked)


def _two_eigenvalues(gram: AxisGram) -> tuple[float, float] | None:
    """The eigenvalues of aI + b11ᵀ, found by writing it out; None for any other Gram."""
    n = gram.size
    if n > _MAX_CELLS:
        return None
    entries = gram.dense()
    diagonal, beside = float(entries[0, 0]), float(entries[0, -1])
    expected = np.full((n, n), beside)
    np.fill_diagonal(expected, diagonal)
    if abs(entries - expected).max() > _ROUNDING * abs(entries).max():
        return None
    return diagonal - beside, diagonal + (n - 1) * beside


def _reason(workload: Encoded, product: EncodedProduct, axis: int) -> str:
    asked = _described(product.factors[axis])
    return (
        f"the product {product.name!r} asks about {asked} of {workload.attribute(axis)}; it takes marginals: Identity "
        "and Total"
    )


def _described(factor: Matrix) -> str:
    """What the rows of a matrix are, in a word or two."""
    match factor:
        case Prefix():
            return "prefixes"
        case AllRange() | Width():
            return "ranges"
        case Select() | Repeated():
            return _described(factor.inner)
        case Stack():
            words = [_described(part) for part in factor.parts]
            return next((word for word in words if word in ("prefixes", "ranges")), words[0])
    return "some values or groups"
