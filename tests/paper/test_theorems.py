"""Theorems of the paper's sections 5 and 7 and of its appendix on disjunctions, each named after its label."""

from functools import reduce
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hdmm import paper
from hdmm.estimators.kron import KronLeastSquares
from hdmm.matrix import AllRange, Dense, Gram, Identity, Kron, Matrix, Prefix, Stack, Total, Width
from hdmm.matrix.axis_gram import DenseGram, RowsGram
from hdmm.matrix.gram import GramTerm
from hdmm.paper import sizes
from hdmm.paper.census import person
from hdmm.schema import Schema
from hdmm.strategy import Block, Strategy
from hdmm.workload import Identity as Each
from hdmm.workload import Product, Where, Workload
from tests.oracles.marginal_algebra import MarginalGram, characteristic, marginal_matrix

SCHEMA = Schema(a=range(4), b=range(3))
ON_A = ["a = 2", "a < 3", "a IN (0, 3)", "NOT a = 1", "a BETWEEN 1 AND 2"]
ON_B = ["b = 0", "b <> 1", "b >= 1", "NOT b < 2"]
every_pair = pytest.mark.parametrize(("on_a", "on_b"), list(product(ON_A, ON_B)))
seeds = st.integers(0, 2**32 - 1)


def vec(condition: str, name: str) -> np.ndarray:
    """A predicate on one attribute over the cells of that attribute."""
    return Where(condition).matrix(name, SCHEMA[name]).dense()[0]


def vec_of(where: str) -> np.ndarray:
    """A condition on both attributes over all cells."""
    (row,) = Workload(SCHEMA).add("q", where=where).encoded.matrix().dense()
    return row


def factors(seed: int, *shapes: tuple[int, int]) -> list[Dense]:
    rng = np.random.default_rng(seed)
    return [Dense(rng.integers(-3, 4, shape)) for shape in shapes]


@every_pair
def test_thm_implicit_vec(on_a, on_b):
    """The vector of a conjunction is the outer product of its parts' vectors."""
    expected = np.kron(vec(on_a, "a"), vec(on_b, "b"))
    encoded = Workload(SCHEMA).add("q", a=Where(on_a), b=Where(on_b)).encoded
    np.testing.assert_array_equal(encoded.matrix().dense(), expected[None])
    np.testing.assert_array_equal(vec_of(f"({on_a}) AND ({on_b})"), expected)


def test_thm_implicit_vec_is_kept_in_as_many_numbers_as_the_sizes_add_up_to():
    encoded = (
        Workload(person()).add("q", where="sex = 'F' AND hispanic AND white AND relationship = 3 AND age < 5").encoded
    )
    assert (
        sum(factor.shape[0] * factor.shape[1] for factor in encoded.products[0].factors.values())
        == 2 + 2 + 64 + 17 + 115
    )


@pytest.mark.parametrize(
    ("cells", "queries", "explicit", "implicit", "state"),
    [(500_480, 4151, "8.3 GB", "3.3 MB", False), (25_524_480, 215_852, "22 TB", "217 MB", True)],
    ids=["SF1", "SF1+"],
)
def test_ex_imp_vec(cells, queries, explicit, implicit, state):
    """The paper rounds the last number to 200 MB."""
    encoded = (paper.sf1_plus() if state else paper.sf1()).encoded
    assert (prod(encoded.sizes), encoded.query_count) == (cells, queries)
    assert sum(encoded.sizes) == 200 + 51 * state
    assert shown(queries * cells * sizes._BYTES_PER_NUMBER) == explicit
    assert shown(queries * sum(encoded.sizes) * sizes._BYTES_PER_NUMBER) == implicit


def test_ex_implicit_workload_size_of_statements():
    """Each query of SF1+ is asked once for the nation and once by state; conditions do not change the size."""
    products = [Product(f"{place}", {"state": Each()} if place % 2 else {}) for place in range(2 * 4151)]
    encoded = Workload(person(state=True), products).encoded
    assert encoded.query_count == 215_852
    assert shown(sizes._size(encoded)) == "51 MB"  # the paper: 50 MB


@pytest.mark.parametrize(
    ("workload", "printed"), [(paper.sf1, 335_000), (paper.sf1_plus, 687_000)], ids=["SF1", "SF1+"]
)
def test_ex_implicit_workload_size_of_tables(workload, printed):
    """The paper's 32 products are cut a little differently from our 27."""
    size = sizes._size(workload().encoded)
    assert 0.75 * printed < size < 1.25 * printed


def shown(count: int) -> str:
    """Two digits, or three from a hundred on, with decimal units."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB")):
        if count >= 10**power:
            value = count / 10**power
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{count / 1000:.0f} KB"


@settings(max_examples=25)
@given(seed=seeds)
def test_prop_kron_transpose(seed):
    a, b = factors(seed, (3, 4), (5, 2))
    y = np.random.default_rng(seed).integers(-9, 10, 15)
    transposed = Kron([Dense(a.array.T), Dense(b.array.T)])
    np.testing.assert_array_equal(Kron([a, b]).apply_t(y), transposed.apply(y))
    np.testing.assert_array_equal(Kron([a, b]).dense().T, transposed.dense())


@settings(max_examples=25)
@given(seed=seeds)
def test_prop_kron_pseudo_inverse(seed):
    """Reconstruction from a Kronecker product inverts its factors one by one, of full rank or not."""
    a, b = factors(seed, (3, 4), (5, 2))
    strategy = Strategy((4, 2), (Block((0, 1), (a, b)),), "kron")
    y = np.random.default_rng(seed).normal(size=15)
    expected = np.linalg.pinv(np.kron(a.array, b.array).astype(float), rcond=1e-10)
    np.testing.assert_allclose(KronLeastSquares(strategy).reconstruct([y], [1.0]), expected @ y, atol=1e-9)


@settings(max_examples=25)
@given(seed=seeds)
def test_prop_kron_associativity(seed):
    a, b, c = factors(seed, (3, 2), (2, 4), (3, 3))
    flat = Kron([a, b, c]).dense()
    np.testing.assert_array_equal(Kron([Kron([a, b]), c]).dense(), flat)
    np.testing.assert_array_equal(Kron([a, Kron([b, c])]).dense(), flat)


@settings(max_examples=25)
@given(seed=seeds)
def test_prop_kron_mixed_product(seed):
    a, b, c, d = factors(seed, (3, 4), (2, 5), (4, 3), (5, 2))
    expected = Kron([Dense(a.array @ c.array), Dense(b.array @ d.array)]).dense()
    np.testing.assert_array_equal(Kron([a, b]).apply(Kron([c, d]).dense()), expected)


LEAVES: list[Matrix] = [Identity(4), Total(4), Prefix(4), AllRange(4), Width(4, 2), Stack([Identity(4), Total(4)])]


@pytest.mark.parametrize("p", [1, 2])
@settings(max_examples=25)
@given(seed=seeds, leaf=st.sampled_from(LEAVES))
def test_thm_kron_sens_of_any_factors(p, seed, leaf):
    parts = [*factors(seed, (3, 4), (5, 2)), leaf]
    columns = (abs(reduce(np.kron, [part.dense() for part in parts])) ** p).sum(axis=0)
    assert Kron(parts).norm_power(p) == prod(part.norm_power(p) for part in parts) == columns.max()


@settings(max_examples=25)
@given(seed=seeds, leaf=st.sampled_from(LEAVES))
def test_thm_kron_sens_frobenius(seed, leaf):
    parts = [*factors(seed, (3, 4), (5, 2)), leaf]
    norm = sqrt(Kron(parts).gram().trace())
    assert norm == pytest.approx(prod(sqrt(part.gram().trace()) for part in parts))
    assert norm == pytest.approx(np.linalg.norm(Kron(parts).dense()))


SIZES = (3, 2, 4)
WEIGHTS = arrays(float, 8, elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]))
C = characteristic(SIZES).reshape(-1)


def bits(place: int) -> list[int]:
    """The first attribute is the most significant bit."""
    return [place >> (len(SIZES) - 1 - axis) & 1 for axis in range(len(SIZES))]


def c_matrix(place: int) -> np.ndarray:
    return reduce(
        np.kron, [np.eye(n) if inside else np.ones((n, n)) for n, inside in zip(SIZES, bits(place), strict=True)]
    )


def g_matrix(weights: np.ndarray) -> np.ndarray:
    return sum(weight * c_matrix(place) for place, weight in enumerate(weights))


def x_matrix(u: np.ndarray) -> np.ndarray:
    """X(u)(k, b) = Σ_{a: a&b=k} u(a)·c(a|b)."""
    found = np.zeros((8, 8))
    for a, b in product(range(8), repeat=2):
        found[a & b, b] += u[a] * C[a | b]
    return found


def test_sec_impmarg_characteristic_vector():
    """c(a) is how many cells the marginal on the attributes outside a has."""
    assert C.tolist() == [prod(n for n, inside in zip(SIZES, bits(a), strict=True) if not inside) for a in range(8)]


def test_sec_impmarg_example_of_a_two_way_marginal():
    u = np.zeros(8)
    u[0b101] = 1
    q = marginal_matrix(SIZES, u)
    np.testing.assert_array_equal(q.dense(), Kron([Identity(3), Total(2), Identity(4)]).dense())
    np.testing.assert_array_equal(q.gram().dense(), c_matrix(5))


def test_sec_impmarg_marginal_query_matrix_of_all_weights():
    u = np.arange(1.0, 9.0)
    parts = []
    for a in range(8):
        factors: list[np.ndarray] = [
            np.eye(n) if inside else np.ones((1, n)) for n, inside in zip(SIZES, bits(a), strict=True)
        ]
        parts.append(u[a] * reduce(np.kron, factors))
    np.testing.assert_array_equal(marginal_matrix(SIZES, u).dense(), np.vstack(parts))


@settings(max_examples=25)
@given(u=WEIGHTS, v=WEIGHTS)
def test_thm_margmult_by_a_triangular_matrix(u, v):
    """G(u)·G(v) = G(X(u)·v), and X(u) is upper triangular."""
    x = x_matrix(u)
    np.testing.assert_array_equal(x, np.triu(x))
    found = MarginalGram.of_weights(SIZES, u) @ MarginalGram.of_weights(SIZES, v)
    np.testing.assert_allclose(found.weights.reshape(-1), x @ v, atol=1e-9)


@settings(max_examples=25)
@given(u=WEIGHTS, v=WEIGHTS)
def test_thm_margmult_commutes(u, v):
    one, other = MarginalGram.of_weights(SIZES, u), MarginalGram.of_weights(SIZES, v)
    np.testing.assert_array_equal((one @ other).eigenvalues, (other @ one).eigenvalues)
    np.testing.assert_allclose(g_matrix(u) @ g_matrix(v), g_matrix(v) @ g_matrix(u), atol=1e-9)


@settings(max_examples=25)
@given(u=WEIGHTS)
def test_thm_marginv_by_back_substitution(u):
    """G(u)⁻¹ = G(X(u)⁻¹·z); invertible exactly where the full table has a weight."""
    singular = np.linalg.matrix_rank(g_matrix(u), rtol=1e-12) < prod(SIZES)
    assert singular == (u[-1] == 0)
    if not singular:
        weights = np.linalg.solve(x_matrix(u), np.eye(8)[-1])
        found = MarginalGram.of_weights(SIZES, u).inverse()
        np.testing.assert_allclose(found.weights.reshape(-1), weights, atol=1e-9)
        np.testing.assert_allclose(g_matrix(weights) @ g_matrix(u), np.eye(prod(SIZES)), atol=1e-9)


@settings(max_examples=25)
@given(u=WEIGHTS)
def test_thm_marginv_generalized(u):
    """Ours is a generalised inverse of every G(u), also where the paper's formula needs a special X^g.

    See docs/math.md, section 12.
    """
    inverse, known = MarginalGram.of_weights(SIZES, u).inverse().gram().dense(), g_matrix(u)
    np.testing.assert_allclose(known @ inverse @ known, known, atol=1e-8)


def v_matrix(place: int) -> np.ndarray:
    """The eigenmatrix V(a); its columns span the eigenspace of a."""
    parts = zip(SIZES, bits(place), strict=True)
    return reduce(np.kron, [np.ones((n, n)) - n * np.eye(n) if inside else np.ones((n, 1)) for n, inside in parts])


@pytest.mark.parametrize("a", range(8))
@pytest.mark.parametrize("b", range(8))
def test_thm_eigmarg_eigenmatrices_of_single_marginals(a, b):
    expected = C[b] if a & b == a else 0
    np.testing.assert_allclose(c_matrix(b) @ v_matrix(a), expected * v_matrix(a), atol=1e-9)


@settings(max_examples=25)
@given(w=WEIGHTS)
def test_thm_eigmarg_eigenmatrices(w):
    """κ(a) = Σ_{b: a&b=a} w(b)·c(b): a triangular matrix away from the weights."""
    gram = MarginalGram.of_weights(SIZES, w)
    y = np.array([[C[b] * (a & b == a) for b in range(8)] for a in range(8)])
    np.testing.assert_array_equal(y, np.triu(y))
    np.testing.assert_allclose(gram.eigenvalues.reshape(-1), y @ w)
    for a in range(8):
        np.testing.assert_allclose(gram.gram().apply(v_matrix(a)), (y @ w)[a] * v_matrix(a), atol=1e-9)


@pytest.mark.parametrize(
    "condition", [f"({a}) OR ({b})" for a, b in zip(ON_A, ON_B, strict=False)] + ["a = 2", "b = 0"]
)
def test_sec_disjuncts_negation(condition):
    """vec(¬φ) = T − vec(φ)."""
    np.testing.assert_array_equal(vec_of(f"NOT ({condition})"), 1 - vec_of(condition))


@pytest.mark.parametrize("condition", ON_A)
def test_sec_disjuncts_negation_on_one_attribute(condition):
    expected = 1 - vec(condition, "a")
    np.testing.assert_array_equal(vec(f"NOT ({condition})", "a"), expected)
    np.testing.assert_array_equal((~Where(condition)).matrix("a", SCHEMA["a"]).dense()[0], expected)


@every_pair
def test_sec_disjuncts_disjunction(on_a, on_b):
    """vec(φ_A ∨ φ_B) = T⊗T − (T − vec(φ_A))⊗(T − vec(φ_B))."""
    expected = np.ones(12) - np.kron(1 - vec(on_a, "a"), 1 - vec(on_b, "b"))
    np.testing.assert_array_equal(vec_of(f"({on_a}) OR ({on_b})"), expected)
    np.testing.assert_array_equal(vec_of(f"NOT (NOT ({on_a}) AND NOT ({on_b}))"), expected)


def disjunctions() -> Workload:
    """The Cartesian product of two sets of predicates, joined by OR."""
    pairs = product(ON_A, ON_B)
    return Workload(SCHEMA, [Product(f"{a}, {b}", where=f"({a}) OR ({b})") for a, b in pairs])


def complements() -> tuple[np.ndarray, np.ndarray]:
    """W₁ = 1 − vec(Φ_A) and W₂ = 1 − vec(Φ_B)."""
    return 1 - np.stack([vec(c, "a") for c in ON_A]), 1 - np.stack([vec(c, "b") for c in ON_B])


def test_sec_disjuncts_product_of_disjunctions():
    """W = 1⊗1 − W₁⊗W₂."""
    w1, w2 = complements()
    expected = np.kron(np.ones_like(w1), np.ones_like(w2)) - np.kron(w1, w2)
    np.testing.assert_array_equal(disjunctions().encoded.matrix().dense(), expected)


def test_sec_disjuncts_product_of_disjunctions_has_a_gram_of_four_terms():
    w1, w2 = (w.astype(float) for w in complements())
    o1, o2 = np.ones_like(w1), np.ones_like(w2)
    terms = (
        GramTerm(1.0, {0: DenseGram(o1.T @ o1), 1: DenseGram(o2.T @ o2)}),
        GramTerm(-1.0, {0: DenseGram(o1.T @ w1), 1: DenseGram(o2.T @ w2)}),
        GramTerm(-1.0, {0: DenseGram(w1.T @ o1), 1: DenseGram(w2.T @ o2)}),
        GramTerm(1.0, {0: RowsGram(w1), 1: RowsGram(w2)}),
    )
    gram = Gram(SCHEMA.sizes, terms)
    found = disjunctions().encoded.gram()
    np.testing.assert_allclose(found.dense(), gram.dense(), atol=1e-9)
    assert found.trace() == pytest.approx(gram.trace())
    x = np.random.default_rng(0).normal(size=12)
    np.testing.assert_allclose(found.apply(x), gram.apply(x), atol=1e-9)


@every_pair
def test_sec_disjuncts_a_disjunction_is_a_difference_of_two_products(on_a, on_b):
    """So its Gram matrix has four terms, whatever is counted under it."""
    (found,) = Workload(SCHEMA).add("q", a=Each(), where=f"({on_a}) OR ({on_b})").encoded.products
    assert found.condition is not None
    assert len(found.condition.boxes) == 2
    assert len(found.terms) == 4


def test_sec_disjuncts_conjunctive_and_disjunctive_queries_mix():
    """The marginal approximation sees a workload only through its Gram matrix, so it takes them together."""
    workload = (
        Workload(SCHEMA).add("and", a=Each(), b=Where("b > 0")).add("or", b=Each(), where="a = 1 OR b = 2", weight=2)
    )
    entries = workload.encoded.matrix().dense()
    approximation = MarginalGram.approximate(workload.encoded.gram())
    for u in np.eye(4):
        gram = MarginalGram.of_weights(SCHEMA.sizes, u)
        expected = np.trace(gram.gram().dense() @ (entries.T @ entries))
        assert (gram @ approximation).trace() == pytest.approx(expected)
