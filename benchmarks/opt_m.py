"""OPT_M: the objective with its gradient, beside the paper's own formulas, and the whole optimisation on 20 attributes.

The paper keeps the 2^d × 2^d triangular matrix X(u) (paper, section 7): it is built in O(4^d), and value and gradient
are two triangular solves and one more pass over all pairs of sets. The workload is all marginals on at most three
attributes, and both forms must agree on value and gradient.

    python benchmarks/opt_m.py [--attributes 12]
"""

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from scipy.linalg import solve_triangular

from hdmm import Schema, marginals
from hdmm.estimators.least_squares import strategy_loss as loss
from hdmm.matrix import Norm
from hdmm.operators.base import Proposal
from hdmm.operators.marginal import Marginal
from hdmm.operators.marginals.demand import demand_of
from hdmm.operators.marginals.weights import AllMarginals, CandidateMarginals, initial_marginals
from hdmm.workload import Encoded


def workload(attributes: int) -> Encoded:
    """All marginals on at most three attributes of 2 to 10 values."""
    return marginals(Schema({f"a{i}": range(2 + i % 9) for i in range(attributes)}), up_to=3).encoded


class Textbook:
    """The objective ‖θ‖²·n·1ᵀX(θ²)⁻¹w (paper, section 8), and its gradient by θ², both for ‖θ‖ = 1."""

    def __init__(self, encoded: Encoded) -> None:
        self.sets = np.arange(1 << len(encoded.sizes))
        self.cells = float(np.prod(np.array(encoded.sizes, float)))
        self.c = np.ones(len(self.sets))
        for place, size in enumerate(encoded.sizes):
            self.c *= np.where(self.sets >> place & 1, 1.0, size)
        self.w = np.zeros(len(self.sets))
        for product in encoded.products:
            self.w[sum(1 << axis for axis in product.axes)] += 1

    def evaluate(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The error, and minus its derivatives by the squared weights."""
        u, sets, c = weights**2, self.sets, self.c
        x = np.empty((len(sets), len(sets)))
        for b in sets:
            x[:, b] = np.bincount(sets & b, u * c[sets | b], minlength=len(sets))
        inverse = solve_triangular(x, self.w)
        adjoint = solve_triangular(x, np.ones(len(sets)), trans="T")
        slopes = np.array([np.sum(adjoint[sets & a] * c[sets | a] * inverse) for a in sets])
        return float(self.cells * inverse.sum()), self.cells * slopes


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The best of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def compare(attributes: int) -> None:
    """Time one evaluation of value and gradient."""
    encoded = workload(attributes)
    demand = demand_of(encoded, encoded.axes)
    assert demand is not None
    textbook, lattice, listed = Textbook(encoded), AllMarginals(demand), initial_marginals(demand)
    weights = np.random.default_rng(0).uniform(0.5, 1, len(lattice.sets))
    value, slopes = textbook.evaluate(weights)
    found, steep = lattice.evaluate(weights)
    np.testing.assert_allclose(found, value, rtol=1e-6)
    np.testing.assert_allclose(steep, slopes, rtol=1e-4, atol=1e-6 * steep.max())
    print(f"value and gradient on {attributes} attributes, {len(lattice.sets):,} marginals")
    print(f"{'':44}{'seconds':>10}{'ratio':>9}")
    slow = seconds(partial(textbook.evaluate, weights), 2)
    print(f"{'paper, X(u) and triangular solves':44}{slow:>10.6f}{1:>9}")
    cases: dict[str, tuple[CandidateMarginals, np.ndarray]] = {
        "hdmm, all marginals by sums over sets": (lattice, weights),
        f"hdmm, the workload's own {len(listed.sets):,}": (listed, weights[listed.sets]),
    }
    for name, (these, own_weights) in cases.items():
        spent = seconds(partial(these.evaluate, own_weights), 50)
        print(f"{name:44}{spent:>10.6f}{slow / spent:>9,.0f}")


def optimise(attributes: int) -> None:
    """Time the operator with its default effort."""
    encoded = workload(attributes)
    print(f"\nOPT_M on {attributes} attributes, {len(encoded.products):,} marginals asked for")
    print(f"{'noise':10}{'seconds':>9}{'measured':>10}{'loss':>16}")
    norms: dict[str, Norm] = {"laplace": 1, "gaussian": 2}
    for noise, norm in norms.items():
        start = perf_counter()
        proposal = Marginal().propose(encoded, norm)
        spent = perf_counter() - start
        assert isinstance(proposal, Proposal)
        error = loss(proposal.strategy, encoded, norm)
        print(f"{noise:10}{spent:>9.1f}{len(proposal.strategy.blocks):>10,}{error:>16,.0f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=int, default=12)
    compare(parser.parse_args().attributes)
    optimise(20)


if __name__ == "__main__":
    main()
