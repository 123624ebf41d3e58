"""Numbers that the paper prints, reproduced."""

from math import sqrt

import numpy as np
import pytest

from hdmm import baselines, marginals
from hdmm.bounds import svd_bound
from hdmm.operators.base import loss
from hdmm.schema import Schema
from hdmm.workload import AllRange, Identity, Permuted, Prefix, Total, Where, Width, Workload

EXAMPLE = marginals(Schema(a=range(2), b=range(5), c=range(50), d=range(100)), k=2).encoded
SIGMA = 4.224678889  # of the analytic Gaussian mechanism at ε = 1, δ = 1e-6 (MATH §1)


def test_table_margexample_workload():
    strategy = baselines.Marginals().propose(EXAMPLE, 1)
    assert loss(strategy, EXAMPLE, 1) == pytest.approx(206_964, abs=0.5)


def test_table_margexample_identity():
    strategy = baselines.Identity().propose(EXAMPLE, 1)
    assert loss(strategy, EXAMPLE, 1) == pytest.approx(300_000, abs=0.5)


def test_prop_error0_the_plain_mechanism_costs_the_squared_norm_for_each_query():
    strategy = baselines.Plain().propose(EXAMPLE, 1)
    assert loss(strategy, EXAMPLE, 1) == 36 * EXAMPLE.query_count


ONE_D = {
    "all-range": lambda n: AllRange(),
    "prefix": lambda n: Prefix(),
    "width32": lambda n: Width(32),
    "permuted": lambda n: Permuted(AllRange(), np.random.RandomState(0).permutation(n)),
}
# workload, n, Identity and SVDB with Laplace noise at ε = 1 (paper, table:opt01)
OPT01 = [
    ("all-range", 64, 6.63, 3.22),
    ("all-range", 256, 13.11, 4.07),
    ("all-range", 1024, 26.15, 4.94),
    ("prefix", 64, 8.06, 2.89),
    ("prefix", 256, 16.03, 3.50),
    ("width32", 64, 8.00, 2.75),
    ("width32", 256, 8.00, 3.26),
    ("permuted", 64, 6.63, 3.22),
]


@pytest.mark.parametrize(("kind", "n", "identity", "bound"), OPT01)
def test_table_opt01_identity_and_svdb(kind: str, n: int, identity: float, bound: float):
    encoded = Workload(Schema(a=range(n))).add("w", a=ONE_D[kind](n)).encoded
    strategy = baselines.Identity().propose(encoded, 1)
    assert sqrt(2 * loss(strategy, encoded, 1) / encoded.query_count) == pytest.approx(identity, abs=0.0051)
    assert sqrt(2 * svd_bound(encoded.gram()) / encoded.query_count) == pytest.approx(bound, abs=0.0051)


EITHER = Identity() | Total()
# domain, product, and the columns Identity, Baseline and SVDB with Laplace noise at ε = 1 (paper, table:hd1)
CPS = (50, 100, 7, 4, 2)
HD1 = [
    ("CPS all marginals", CPS, [EITHER] * 5, 5.38, 45.25, 2.63),
    ("CPS all prefix-marginals", CPS, [Prefix(), Prefix(), EITHER, EITHER, EITHER], 98.06, 56568.54, 9.32),
]


@pytest.mark.parametrize(
    ("sizes", "sets", "identity", "plain", "bound"), [row[1:] for row in HD1], ids=[r[0] for r in HD1]
)
def test_table_hd1_identity_baseline_and_svdb(sizes, sets, identity, plain, bound):
    schema = Schema({f"a{i}": range(n) for i, n in enumerate(sizes)})
    encoded = Workload(schema).add("all", {f"a{i}": one for i, one in enumerate(sets)}).encoded
    found = {
        "identity": loss(baselines.Identity().propose(encoded, 1), encoded, 1),
        "plain": loss(baselines.Plain().propose(encoded, 1), encoded, 1),
        "bound": svd_bound(encoded.gram()),
    }
    rmse = {name: sqrt(2 * squared / encoded.query_count) for name, squared in found.items()}
    assert rmse == pytest.approx({"identity": identity, "plain": plain, "bound": bound}, abs=0.0051)


ADULT = Schema({f"a{i}": range(n) for i, n in enumerate((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2))})


@pytest.mark.parametrize(("norm", "variance", "printed"), [(1, 2, 664.68), (2, SIGMA**2, 91.59)], ids=["hd1", "hd2"])
def test_table_hd_adult_marginals_baseline(norm, variance, printed):
    encoded = marginals(ADULT, up_to=3).encoded
    squared = loss(baselines.Plain().propose(encoded, norm), encoded, norm)
    assert sqrt(variance * squared / encoded.query_count) == pytest.approx(printed, abs=0.0051)


def test_ex_groupby_is_a_product():
    """SELECT sex, age, COUNT(*) WHERE hispanic GROUP BY sex, age holds 2 × 115 counting queries."""
    person = Schema(sex=["F", "M"], age=range(115), hispanic=[False, True])
    product = {"sex": Identity(), "age": Identity(), "hispanic": Where("hispanic")}
    assert Workload(person).add("q", product).query_count == 2 * 115


def test_thm_kron_sens_norms_multiply():
    encoded = Workload(Schema(a=range(4), b=range(6))).add("w", a=Prefix(), b=AllRange()).encoded
    kron = encoded.kron(encoded.products[0])
    assert kron.norm_power(1) == 4 * 12
    assert kron.norm_power(2) == 4 * 12


def test_thm_implicit_a_product_of_predicate_sets_is_a_kronecker_product():
    encoded = Workload(Schema(a=range(3), b=range(4))).add("w", a=Prefix(), b=AllRange()).encoded
    expected = np.kron(np.tril(np.ones((3, 3))), encoded.products[0].factors[1].dense())
    np.testing.assert_array_equal(encoded.kron(encoded.products[0]).dense(), expected)


def test_thm_err_decomp_the_error_of_a_product_factorises():
    encoded = Workload(Schema(a=range(3), b=range(4))).add("w", a=Prefix(), b=AllRange()).encoded
    parts = [
        Workload(Schema(a=range(3))).add("w", a=Prefix()).encoded,
        Workload(Schema(b=range(4))).add("w", b=AllRange()).encoded,
    ]
    losses = [loss(baselines.Identity().propose(part, 1), part, 1) for part in parts]
    assert loss(baselines.Identity().propose(encoded, 1), encoded, 1) == pytest.approx(losses[0] * losses[1])
