"""Strategies and workloads written out: the oracle of every baseline."""

import numpy as np

import hdmm
from hdmm.matrix import Norm
from hdmm.strategy import Strategy
from tests.contract.zoo import dense_blocks


def strategy_rows(strategy: Strategy, workload: hdmm.Workload) -> np.ndarray:
    """All queries that are measured, with their weights."""
    blocks = zip(strategy.blocks, dense_blocks(strategy, workload.encoded), strict=True)
    return np.vstack([float(block.weight) * rows for block, rows in blocks])


def workload_rows(workload: hdmm.Workload) -> np.ndarray:
    """All queries that are asked, with their weights."""
    products = workload.encoded.products
    return np.vstack([float(product.weight) * workload.encoded.of(product).dense() for product in products])


def dense_loss(measured: np.ndarray, asked: np.ndarray, norm: Norm) -> float:
    """The squared error of least squares at unit noise; the questions must follow from what is measured."""
    inverse = np.linalg.pinv(measured, rcond=1e-10)
    np.testing.assert_allclose(asked @ inverse @ measured, asked, atol=1e-8)
    sensitivity = float((abs(measured) ** norm).sum(axis=0).max()) ** (1 / norm)
    return sensitivity**2 * float(np.sum((asked @ inverse) ** 2))
