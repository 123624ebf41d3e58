"""The queries and weights of several blocks improved together, for answers by least squares over all of them.

OPT_+ and OPT_M+ choose each block's queries for its own share of the workload. For global least squares the best
queries depend on what the other blocks see. On even attributes, on which blocks count single cells or nothing, least
squares falls apart into one small system X_b for each set b of attributes with deviations (see `estimators.split`), and
the loss is S²·Σ_b tr(X_b⁻¹V_b) with the sensitivity S. It is descended on over the entries of all queries, which are
not negative. Blocks have queries of their own on one other attribute at most; those on more keep theirs, and only their
weights move. See docs/math.md, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from hdmm.estimators.coordinates import Coordinates
from hdmm.matrix import Array, Dense, Gram, Identity, Matrix
from hdmm.matrix.axes import Axes, subsets
from hdmm.matrix.gram import GramTerm
from hdmm.operators.joint.filling import FLOOR, Filling
from hdmm.operators.joint.parts import Part, split_blocks
from hdmm.operators.weights import dyadic
from hdmm.optimise.descent import Effort, descend
from hdmm.parallel import one_blas_thread
from hdmm.strategy import Block, Strategy
from hdmm.workload import Encoded

_MAX_COORDINATES = 400
"""The most unknowns of a system: each evaluation inverts a matrix of that size for every set of even attributes."""
_MAX_WORK = 1 << 31
"""The most multiplications of one evaluation."""
_ITERATIONS = 400
_VANISHED = 1e-5
"""Queries with less than this share of the sensitivity are left out at the end."""
_RIDGE = 1e-12
"""What is added to the diagonal of X while queries move, relative to the squared sensitivity: X is never singular."""
_NEGLIGIBLE = 1e-9
"""The share of a Gram that may be outside of what is measured: rounding."""


def polished(strategy: Strategy, workload: Encoded, effort: Effort) -> Strategy | None:
    """A strategy with less error under Laplace noise than this one has, by least squares over all blocks.

    None if there is nothing to improve, or the systems are too large.
    """
    parts = split_blocks(strategy)
    if parts is None:
        return None
    coordinates = _coordinates(strategy.sizes, parts)
    if coordinates is None:
        return None
    with one_blas_thread():
        try:
            polish = _Polish(strategy.sizes, workload, parts, coordinates)
        except ValueError:  # some question is answered by no block
            return None
        end = descend(polish.loss, polish.start(), lower=FLOOR, iterations=_ITERATIONS, effort=effort)
    return polish.strategy(end.point)


def _coordinates(sizes: Sequence[int], parts: Sequence[Part]) -> Coordinates | None:
    """What the other attributes' tables share; None if that is too much."""
    sets = {part.others for part in parts}
    if sum(prod(sizes[axis] for axis in axes) for axes in sets) > 4 * _MAX_COORDINATES:
        return None
    coordinates = Coordinates(sizes, sets)
    systems = len({b for part in parts for b in subsets(part.even)})
    small = coordinates.count <= _MAX_COORDINATES and systems * coordinates.count**3 <= _MAX_WORK
    return coordinates if small else None


@final
@dataclass(frozen=True, eq=False)
class _System:
    """What is asked of one set of deviations, in a basis of what the blocks that see them measure."""

    demand: Array
    """V."""
    seen: dict[int, Array]
    """For every block that sees the deviations, how the sums over its classes follow from the basis."""
    scales: dict[int, float]
    """One over the cells of its even attributes beyond those with deviations."""


@final
class _Polish:
    """The loss as a function of all queries."""

    def __init__(
        self, sizes: Sequence[int], workload: Encoded, parts: Sequence[Part], coordinates: Coordinates
    ) -> None:
        self._sizes = tuple(sizes)
        self._parts = parts
        sums = [_class_sums(coordinates, part) for part in parts]
        even = {axis for part in parts for axis in part.even}
        demands = _demands(self._sizes, workload, coordinates, even)
        self._systems = [self._system(b, demand, sums) for b, demand in demands.items()]
        self._groups = [
            [number for number, part in enumerate(parts) if part.free and part.others == (axis,)]
            for axis in sorted({part.others[0] for part in parts if part.free})
        ]
        self._shapes = [(1 + len(part.queries), part.width) if part.free else (1, 1) for part in parts]
        self._shapes += [(1, 1)] * len(self._groups)
        self._ends = np.cumsum([rows * width for rows, width in self._shapes]).tolist()

    def _system(self, deviating: Axes, demand: Array, sums: Sequence[Array]) -> _System:
        numbers = [n for n, part in enumerate(self._parts) if set(deviating) <= set(part.even)]
        gram = np.zeros(demand.shape)
        for number in numbers:
            part = self._parts[number]
            gram += sums[number].T @ (sums[number] if part.free else part.queries.T @ (part.queries @ sums[number]))
        values, vectors = np.linalg.eigh(gram)
        basis = vectors[:, values > _NEGLIGIBLE * values.max(initial=0.0)]
        projected = basis.T @ demand @ basis
        if np.trace(demand) - np.trace(projected) > _NEGLIGIBLE * np.trace(demand):
            raise ValueError("some question is not determined by the blocks")
        beyond = {n: prod(self._sizes[i] for i in self._parts[n].even if i not in deviating) for n in numbers}
        return _System(projected, {n: sums[n] @ basis for n in numbers}, {n: 1 / cells for n, cells in beyond.items()})

    def start(self) -> Array:
        """The queries as they are, as one vector: single classes first, and then the other rows."""
        largest = max(part.queries.sum(axis=0).max() for part in self._parts)
        pieces = []
        for part in self._parts:
            if not part.free:
                pieces.append(np.array([[1 / largest]]))
                continue
            alone = np.count_nonzero(part.queries, axis=1) == 1
            diagonal = np.sqrt((part.queries[alone] ** 2).sum(axis=0))
            rows = np.where(alone[:, None], 0.0, part.queries)
            pieces.append(np.maximum(np.vstack([diagonal, rows]) / largest, FLOOR))
        for group in self._groups:
            pieces.append(np.array([[Filling.needed(group, [self._parts[n].classes for n in group], pieces)]]))
        return np.concatenate([piece.reshape(-1) for piece in pieces])

    def _unpacked(self, point: Array) -> list[Array]:
        parts = np.split(point, self._ends[:-1])
        return [piece.reshape(shape) for piece, shape in zip(parts, self._shapes, strict=True)]

    def _filled(self, pieces: Sequence[Array]) -> tuple[list[Array], float, list[Filling]]:
        """The queries with the finest blocks of each attribute scaled so that all columns have the same sum."""
        scaled, fillings, sensitivity = list(pieces[: len(self._parts)]), [], 0.0
        for group, piece in zip(self._groups, pieces[len(self._parts) :], strict=True):
            classes = [self._parts[number].classes for number in group]
            filling = Filling.of(group, classes, pieces, float(piece[0, 0]))
            for number in filling.fine:
                scaled[number] = pieces[number] * filling.factors
            fillings.append(filling)
            sensitivity += filling.sum
        for piece, part in zip(pieces, self._parts, strict=False):
            if not part.free:
                sensitivity += float(piece[0, 0]) * float(part.queries.sum(axis=0).max())
        return scaled, sensitivity, fillings

    def loss(self, point: Array) -> tuple[float, Array]:
        """The logarithm of the loss, and its gradient."""
        pieces = self._unpacked(point)
        scaled, sensitivity, fillings = self._filled(pieces)
        grams = [
            np.diag(piece[0] ** 2) + piece[1:].T @ piece[1:]
            if part.free
            else piece[0, 0] ** 2 * (part.queries.T @ part.queries)
            for piece, part in zip(scaled, self._parts, strict=True)
        ]
        total = 0.0
        slopes = [np.zeros(gram.shape) for gram in grams]
        for system in self._systems:
            x = np.zeros(system.demand.shape)
            for number, seen in system.seen.items():
                x += system.scales[number] * (seen.T @ grams[number] @ seen)
            x.flat[:: len(x) + 1] += _RIDGE * sensitivity**2
            inverse = np.linalg.inv(x)
            solved = inverse @ system.demand
            total += float(np.trace(solved))
            slope = solved @ inverse
            for number, seen in system.seen.items():
                slopes[number] -= system.scales[number] * (seen @ slope @ seen.T)
        gradients = []
        for piece, part, slope in zip(scaled, self._parts, slopes, strict=True):
            if part.free:
                gradients.append(np.vstack([2 * piece[0] * np.diagonal(slope), 2 * piece[1:] @ slope]) / total)
            else:
                along = 2 * float(piece[0, 0]) * float(np.sum(slope * (part.queries.T @ part.queries))) / total
                gradients.append(np.array([[along + 2 / sensitivity * float(part.queries.sum(axis=0).max())]]))
        gradients += [filling.pull_back(pieces, gradients, 2 / sensitivity) for filling in fillings]
        value = 2 * np.log(sensitivity) + np.log(total)
        return float(value), np.concatenate([gradient.reshape(-1) for gradient in gradients])

    def strategy(self, point: Array) -> Strategy:
        """The queries as blocks."""
        scaled, sensitivity, _ = self._filled(self._unpacked(point))
        blocks = []
        for piece, part in zip(scaled, self._parts, strict=True):
            if part.free:
                rows = np.vstack([np.diag(piece[0]), piece[1:]])
                rows = rows[rows.max(axis=1) > _VANISHED * sensitivity]
                if not len(rows):
                    continue
                length = float(rows.sum(axis=0).max())
                rows = np.where(rows > 1e-3 * _VANISHED * sensitivity, rows, 0.0)
                queries: tuple[Matrix, ...] = (Dense(rows[:, part.classes] / length),)
            else:
                length = float(piece[0, 0] * part.queries.sum(axis=0).max())
                if length <= _VANISHED * sensitivity:
                    continue
                queries = part.factors
            pairs = sorted(
                [*zip(part.others, queries, strict=True), *((i, Identity(self._sizes[i])) for i in part.even)],
                key=lambda pair: pair[0],
            )
            weight = dyadic(length / sensitivity)
            blocks.append(Block(tuple(axis for axis, _ in pairs), tuple(factor for _, factor in pairs), weight))
        return Strategy(self._sizes, tuple(blocks), "union")


def _class_sums(coordinates: Coordinates, part: Part) -> Array:
    """How the sums over a block's classes of cells follow from the coordinates."""
    table = coordinates.table(np.eye(coordinates.count), part.others)
    sums = np.zeros((part.width, coordinates.count))
    np.add.at(sums, part.classes, table)
    return sums


def _demands(sizes: tuple[int, ...], workload: Encoded, coordinates: Coordinates, even: set[int]) -> dict[Axes, Array]:
    """What the workload asks of each set of deviations: V, over the coordinates."""
    demands: dict[Axes, Array] = {}
    for product in workload.compact.products:
        asked = tuple(i for i in product.axes if i in even)
        others = tuple(i for i in product.axes if i not in even)
        if not coordinates.holds(others):
            raise ValueError("some question is on attributes that no block has together")
        table = coordinates.table(np.eye(coordinates.count), others)
        for term in product.terms:
            on_others = Gram(sizes, (GramTerm(1.0, {i: term.factors[i] for i in others}),)).on(others)
            v = float(product.weight) ** 2 * term.coefficient * (table.T @ on_others.apply(table))
            means = {i: term.factors[i].total() / sizes[i] for i in asked}
            deviations = {i: _difference(term.factors[i].trace(), means[i]) for i in asked}
            for b in subsets(asked):
                share = prod(deviations[i] if i in b else means[i] / sizes[i] for i in asked)
                if share:
                    demands[b] = demands.get(b, np.zeros(v.shape)) + share * v
    return demands


def _difference(whole: float, part: float) -> float:
    """The difference of two numbers, 0 if it is rounding."""
    difference = whole - part
    return difference if abs(difference) > _NEGLIGIBLE * abs(whole) else 0.0
