"""The error of a pyramid of hats for prefixes, single cells and vectors, and its gradient in the heights.

With the weights z of the hats and c of the cells in an answer b, and ω its weight in the workload, the derivative of
the error tr((AᵀA)⁻¹V) is −2Σωz_r·c_i/w_i in the entry of cell i in hat r, and −2Σωc_i²/w_i in the cell's weight w_i.
For the sum of the first cells c_i = [i counted]/w_i − θ_iᵀz, so that Σωzzᵀ for the hats over each cell and Σωz over the
prefixes that count it are enough. Both follow for all prefixes at once by one pass up and one down the blocks of
:mod:`hdmm.matrix.hat_solution`: up go the weight, the sum and the sum of squares of u; down come those of z.
"""

from __future__ import annotations

import numpy as np

from hdmm.matrix import Array, Hats
from hdmm.matrix.hat_solution import HatSolution, Level
from hdmm.operators.opt0.hat_demand import HatDemand

Moments = tuple[Array, Array, Array]
"""For each block Σω, Σωu and Σωuuᵀ over the prefixes that end in it; single cells count in the last only."""


def error_and_gradient(demand: HatDemand, hats: Hats) -> tuple[float, list[Array]]:
    """The error and its derivatives in the heights of all levels; the cells take up what the hats leave."""
    solution, pyramid = hats.solution, hats.pyramid
    n, levels, width = solution.n, solution.levels, solution.width
    error = float(demand.prefixes @ solution.prefixes)
    padded = np.zeros(solution.padded)
    padded[:n] = demand.prefixes
    entries = np.zeros((solution.padded, 2 * levels))
    own = np.zeros(solution.padded)
    omega = padded.reshape(-1, width)
    single = np.zeros((solution.blocks, width))
    single.reshape(-1)[:n] = demand.cells
    squares, right = _downwards(solution, _upwards(solution, omega, single))
    P, z, _ = solution.inner
    after = np.append(np.cumsum(padded[::-1])[::-1], 0)[:-1].reshape(-1, width)  # the weight of what counts a cell
    for some in solution.pieces():
        theta, inverse = solution.columns(some)
        u = np.cumsum(theta * inverse[:, :, None], axis=1)
        answers = omega[some, :, None] * (u @ P[some] + z[some, None])
        sums = np.cumsum(answers[:, ::-1], axis=1)[:, ::-1] + right[some, None]
        one = theta * inverse[:, :, None]
        alone = one @ P[some]
        error += float((single[some] * (inverse**2 - np.einsum("bci,bci->bc", one, alone))).sum())
        sums += single[some, :, None] * alone
        spread = theta @ squares[some]
        products = sums * inverse[:, :, None] - spread
        own_squares = (
            (after[some] + single[some]) * inverse**2
            - 2 * inverse * np.einsum("bci,bci->bc", theta, sums)
            + np.einsum("bci,bci->bc", theta, spread)
        )
        cells = slice(some.start * width, some.stop * width)
        entries[cells] = (-2 * products * inverse[:, :, None]).reshape(-1, 2 * levels)
        own[cells] = (-2 * own_squares * inverse).reshape(-1)
    gradient = entries[:n] - own[:n, None]
    place = np.arange(n)
    if len(demand.vector_weights):
        weights = hats.solve_t(demand.vectors)
        error += float(demand.vector_weights @ (weights**2).sum(axis=0))
        scaled = -2 * demand.vector_weights * weights[:n] / pyramid.cells[:, None]
        own_vectors = (scaled * weights[:n]).sum(axis=1)
        start = n
        for number, (spacing, heights) in enumerate(zip(hats.spacings, hats.heights, strict=True)):
            knot = start + place // spacing
            gradient[:, number] += (scaled * weights[knot]).sum(axis=1) - own_vectors
            gradient[:, levels + number] += (scaled * weights[knot + 1]).sum(axis=1) - own_vectors
            start += len(heights)
    slopes = []
    for number, (spacing, heights) in enumerate(zip(hats.spacings, hats.heights, strict=True)):
        knot = place // spacing
        rising = (2 * (place - spacing * knot) + 1) / (2 * spacing)
        left = np.bincount(knot, gradient[:, number] * (1 - rising), len(heights))
        slopes.append(left + np.bincount(knot + 1, gradient[:, levels + number] * rising, len(heights)))
    return error, slopes


def _upwards(solution: HatSolution, omega: Array, single: Array) -> list[Moments]:
    """The moments of u among the outer hats of all blocks, from those of the first level to all cells."""
    outer = 2 * solution.levels
    first, second = np.empty((solution.blocks, outer)), np.empty((solution.blocks, outer, outer))
    for some in solution.pieces():
        theta, inverse = solution.columns(some)
        u = np.cumsum(theta * inverse[:, :, None], axis=1)
        weighted = u * omega[some, :, None]
        first[some], second[some] = weighted.sum(axis=1), weighted.transpose(0, 2, 1) @ u
        one = theta * inverse[:, :, None]
        second[some] += (one * single[some, :, None]).transpose(0, 2, 1) @ one
    moments = [(omega.sum(axis=1), first, second)]
    for stage in solution.stages[:-1]:
        weight, within, sums, squares = _assembled(stage, moments[-1])
        squares += _crossed(stage.before[:, :-1], weight, within)
        A, inside = stage.A, stage.inside
        whole = sums + np.einsum("bt,bti->bi", weight, stage.before[:, :-1])
        first = whole[:, inside:] - np.einsum("bio,bi->bo", A, whole[:, :inside])
        half = squares[:, :, inside:] - squares[:, :, :inside] @ A
        second = half[:, inside:] - A.transpose(0, 2, 1) @ half[:, :inside]
        moments.append((weight.sum(axis=1), first, second))
    return moments


def _downwards(solution: HatSolution, moments: list[Moments]) -> tuple[Array, Array]:
    """For the blocks of the first level, among their outer hats: Σωzzᵀ of all prefixes, and Σωz of those to the right.

    For other blocks, Σωzzᵀ of the prefixes that end elsewhere. Those on the right count all of a block's cells.
    """
    outer = 2 * solution.levels
    P, z = solution.outermost[None], np.zeros((1, outer))
    elsewhere, right, heavy = np.zeros((1, outer, outer)), np.zeros((1, outer)), np.zeros(1)
    for number in range(solution.levels - 1, -1, -1):
        stage, (weights, firsts, seconds) = solution.stages[number], moments[number]
        weight, within, _, squares = _assembled(stage, moments[number])
        A, inside = stage.A, stage.inside
        Q = stage.inverses(P)
        full = np.einsum("bij,bj->bi", stage.G, stage.before[:, -1, :inside])
        full = np.concatenate([full, np.zeros((len(full), outer))], axis=1)  # K⁻¹u of the cells inside
        outside = _lifted(A, elsewhere)
        beyond = np.concatenate([-np.einsum("bio,bo->bi", A, right), right], axis=1)
        outside += _symmetric(beyond, full) + heavy[:, None, None] * full[:, :, None] * full[:, None, :]
        beyond += heavy[:, None] * full
        zeros = np.concatenate([-np.einsum("bio,bo->bi", A, z), z], axis=1)
        starts = zeros[:, None] + stage.before[:, :-1] @ Q
        moved = within @ Q
        total = outside + Q @ squares @ Q + _crossed(starts, weight, moved)
        answers = weight[:, :, None] * starts + moved
        following = np.cumsum(answers[:, ::-1], axis=1)[:, ::-1] - answers + beyond[:, None]
        place = stage.places
        parts = range(stage.parts)
        P = np.stack([Q[:, place[t][:, None], place[t]] for t in parts], axis=1).reshape(-1, outer, outer)
        z = np.stack([starts[:, t, place[t]] for t in parts], axis=1).reshape(-1, outer)
        right = np.stack([following[:, t, place[t]] for t in parts], axis=1).reshape(-1, outer)
        elsewhere = np.stack([total[:, place[t][:, None], place[t]] for t in parts], axis=1).reshape(-1, outer, outer)
        heavy = (heavy[:, None] + weight.sum(axis=1, keepdims=True) - np.cumsum(weight, axis=1)).reshape(-1)
        if number:  # without those that end in the block itself
            moved = np.einsum("bij,bj->bi", P, firsts)
            elsewhere -= weights[:, None, None] * z[:, :, None] * z[:, None, :] + _symmetric(z, moved) + P @ seconds @ P
    return elsewhere, right


def _assembled(stage: Level, moments: Moments) -> tuple[Array, Array, Array, Array]:
    """For the parts of blocks Σω and Σωu among all hats of the block; and the sums of Σωu and Σωuuᵀ over the parts."""
    weights, firsts, seconds = moments
    count, size = len(stage.A), stage.inside + firsts.shape[1]
    weight = weights.reshape(count, stage.parts)
    within, squares = np.zeros((count, stage.parts, size)), np.zeros((count, size, size))
    for t, place in enumerate(stage.places):
        within[:, t, place] = firsts.reshape(count, stage.parts, -1)[:, t]
        squares[:, place[:, None], place] += seconds.reshape(count, stage.parts, *seconds.shape[1:])[:, t]
    return weight, within, within.sum(axis=1), squares


def _lifted(A: Array, squares: Array) -> Array:
    """HXHᵀ for H = [−A; I]."""
    AX = A @ squares
    return np.block([[AX @ A.transpose(0, 2, 1), -AX], [-AX.transpose(0, 2, 1), squares]])


def _crossed(starts: Array, weight: Array, moved: Array) -> Array:
    """Σ ω·ssᵀ + s·mᵀ + m·sᵀ over the parts of each block."""
    half = starts.transpose(0, 2, 1) @ (weight[:, :, None] * starts / 2 + moved)
    return half + half.transpose(0, 2, 1)


def _symmetric(a: Array, b: Array) -> Array:
    """abᵀ + baᵀ for each block."""
    product = a[:, :, None] * b[:, None, :]
    return product + product.transpose(0, 2, 1)
