"""Controlled rounding: integer tables that add up, with every cell within 1 of its estimate.

The cells of a two-way table, its row and column sums and its total can always be rounded together, so that everything
adds up and is within 1 of its estimate (Cox and Ernst 1982): the roundings are the flows in a network with integer
bounds. In tables of more ways the same network takes two nested families of sums: on the first attributes (the first;
the first two; …) and on the last ones. All of these are rounded to a neighbouring integer. Sums on other sets of
attributes still add up, but may be further from their estimates: from three ways on, a rounding that keeps all sums
within 1 need not exist. Of all roundings, one whose largest change of a cell is least is chosen, to within 0.01. In one
way this is simple and exact: as many cells as the total needs go up, those with the shortest way to go.

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
_MAX_CELLS = 1 << 22
"""Most cells that are rounded together: beyond that the network would be too large."""
_MAX_ESTIMATE = 1 << 50
"""Largest estimate that is rounded: floats hold its fraction to within ⅛."""
_HALVINGS = 6
"""Steps of the bisection for the least largest change of a cell: ½/2⁶ is below 0.01."""


def round_table(table: Array) -> Array:
    """Integers in place of a table's estimates, such that the sums on the first and on the last attributes stay close.

    >>> round_table(np.array([[0.5, 1.5], [1.5, 0.5]])).sum(axis=0).tolist()
    [2, 2]
    """
    values = np.asarray(table, float)
    if values.ndim < 2:
        return _round_rows(values.reshape(1, -1)).reshape(values.shape)
    if values.size > _MAX_CELLS:
        raise TooLargeError(f"table: has {values.size} cells; at most {_MAX_CELLS} are rounded together")
    whole, parts = _split(values)
    network = _Network(parts)
    ups = network.flow(0)
    assert ups is not None, "a rounding exists if every cell is free to go either way"
    possible, impossible = 0, 1 << _HALVINGS  # distances, in steps of ½/2^halvings
    while impossible - possible > 1:
        middle = (possible + impossible) // 2
        closer = network.flow(middle * _UNIT >> (_HALVINGS + 1))
        if closer is None:
            impossible = middle
        else:
            possible, ups = middle, closer
    return whole + ups


def round_answers(answers: Array, product: EncodedProduct) -> Array:
    """The answers to a product as whole numbers that add up over attributes whose predicates are disjoint.

    Answers do not add up over an attribute if a record may satisfy several of its predicates, as with prefixes: they
    are rounded separately for each predicate.
    """
    apart = [place for place, factor in enumerate(product.factors.values()) if not _disjoint(factor)]
    table = np.moveaxis(answers.reshape(product.shape), apart, range(len(apart)))
    together = table.shape[len(apart) :]
    if prod(together) > _MAX_CELLS and len(together) > 1:
        raise TooLargeError(
            f"product {product.name!r}: has {count_text(prod(together))} answers that add up, and at most "
            f"{count_text(_MAX_CELLS)} are rounded together; leave rounded out"
        )
    pieces = table.reshape(-1, *together)
    if len(together) < 2:
        integers = _round_rows(pieces.reshape(len(pieces), -1))
    else:
        integers = np.stack([round_table(piece) for piece in pieces])
    return np.moveaxis(integers.reshape(table.shape), range(len(apart)), apart).reshape(-1)


def _split(values: Array) -> tuple[Array, Array]:
    """The integers below some estimates, and the fractions that remain, in units."""
    if values.size == 0 or not np.isfinite(values).all() or abs(values).max() > _MAX_ESTIMATE:
        raise InputError("table: expected at least one estimate, each a finite number of at most 2^50")
    whole = np.floor(values).astype(np.int64)
    parts = np.rint((values - whole) * _UNIT).astype(np.int64)
    return whole + parts // _UNIT, parts % _UNIT


def _round_rows(values: Array) -> Array:
    """Round each row with its sum: as many cells as the sum needs go up, those with the shortest way to go."""
    whole, parts = _split(values)
    ups = (parts.sum(axis=1) + _UNIT // 2) // _UNIT
    ranks = np.empty_like(parts)
    np.put_along_axis(ranks, np.argsort(-parts, axis=1, kind="stable"), np.arange(parts.shape[1])[None, :], axis=1)
    return whole + (ranks < ups[:, None])


def _disjoint(factor: Matrix) -> bool:
    """Whether no cell satisfies two of the predicates."""
    return int(factor.power(1).norm_power(1)) <= 1 if factor.dtype.kind == "i" else False


@final
class _Network:
    """The roundings of a table's fractions, as flows.

    Its nodes are the sums on the first attributes, from none (the source) to all but one, then the sums on the last
    attributes, from all but one to none (the sink). The total is split into finer and finer sums, and joined again. A
    cell is an edge between the two finest sums that hold it; every other edge carries one node's sum, rounded.
    """

    def __init__(self, parts: Array) -> None:
        self._parts = parts
        shape, d = parts.shape, parts.ndim
        sizes = [prod(shape[:k]) for k in range(d)] + [prod(shape[k:]) for k in range(1, d + 1)]
        starts = np.cumsum([0, *sizes])
        tails, heads, sums = [], [], []
        for k in range(1, d):  # from each sum on k − 1 first attributes to its parts on k
            nodes = np.arange(sizes[k])
            tails.append(starts[k - 1] + nodes // shape[k - 1])
            heads.append(starts[k] + nodes)
            sums.append(parts.sum(axis=tuple(range(k, d))).reshape(-1))
        for k in range(d, 2 * d - 1):  # from each sum on the last attributes to the coarser one that holds it
            nodes = np.arange(sizes[k])
            tails.append(starts[k] + nodes)
            heads.append(starts[k + 1] + nodes % sizes[k + 1])
            sums.append(parts.sum(axis=tuple(range(k - d + 1))).reshape(-1))
        cells = np.arange(parts.size)
        tails.append(starts[d - 1] + cells // shape[-1])
        heads.append(starts[d] + cells % (parts.size // shape[0]))
        self._tails, self._heads = np.concatenate(tails), np.concatenate(heads)
        self._sums = np.concatenate(sums)
        total = (int(parts.sum()) + _UNIT // 2) // _UNIT
        self._supply = np.zeros(starts[-1])
        self._supply[[0, starts[2 * d - 1]]] = total, -total

    def flow(self, near: int) -> Array | None:
        """Which cells go up; those within ``near`` of an integer go to that integer. None if no such rounding adds up.

        Every edge carries its lower bound. A node whose edges bring in more than they take out gets the difference from
        an extra source, and one that lacks some gives it to an extra sink: the bounds can be met if all of it flows.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        low, high = self._bounds(near)
        nodes = len(self._supply)
        excess = self._supply + np.bincount(self._heads, low, nodes) - np.bincount(self._tails, low, nodes)
        excess = np.rint(excess).astype(np.int64)
        over, under = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
        source, sink = nodes, nodes + 1
        tails = np.concatenate([self._tails, np.full(len(over), source), under])
        heads = np.concatenate([self._heads, over, np.full(len(under), sink)])
        capacities = np.concatenate([high - low, excess[over], -excess[under]]).astype(np.int32)
        largest = maximum_flow(csr_array((capacities, (tails, heads)), shape=(nodes + 2, nodes + 2)), source, sink)
        if largest.flow_value != excess[over].sum():
            return None
        cells = slice(len(self._sums), None)
        carried = np.asarray(largest.flow[self._tails[cells], self._heads[cells]]).reshape(-1)
        return (low[cells] + carried).reshape(self._parts.shape)

    def _bounds(self, near: int) -> tuple[Array, Array]:
        """What each edge may carry: sums are rounded down or up, cells are 0 or 1 unless they are near to either."""
        cells = self._parts.reshape(-1)
        low = np.concatenate([self._sums // _UNIT, cells > _UNIT - near])
        high = np.concatenate([-(-self._sums // _UNIT), (cells >= near) & (cells > 0)])
        return low, high
