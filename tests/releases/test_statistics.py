"""Shares, ratios and quantiles: covariances beside the pseudo-inverse, and intervals that hold as often as they say.

Coverage is counted on simulated releases. Whether a ratio's interval holds the true ratio p is the same as whether
a − p·b is within its margin, which is one comparison; that the two agree is a test of its own.
"""

from functools import cache
from math import inf, sqrt

import numpy as np
import pyarrow.compute as pc
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.accuracy.predict import accuracy
from hdmm.errors import InputError, TooLargeError, WorkloadError
from hdmm.measure import add_noise
from hdmm.privacy.calibrate import NoiseKind
from hdmm.releases import statistics
from hdmm.releases.estimates import Estimates
from hdmm.releases.ratio import Ratio, interval
from hdmm.releases.selection import boxes_of, each_alone, encoded, read_boxes
from hdmm.releases.statistics import Quantile, _Combiner, located
from tests.audit import plans
from tests.audit.simulate import exact, releases
from tests.contract.zoo import dense_blocks

LEVEL = 0.95
SEX, AGE, HISPANIC = np.indices(plans.SCHEMA.sizes)
TABLE = np.random.default_rng(5).poisson(30, plans.SCHEMA.sizes)
RARE = np.random.default_rng(6).poisson(1.0, plans.SCHEMA.sizes)
UNEVEN = np.where((SEX == 0) & (AGE == 3), 1000, TABLE)

PAIRS = {
    "cell of a row": ("sex = 'F' AND age = 3", "sex = 'F'", (SEX == 0) & (AGE == 3), SEX == 0),
    "cell of all": ("sex = 'M' AND age = 5", None, (SEX == 1) & (AGE == 5), SEX >= 0),
    "two cells": ("sex = 'F' AND age = 3", "sex = 'M' AND age = 4", (SEX == 0) & (AGE == 3), (SEX == 1) & (AGE == 4)),
    "alternatives": ("hispanic OR age >= 5", "age >= 2", (HISPANIC == 1) | (AGE >= 5), AGE >= 2),
}
ASKED = [(operator, noise) for operator, noise in plans.CASES if operator != baselines.Plain()]

every_plan = pytest.mark.parametrize(("operator", "noise"), ASKED, ids=lambda value: str(value).split("(")[0])
every_pair = pytest.mark.parametrize("pair", PAIRS)


def budget_for(noise, size="1"):
    return hdmm.Budget(size) if noise == "laplace" else hdmm.Budget(size, "1e-6")


def split(plan, measured):
    ends = np.cumsum([block.queries for block in plan.mechanism.blocks])
    return tuple(np.split(measured, ends[:-1]))


def made(plan, budget, table=TABLE):
    return hdmm.Release(plan, budget, split(plan, releases(plan, budget, table, 1, add_noise)[0]))


@cache
def joint(operator, noise, pair, budget):
    """The estimator of a pair of counts, and the law of their errors."""
    above, below = (boxes_of(plans.SCHEMA, counted, "") for counted in PAIRS[pair][:2])
    release = made(plans.plan(operator, noise), budget)
    sizes = plans.SCHEMA.sizes
    combiner = _Combiner.of(release._estimates, [each_alone(sizes, above), each_alone(sizes, below)])
    return combiner, combiner.law(above, below), [encoded(sizes, terms) for terms in (above, below)]


def dense_rows(strategy, workload, noise, masks):
    """The coefficients of all measurements in the least-squares estimates of some counts."""
    blocks = dense_blocks(strategy, workload.encoded)
    spread = np.sqrt(np.repeat(noise, [len(block) for block in blocks]))
    inverse = np.linalg.pinv(np.vstack(blocks) / spread[:, None], rcond=1e-10) / spread
    return np.stack([mask.reshape(-1).astype(float) for mask in masks]) @ inverse, spread**2


@every_plan
@every_pair
def test_covariance_is_that_of_the_pseudo_inverse(operator, noise, pair):
    combiner, law, _ = joint(operator, noise, pair, budget_for(noise))
    masks = PAIRS[pair][2:]
    rows, variances = dense_rows(combiner.estimator.strategy, plans.WORKLOAD, combiner.noise.variances, masks)
    (a, both), (_, b) = rows * variances @ rows.T
    np.testing.assert_allclose(law.covariance(), (a, b, both), rtol=1e-6, atol=1e-9 * (a + b))


def test_counts_on_attributes_that_were_not_measured_together():
    schema = hdmm.Schema(x=["a", "b"], y=range(3))
    workload = hdmm.Workload(schema).add("x", x=hdmm.Identity()).add("y", y=hdmm.Identity())
    x, y = np.indices(schema.sizes)
    families: dict[NoiseKind, operators.Operator] = {"laplace": operators.Marginal(), "gaussian": operators.Residual()}
    for noise, operator in families.items():
        plan = hdmm.select(workload, noise, operators=[operator], restarts=1)
        release = made(plan, budget_for(noise), np.full(schema.sizes, 50))
        above, below = boxes_of(schema, {"x": "a"}, ""), boxes_of(schema, {"y": 1}, "")
        combiner = _Combiner.of(release._estimates, [each_alone(schema.sizes, terms) for terms in (above, below)])
        rows, variances = dense_rows(plan.mechanism.strategy, workload, combiner.noise.variances, [x == 0, y == 1])
        (a, both), (_, b) = rows * variances @ rows.T
        np.testing.assert_allclose(combiner.law(above, below).covariance(), (a, b, both), rtol=1e-9)
        assert release.ratio({"x": "a"}, {"y": 1}).bounded


@every_pair
def test_gaussian_intervals_are_those_of_fieller(pair):
    plan = plans.plan(operators.Residual(), "gaussian")
    release = made(plan, budget_for("gaussian", "0.2"), 10 * TABLE)
    part, whole, *masks = PAIRS[pair]
    combiner, *_ = joint(operators.Residual(), "gaussian", pair, budget_for("gaussian", "0.2"))
    rows, variances = dense_rows(plan.mechanism.strategy, plans.WORKLOAD, combiner.noise.variances, masks)
    a, b = rows @ np.concatenate(release.measurements)
    (aa, ab), (_, bb) = 1.959964**2 * (rows * variances @ rows.T)
    middle, left = a * b - ab, b**2 - bb
    root = sqrt(middle**2 - left * (a**2 - aa))
    found = release.ratio(part, whole)
    assert found.value == pytest.approx(a / b)
    assert found.low == pytest.approx((middle - root) / left, abs=3e-3 * root / left)
    assert found.high == pytest.approx((middle + root) / left, abs=3e-3 * root / left)


def simulated(operator, noise, pair, budget, table, count):
    """The estimates of a pair of counts in many releases, and their true values."""
    plan = plans.plan(operator, noise)
    combiner, law, queries = joint(operator, noise, pair, budget)
    measured = releases(plan, budget, table, count, add_noise)
    own = [plan.mechanism.blocks.index(block) for block in combiner.estimator.blocks]
    ends = np.cumsum([0, *(block.queries for block in plan.mechanism.blocks)])
    measured = np.concatenate([measured[:, ends[place] : ends[place + 1]] for place in own], axis=1)

    def answers(given):
        cuts = np.cumsum([block.queries for block in combiner.estimator.blocks])[:-1]
        state = combiner.estimator.reconstruct(np.split(given, cuts), combiner.noise.variances)
        return [float(combiner.estimator.answer(query, state)[0]) for query in queries]

    rows = np.array([answers(unit) for unit in np.eye(measured.shape[1])])
    return measured @ rows, [float(table[mask].sum()) for mask in PAIRS[pair][2:]], law


def exact_margin(law, estimates, p):
    return np.full(len(estimates), law.margin(1, p, LEVEL))


def delta_method(law, estimates, p):
    """The fault: the ratio as if it were linear, so that it is its own estimate that the margin is taken at."""
    a, b = estimates.T
    var_a, var_b, cov = law.covariance()
    own = a / np.where(b == 0, 1, b)
    return 1.96 * np.sqrt(var_a - 2 * own * cov + own**2 * var_b)


def no_covariance(law, estimates, p):
    """The fault: both counts as if they were independent."""
    var_a, var_b, _ = law.covariance()
    return np.full(len(estimates), 1.96 * sqrt(var_a + p**2 * var_b))


def normal(law, estimates, p):
    """The fault: 1.96 standard errors, also for few Laplace variables."""
    var_a, var_b, cov = law.covariance()
    return np.full(len(estimates), 1.96 * sqrt(var_a - 2 * p * cov + p**2 * var_b))


def coverage(margins, case):
    estimates, (a, b), law = simulated(*case)
    p = a / b
    return float(np.mean(abs(estimates @ [1, -p]) <= margins(law, estimates, p) + 1e-9))


RELEASES = 40_000
ROUGH, FINE = hdmm.Budget("0.2", "1e-6"), hdmm.Budget("0.02")
CASES = [
    (operators.Residual(), "gaussian", "cell of a row", ROUGH, TABLE, RELEASES),
    (operators.Residual(), "gaussian", "cell of a row", ROUGH, RARE, RELEASES),
    (operators.Residual(), "gaussian", "two cells", ROUGH, UNEVEN, RELEASES),
    (operators.Union(groups=()), "gaussian", "alternatives", ROUGH, RARE, RELEASES),
    (baselines.Identity(), "laplace", "cell of a row", FINE, TABLE, RELEASES),
    (baselines.Identity(), "laplace", "two cells", FINE, RARE, RELEASES),
    (operators.Marginal(), "laplace", "cell of all", FINE, RARE, RELEASES),
    (operators.Explicit(), "laplace", "alternatives", hdmm.Budget("0.1"), TABLE, RELEASES),
]
COARSE = [
    (baselines.Identity(), "laplace", "cell of a row", hdmm.Budget("1"), TABLE, RELEASES),
    (baselines.Identity(), "laplace", "two cells", hdmm.Budget("3"), TABLE, RELEASES),
    (baselines.Identity(), "gaussian", "two cells", hdmm.Budget(rho="0.5"), TABLE, RELEASES),
]
FAULTS = [(delta_method, CASES[2]), (no_covariance, CASES[3]), (normal, CASES[6])]


def named(case):
    return f"{str(case[0]).split('(')[0]}, {case[2]}" if isinstance(case, tuple) else case.__name__


@pytest.mark.parametrize("case", CASES, ids=named)
def test_ratios_are_within_their_margins_as_often_as_it_says(case):
    """Of 40,000 releases, 95% has a standard deviation of 0.11 points: to be a point off is nine of them."""
    assert 0.94 <= coverage(exact_margin, case) <= 0.96


@pytest.mark.parametrize("case", COARSE, ids=named)
def test_ratios_are_within_their_margins_often_enough_where_noise_has_large_steps(case):
    assert coverage(exact_margin, case) >= 0.94


@pytest.mark.parametrize(("fault", "case"), FAULTS, ids=named)
def test_other_margins_are_not(fault, case):
    off = 0.0025 if fault is normal else 0.01  # sums of Laplace variables are almost normal there: six deviations
    assert abs(coverage(fault, case) - LEVEL) > off


@pytest.mark.parametrize("case", [*CASES, *COARSE], ids=named)
def test_an_interval_holds_what_is_within_its_margin(case):
    """But for a percent about the margin, where the ends are not found exactly; with large steps it may hold more."""
    operator, noise, pair, budget, table, _ = case
    estimates, (true_a, true_b), law = simulated(
        operator, noise, pair, budget, table, 200 if noise == "gaussian" else 12
    )
    p = true_a / true_b
    reach, below = law.margin(1, p, LEVEL), law.margin(0, 1, LEVEL)
    bounded = 0
    for a, b in estimates:
        found = interval(a, b, law, LEVEL)
        assert not found.bounded or abs(b) > below
        assert found.bounded or abs(b) < 1.1 * below  # just above it, an end may be too far away to be looked for
        bounded += found.bounded
        if not found.bounded:
            assert abs(b) > below or (found.low, found.high) == (-inf, inf)
            continue
        assert found.low <= found.value <= found.high
        inside = found.low <= p <= found.high
        if abs(a - p * b) <= 0.99 * reach:
            assert inside
        if abs(a - p * b) >= 1.01 * reach and case not in COARSE:
            assert not inside
    assert bounded or case[4] is RARE


def test_shares_are_the_ratios_of_their_records():
    release = made(plans.plan(operators.Marginal(), "laplace"), budget_for("laplace"))
    found = release.share("hispanic OR age >= 5", {"sex": "F"}, level=0.999999)
    same = release.ratio("sex = 'F' AND (hispanic OR age >= 5)", {"sex": hdmm.Values(["F"])}, level=0.999999)
    assert found == same
    assert found.low < (TABLE[0, :, 1].sum() + TABLE[0, 5:, 0].sum()) / TABLE[0].sum() < found.high
    assert found != release.share("hispanic OR age >= 5")


def test_a_narrower_level_is_a_narrower_interval():
    release = made(plans.plan(operators.Residual(), "gaussian"), budget_for("gaussian"))
    half, most = (release.share({"age": 3}, level=level) for level in (0.5, 0.99))
    assert most.low < half.low < half.high < most.high


def test_what_is_known_without_data_is_exact():
    release = made(plans.plan(operators.Marginal(), "laplace"), budget_for("laplace"))
    assert release.share({"age": 3}, {"age": 3}) == Ratio(1, 1, 1)
    assert release.share(None) == Ratio(1, 1, 1)
    assert release.share({"age": 3}, {"age": 4}) == Ratio(0, 0, 0)


@pytest.mark.parametrize(
    ("operator", "noise"), [(operators.Residual(), "gaussian"), (operators.Union(groups=()), "laplace")]
)
@pytest.mark.parametrize(
    ("name", "within", "wholes"),
    [
        ("table", ["sex"], lambda sex, age: {"sex": sex}),
        ("table", [], lambda sex, age: None),
        ("either", ["sex"], lambda sex, age: f"sex = '{sex}' AND (hispanic OR age >= 5)"),
    ],
)
def test_tables_of_shares_are_the_shares_of_all_rows(operator, noise, name, within, wholes):
    release = made(plans.plan(operator, noise), budget_for(noise))
    table = release.shares(name, within)
    attributes = [column for column in ("sex", "age") if column in table.column_names]
    assert table.column_names == [*attributes, "share", "low", "high"]
    assert table.select(attributes) == release.table(name).select(attributes)
    if within:
        held = pc.equal(table["sex"], "F")
        total = sum(table.filter(held)["share"].to_pylist())
        assert total == pytest.approx(1)
    for row in table.to_pylist()[3::5]:
        whole = wholes(row["sex"], row.get("age"))
        found = release.share({each: row[each] for each in attributes}, whole)
        expected = (found.value, found.low, found.high)
        assert (row["share"], row["low"], row["high"]) == pytest.approx(expected)


def test_a_share_without_a_finite_interval_is_null_in_the_table():
    plan = plans.plan(operators.Residual(), "gaussian")
    zeros = hdmm.Release(plan, budget_for("gaussian"), split(plan, np.concatenate(exact(plan, 0 * TABLE))))
    table = zeros.shares("table", ["sex"])
    assert table["low"].null_count == table["high"].null_count == table["share"].null_count == len(table)


@cache
def line(noise, cells=40):
    workload = hdmm.Workload(hdmm.Schema(x=range(cells), y=["a", "b"])).add("x", x=hdmm.Identity(), y=hdmm.Identity())
    return hdmm.select(workload, noise, operators=[baselines.Identity()])


def true_quantile(counts, at):
    return int(np.argmax(np.cumsum(counts) >= at * counts.sum()))


SHAPES = {
    "flat": np.tile(np.random.default_rng(7).poisson(8, 40), (2, 1)).T,
    "a jump": np.where(np.arange(40) == 20, 900, 3)[:, None] * [1, 1],
    "a gap": np.where(abs(np.arange(40) - 20) < 8, 0, 12)[:, None] * [1, 1],
}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("at", [0.5, 0.9])
def test_quantiles_are_covered_as_often_as_they_say(noise, shape, at):
    """Of 10,000 releases, 95% has a standard deviation of 0.22 points: to be a point below is nearly five of them."""
    plan, table = line(noise), SHAPES[shape]
    budget = hdmm.Budget("0.1") if noise == "laplace" else hdmm.Budget("0.5", "1e-6")
    true, count = true_quantile(table[:, 0], at), 10_000
    asked = hdmm.Custom(np.tri(40) - at)
    query = hdmm.Workload(plan.workload.schema).add("below", x=asked, y=hdmm.Values(["a"])).encoded.products[0]
    predicted = accuracy(plan.mechanism.local, query, plan.mechanism.calibrate(budget))
    margins = predicted.expand(predicted.margin)
    measured = releases(plan, budget, table, count, add_noise)
    found = np.array([located(excess, margins) for excess in measured[:, ::2] @ (np.tri(40) - at).T])
    assert np.mean((found[:, 1] <= true) & (true <= found[:, 2])) >= 0.94
    assert ((found[:, 1] <= found[:, 0]) & (found[:, 0] <= found[:, 2])).all()
    if shape == "flat":
        assert np.mean(found[:, 0] == true) < 0.9, "the value alone does not hold as often"
    for one, codes in zip(measured[:3], found[:3].tolist(), strict=True):
        assert hdmm.Release(plan, budget, (one,)).quantile("x", at, where="y = 'a'") == Quantile(*codes)


def test_a_quantile_that_must_meet_its_share_exactly_is_lost_at_a_jump():
    """The fault: to keep only values whose own count may be the share; no count is, where many have one value."""
    excess, margins = np.cumsum(np.where(np.arange(40) == 20, 900, 3)) - 0.5 * 1017, np.full(40, 20.0)
    assert located(excess, margins) == (20, 20, 20)
    assert not (abs(excess) <= margins).any()


def isotonic(values):
    """The isotonic regression by its definition as a largest of least means."""
    n = len(values)
    return [max(min(np.mean(values[i : j + 1]) for j in range(v, n)) for i in range(v + 1)) for v in range(n)]


def test_the_value_is_where_the_isotonic_regression_gets_there():
    plan = line("laplace", 12)
    rng = np.random.default_rng(8)
    differs = 0
    for _ in range(60):
        counts = rng.integers(-6, 9, 12)
        counts[0] += max(0, 5 - counts.sum())
        release = hdmm.Release(plan, hdmm.Budget("1"), (np.stack([counts, 0 * counts], axis=1).reshape(-1),))
        excess = np.cumsum(counts) - 0.5 * counts.sum()
        smooth = np.array(isotonic(excess))
        found = release.quantile("x")
        assert found.value == int(np.argmax(smooth >= -1e-9))
        differs += found.value != int(np.argmax(excess >= 0))
    assert differs


def test_other_and_missing_values_are_not_in_quantiles():
    schema = hdmm.Schema(x=hdmm.Integers(0, 4, other=True, missing=True))
    plan = hdmm.select(hdmm.Workload(schema).add("x", x=hdmm.Identity()), "laplace", operators=[baselines.Identity()])
    release = hdmm.Release(plan, hdmm.Budget("1"), (np.array([0, 1000, 1000, 1000, 0, 90_000, 90_000]),))
    assert release.quantile("x") == Quantile(2, 2, 2)


def test_no_value_fits_where_the_total_is_far_below_zero():
    release = hdmm.Release(line("laplace", 12), hdmm.Budget("1"), (np.where(np.arange(24) == 0, -1000, 0),))
    assert release.quantile("x") == Quantile(None, None, None)


@pytest.mark.parametrize(
    ("ask", "kind", "says"),
    [
        (lambda release: release.share("tall"), WorkloadError, "tall"),
        (lambda release: release.share({"height": 3}), WorkloadError, "height"),
        (lambda release: release.share({"age": 99}), WorkloadError, "99"),
        (lambda release: release.share(0.5), InputError, r"part=0\.5: expected an SQL condition"),
        (lambda release: release.share({"age": hdmm.Identity()}), InputError, "part: .* holds 8 predicates; give one"),
        (lambda release: release.share({"age": hdmm.Custom(range(8))}), InputError, "does not count records"),
        (lambda release: release.share({"age": 3}, level=1.5), InputError, r"level=1\.5"),
        (lambda release: release.ratio({"age": 3}, {"age": hdmm.Custom([0] * 8)}), InputError, "no record"),
        (lambda release: release.shares("tables"), WorkloadError, "'table'"),
        (lambda release: release.shares("table", "sex"), InputError, "within='sex': expected a list"),
        (lambda release: release.shares("table", ["hispanic"]), InputError, "among .*'sex', 'age'"),
        (lambda release: release.quantile("age", 1.0), InputError, r"at=1\.0: expected a share between"),
        (lambda release: release.quantile("height"), WorkloadError, "height"),
        (lambda release: release.quantile("age", where={"sex": hdmm.Custom([0, 0])}), InputError, "counts no record"),
    ],
)
def test_mistakes_are_named(ask, kind, says):
    release = made(plans.plan(operators.Marginal(), "laplace"), budget_for("laplace"))
    with pytest.raises(kind, match=says):
        ask(release)


def test_what_the_release_cannot_tell_is_refused():
    schema = hdmm.Schema(x=["a", "b"], y=["c", "d"])
    workload = hdmm.Workload(schema).add("x", x=hdmm.Identity()).add("y", y=hdmm.Identity())
    for operator in (operators.Residual(), operators.Marginal(), operators.Union(groups=()), baselines.Plain()):
        plan = hdmm.select(workload, "gaussian", operators=[operator], restarts=1)
        release = made(plan, budget_for("gaussian"), np.full(schema.sizes, 50))
        with pytest.raises(WorkloadError, match="plan a workload with a product on all their attributes"):
            release.share("x = 'a' OR y = 'c'")


def test_all_measurements_of_a_plain_release_tell_shares_together():
    release = made(plans.plan(baselines.Plain(), "laplace"), budget_for("laplace"), 1000 * TABLE)
    table = release.shares("table", ["sex"], level=0.999999)
    assert sum(table["share"].to_pylist()) == pytest.approx(2)
    truth = (TABLE.sum(axis=2) / TABLE.sum(axis=(1, 2))[:, None]).reshape(-1)
    assert (table["low"].to_numpy() <= truth).all()
    assert (table["high"].to_numpy() >= truth).all()


def test_what_would_take_too_long_or_too_much_is_refused():
    schema = hdmm.Schema(x=range(5000), y=range(200))
    workload = hdmm.Workload(schema).add("both", x=hdmm.Identity(), y=hdmm.Identity())
    plan = hdmm.select(workload, "laplace", operators=[baselines.Identity()])
    release = hdmm.Release(plan, hdmm.Budget("1"), (np.zeros(schema.cells, np.int64),))
    with pytest.raises(TooLargeError, match="1000000 shares"):
        release.shares("both")


@pytest.mark.parametrize("operator", [baselines.Identity(), baselines.HB(), baselines.Privelet()])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("at", [0.5, 0.9])
@pytest.mark.parametrize("where", [None, "y = 'a' OR x < 7"])
def test_quantiles_among_many_values_err_as_those_among_few(operator, noise, at, where):
    schema = hdmm.Schema(x=hdmm.Integers(0, 39, other=True), y=["a", "b"])
    workload = hdmm.Workload(schema).add("x", x=hdmm.Prefix() | hdmm.Identity(), y=hdmm.Identity())
    plan = hdmm.select(workload, noise, operators=[operator])
    budget = hdmm.Budget("0.1") if noise == "laplace" else hdmm.Budget("0.5", "1e-6")
    noisy = tuple(np.random.default_rng(5).integers(0, 90, block.queries) for block in plan.mechanism.blocks)
    estimates = Estimates(plan, budget, noisy)
    asked = estimates, read_boxes(plan, where, "where"), 0, schema["x"], at, 0.95
    (excess, margins), (same, covering) = statistics._excess(*asked), statistics._long_excess(*asked)
    assert np.allclose(excess, same)
    if noise == "gaussian":
        assert np.allclose(margins, covering, rtol=1e-6)
    else:
        assert (covering >= margins * (1 - 1e-9)).all()
        assert (covering <= margins * 1.2).all()


def test_a_quantile_among_many_values_is_found(monkeypatch):
    plan = line("gaussian")
    release = hdmm.Release(plan, hdmm.Budget("0.5", "1e-6"), (np.arange(80),))
    few = release.quantile("x", 0.25)
    monkeypatch.setattr(statistics, "_MAX_VALUES", 39)
    assert release.quantile("x", 0.25) == few
