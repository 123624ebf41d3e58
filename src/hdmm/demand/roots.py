"""Roots of Gram matrices: L with LLᵀ = V, with as many columns as V has rank.

V is a sum of Kronecker products. It is written out if it is small or nearly of full rank. Otherwise a Cholesky
factorisation with pivots looks at as many of its columns as it has rank, and V may have a million rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from hdmm.errors import TooLargeError
from hdmm.matrix.arrays import Array
from hdmm.matrix.gram import kron_dense

MAX_ROOT_WORK = 3000**3
"""The most multiplications of LᵀL."""
_MAX_ROOT_ENTRIES = 1 << 24
_MAX_WRITTEN_ROWS = 3000
"""The most rows of a Gram that is written out."""
_SMALL = 300
"""A Gram with fewer rows is written out whatever its rank."""
_EPS = float(np.finfo(float).eps)

Kron = tuple[float, Sequence[Array]]
"""A coefficient, and square matrices whose Kronecker product it multiplies; only the sum need be symmetric."""


def root_of(terms: Sequence[Kron], shape: Sequence[int]) -> Array | None:
    """L for a sum of Kronecker products over attributes of these sizes; None for zero.

    Its columns are orthogonal. A TooLargeError if its rank is too large.
    """
    terms = [term for term in terms if term[0] != 0]
    rows = prod(shape)
    scale = sum(abs(coefficient) * prod(abs(factor).max() for factor in factors) for coefficient, factors in terms)
    if not scale:
        return None
    least, most = _rank_limits(terms, rows)
    if rows <= _SMALL or (rows <= _MAX_WRITTEN_ROWS and 2 * most > rows):
        gram = np.zeros((rows, rows))
        for coefficient, factors in terms:
            gram += coefficient * kron_dense(list(factors))
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        kept = values > rows * _EPS * max(values[-1], scale)
        return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else None
    largest_rank = min(int((MAX_ROOT_WORK / rows) ** 0.5), _MAX_ROOT_ENTRIES // rows)
    if least > largest_rank:
        raise _too_many_questions(largest_rank, rows)
    root = _pivoted_cholesky(terms, shape, rows * _EPS * scale, largest_rank)
    values, vectors = np.linalg.eigh(root.T @ root)
    kept = values > rows * _EPS * max(values.max(initial=0.0), scale)
    return root @ vectors[:, kept] if kept.any() else None


def _rank_limits(terms: Sequence[Kron], rows: int) -> tuple[int, int]:
    """Limits on the rank of a sum: the largest rank of its terms if all are Grams, and what they add up to."""
    ranks = [prod(int(np.linalg.matrix_rank(factor)) for factor in factors) for _, factors in terms]
    grams = all(
        coefficient > 0 and all(np.array_equal(factor, factor.T) for factor in factors)
        for coefficient, factors in terms
    )
    return max(ranks) if grams else 0, min(sum(ranks), rows)


def _too_many_questions(most: int, rows: int) -> TooLargeError:
    return TooLargeError(f"more than {most:,} questions differ over {rows:,} combinations of unlike cells")


def _pivoted_cholesky(terms: Sequence[Kron], shape: Sequence[int], least: float, most: int) -> Array:
    """Columns whose products leave at most ``least`` on the diagonal: each removes the largest entry that is left."""
    rows = prod(shape)
    left = np.zeros(rows)
    for coefficient, factors in terms:
        left += coefficient * _outer([np.diagonal(factor) for factor in factors])
    root = np.zeros((min(most, 64), rows))
    rank = 0
    while left[pivot := int(np.argmax(left))] > least:
        if rank == most:
            raise _too_many_questions(most, rows)
        if rank == len(root):
            root = np.concatenate([root, np.zeros_like(root)])[:most]
        place = np.unravel_index(pivot, shape)
        column = -root[:rank, pivot] @ root[:rank]
        for coefficient, factors in terms:
            column += coefficient * _outer([factor[:, at] for factor, at in zip(factors, place, strict=True)])
        root[rank] = column / np.sqrt(left[pivot])
        left = np.maximum(left - root[rank] ** 2, 0.0)
        left[pivot] = 0.0
        rank += 1
    return root[:rank].T


def _outer(vectors: Sequence[Array]) -> Array:
    return reduce(np.multiply.outer, vectors, np.ones(())).reshape(-1)
