"""Exact convolutions of integers, by FLINT's products of polynomials."""

from __future__ import annotations

import numpy as np

from hdmm.matrix.arrays import Array


def cyclic(first: Array, second: Array, sign: int) -> Array:
    """Σ_j first_j·second_{i−j} for two vectors of one length; what wraps around counts ``sign`` times.

    Integers stay exact; one that 64 bits do not hold is an OverflowError.
    """
    from flint import fmpz_poly

    product = [int(value) for value in (fmpz_poly(first.tolist()) * fmpz_poly(second.tolist())).coeffs()]
    size = len(first)
    product += [0] * (2 * size - len(product))
    return np.array(product[:size], np.int64) + sign * np.array(product[size:], np.int64)
