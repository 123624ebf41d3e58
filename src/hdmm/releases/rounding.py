"""Controlled rounding: integer tables that add up, with every cell within 1 of its estimate.

Rows and columns of a two-way table, and its total, can always be rounded with the cells so that everything adds up and
is within 1 of its estimate (Cox and Ernst 1982): it is a flow in a network with integer bounds. The same network has
room for two nested families of sums in tables of more ways: on the first attributes (the first; the first two; …) and
on the last ones. These are all rounded to a neighbouring integer; the sums on other sets of attributes are sums of the
rounded cells like all others, but may be further from their estimate: in three ways, a table for which all sums stay
within 1 need not exist. Of all such tables, one whose largest change of a cell is least is taken, to within 0.01. In
one way that is simple, and exact: as many cells as the total needs go up, those that have the least way to go.

Each table is rounded by itself: two tables that agree before need not agree after.
"""

from __future__ import annotations

from math import prod
from typing import final

import numpy as np

from hdmm.errors import InputError, TooLargeError
from hdmm.matrix import Array, Matrix
from hdmm.text import count_text
from hdmm.workload import EncodedProduct

_UNIT = 1 << 40
"""Fractions are counted in units of 2⁻⁴⁰, so that sums of them are exact and the flow exists for certain."""
_CELLS = 1 << 22
_LARGEST = 1 << 50
_HALVINGS = 6


def round_table(table: Array) -> Array:
    """Integers in place of a table's estimates: cells, the total, and sums on the first and the last attributes.

    >>> round_table(np.array([[0.5, 1.5], [1.5, 0.5]])).sum(axis=0).tolist()
    [2, 2]
    """
    values = np.asarray(table, float)
    if values.ndim < 2:
        return _round_rows(values.reshape(1, -1)).reshape(values.shape)
    if values.size > _CELLS:
        raise TooLargeError(f"table: has {values.size} cells; at most {_CELLS} are rounded together")
    whole, parts = _split(values)
    network = _Network(parts)
    low, high = 0, 1 << _HALVINGS  # in steps of ½/2^halvings: cells so near to an integer are rounded to it
    best = network.flow(0)
    assert best is not None, "a rounding exists where cells are free to go either way"
    while high - low > 1:
        middle = (low + high) // 2
        nearer = network.flow(middle * _UNIT >> (_HALVINGS + 1))
        if nearer is None:
            high = middle
        else:
            low, best = middle, nearer
    return whole + best


def round_answers(answers: Array, product: EncodedProduct) -> Array:
    """The answers to a product as whole numbers, with their sums over attributes whose predicates are disjoint.

    Where a record may satisfy several predicates of an attribute, as with prefixes, answers do not add up over it: they
    are rounded apart for each of them.
    """
    apart = [place for place, factor in enumerate(product.factors.values()) if not _disjoint(factor)]
    table = np.moveaxis(answers.reshape(product.shape), apart, range(len(apart)))
    together = table.shape[len(apart) :]
    if prod(together) > _CELLS and len(together) > 1:
        raise TooLargeError(
            f"product {product.name!r}: has {count_text(prod(together))} answers that add up, and at most "
            f"{count_text(_CELLS)} are rounded together; leave rounded out"
        )
    pieces = table.reshape(-1, *together)
    if len(together) < 2:
        rounded = _round_rows(pieces.reshape(len(pieces), -1))
    else:
        rounded = np.stack([round_table(piece) for piece in pieces])
    return np.moveaxis(rounded.reshape(table.shape), range(len(apart)), apart).reshape(-1)


def _split(values: Array) -> tuple[Array, Array]:
    """Integers below, and what is left in units."""
    if values.size == 0 or not np.isfinite(values).all() or abs(values).max() > _LARGEST:
        raise InputError("table: expected at least one estimate, each a finite number of at most 2^50")
    whole = np.floor(values).astype(np.int64)
    parts = np.rint((values - whole) * _UNIT).astype(np.int64)
    return whole + parts // _UNIT, parts % _UNIT


def _round_rows(values: Array) -> Array:
    """Each row with its sum: as many cells as the sum needs go up, those that have the least way to go."""
    whole, parts = _split(values)
    more = (parts.sum(axis=1) + _UNIT // 2) // _UNIT
    places = np.empty_like(parts)
    np.put_along_axis(places, np.argsort(-parts, axis=1, kind="stable"), np.arange(parts.shape[1])[None, :], axis=1)
    return whole + (places < more[:, None])


def _disjoint(factor: Matrix) -> bool:
    """Whether no cell satisfies two of the predicates."""
    return int(factor.power(1).norm_power(1)) <= 1 if factor.dtype.kind == "i" else False


@final
class _Network:
    """Source, then sums on the first attributes from few to many, then those on the last ones, then the sink.

    An edge to a node of the first kind, or from one of the second kind, carries that node's sum; a cell is an edge
    between its two finest nodes.
    """

    def __init__(self, parts: Array) -> None:
        self._parts = parts
        shape, d = parts.shape, parts.ndim
        first = [np.atleast_1d(parts.sum(axis=tuple(range(k, d)))) for k in range(d)]
        last = [np.atleast_1d(parts.sum(axis=tuple(range(k)))) for k in range(1, d + 1)]
        sizes = [prod(shape[:k]) for k in range(d)] + [prod(shape[k:]) for k in range(1, d + 1)]
        starts = np.cumsum([0, *sizes])
        self._nodes = int(starts[-1])
        tails, heads, sums = [], [], []
        for k in range(1, d):  # from the sum on k − 1 first attributes to each of its parts
            tails.append(starts[k - 1] + np.arange(sizes[k]) // shape[k - 1])
            heads.append(starts[k] + np.arange(sizes[k]))
            sums.append(first[k].reshape(-1))
        for k in range(1, d):  # and back together
            here = starts[d + k - 1]
            tails.append(here + np.arange(sizes[d + k - 1]))
            heads.append(starts[d + k] + np.arange(sizes[d + k - 1]) % sizes[d + k])
            sums.append(last[k - 1].reshape(-1))
        cells = np.arange(parts.size)
        tails.append(starts[d - 1] + cells // shape[-1])
        heads.append(starts[d] + cells % (parts.size // shape[0]))
        self._tails, self._heads = np.concatenate(tails), np.concatenate(heads)
        self._sums = np.concatenate([np.empty(0, np.int64), *sums])
        self._sink = int(starts[2 * d - 1])
        self._total = int((int(parts.sum()) + _UNIT // 2) // _UNIT)

    def flow(self, near: int) -> Array | None:
        """Zeros and ones for the cells; those that are this near to an integer go there. None where none adds up."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        flat = self._parts.reshape(-1)
        low = np.concatenate([self._sums // _UNIT, (flat > _UNIT - near).astype(np.int64)])
        high = np.concatenate([-(-self._sums // _UNIT), ((flat >= near) & (flat > 0)).astype(np.int64)])
        nodes, source, sink = self._nodes + 2, self._nodes, self._nodes + 1
        # What an edge must carry enters at its head from a new source and leaves at its tail to a new sink.
        extra = np.bincount(self._heads, low, nodes) - np.bincount(self._tails, low, nodes)
        extra[0] += self._total
        extra[self._sink] -= self._total
        extra = np.rint(extra).astype(np.int64)
        into, out = np.flatnonzero(extra > 0), np.flatnonzero(extra < 0)
        tails = np.concatenate([self._tails, np.full(len(into), source), out])
        heads = np.concatenate([self._heads, into, np.full(len(out), sink)])
        room = np.concatenate([high - low, extra[into], -extra[out]]).astype(np.int32)
        graph = csr_array((room, (tails, heads)), shape=(nodes, nodes))
        found = maximum_flow(graph, source, sink)
        if found.flow_value != extra[into].sum():
            return None
        cells = slice(len(self._sums), len(self._tails))
        carried = np.asarray(found.flow[self._tails[cells], self._heads[cells]]).reshape(-1)
        return (low[cells] + carried).reshape(self._parts.shape)
