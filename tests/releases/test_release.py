"""Releases: what is published has the error that was predicted."""

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hdmm
from hdmm import measure as measuring
from hdmm.data import count
from hdmm.matrix import AllRange, Complement, Dense, Identity, Prefix, Spiked, Total, Width
from hdmm.privacy.sampling import samplers
from hdmm.releases.options import USUAL
from hdmm.strategy import Block

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(30), hispanic=[False, True])
BUDGET = hdmm.Budget(epsilon="0.5")
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    .add("older", age=hdmm.Where("age >= 18"), hispanic=hdmm.Identity() | hdmm.Total())
)
OPERATORS = [hdmm.baselines.Identity(), hdmm.baselines.Plain(), hdmm.baselines.Marginals()]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(11)
    path = tmp_path_factory.mktemp("data") / "people.csv"
    rows = [f"{'FM'[rng.integers(2)]},{rng.integers(30)},{'ft'[rng.integers(2)]}" for _ in range(500)]
    path.write_text("\n".join(["sex,age,hispanic", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def plan() -> hdmm.Plan:
    return hdmm.select(WORKLOAD)


@pytest.fixture
def counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many releases of a file read it once: only their noise differs."""
    kept: dict[tuple[object, ...], list[np.ndarray]] = {}

    def kept_counts(source, schema, tables, **options):
        if tuple(tables) not in kept:
            kept[tuple(tables)] = count(source, schema, tables, **options)
        return [table.copy() for table in kept[tuple(tables)]]

    monkeypatch.setattr(measuring, "count", kept_counts)


@cache
def gaussian_plan(operator: hdmm.operators.Operator) -> hdmm.Plan:
    return hdmm.select(WORKLOAD, noise="gaussian", operators=[operator], restarts=1)


def truth(people: Path, name: str) -> np.ndarray:
    rows = [line.split(",") for line in people.read_text().split("\n")[1:-1]]
    counts = np.zeros(SCHEMA.sizes, int)
    for sex, age, hispanic in rows:
        counts["FM".index(sex), int(age), "ft".index(hispanic)] += 1
    encoded = WORKLOAD.encoded
    place = [product.name for product in WORKLOAD.products].index(name)
    return encoded.of(encoded.products[place]).apply(counts.reshape(-1))


def mean_squared_z(people: Path, plan: hdmm.Plan, count: int, budget: hdmm.Budget = BUDGET) -> dict[str, float]:
    """Over many releases, the mean of (answer − truth)² / predicted variance of each table."""
    releases = [hdmm.release(plan, people, budget, ledger=None) for _ in range(count)]
    means = {}
    for name in (product.name for product in plan.workload.products):
        true, stderr = truth(people, name), releases[0].table(name)["stderr"].to_numpy()
        means[name] = float(np.mean([((made._rows(name, USUAL).answers - true) / stderr) ** 2 for made in releases]))
    return means


@pytest.mark.usefixtures("counted_once")
def test_the_mean_squared_z_of_1000_releases_is_one(people):
    """False alarm: 60 independent answers a release, z² has variance below 5, so ±5% is 5.4 standard deviations."""
    workload = hdmm.Workload(SCHEMA).add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    assert mean_squared_z(people, plan, 1000)["table"] == pytest.approx(1, abs=0.05)


@pytest.mark.usefixtures("counted_once")
def test_noise_that_is_5_percent_too_small_would_be_seen(people, monkeypatch):
    workload = hdmm.Workload(SCHEMA).add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])

    def smaller(scale: Fraction, count: int) -> np.ndarray:
        return samplers.discrete_laplace(scale * Fraction(95, 100), count)

    monkeypatch.setattr(measuring, "discrete_laplace", smaller)
    assert mean_squared_z(people, plan, 1000)["table"] < 0.95


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_family_has_the_predicted_error(people, operator):
    """Answers of one release are correlated, so the tolerance is wide: 15% of 600 releases is above 5 deviations."""
    plan = hdmm.select(WORKLOAD, operators=[operator])
    means = mean_squared_z(people, plan, 600)
    assert means["table"] == pytest.approx(1, abs=0.15)
    assert means["older"] == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_without_noise_every_family_gives_the_truth(people, operator, monkeypatch):
    monkeypatch.setattr(measuring, "discrete_laplace", lambda scale, count: np.zeros(count, np.int64))
    made = hdmm.release(hdmm.select(WORKLOAD, operators=[operator]), people, BUDGET, ledger=None)
    for name in ("table", "older"):
        np.testing.assert_allclose(made.table(name)["answer"].to_numpy(), truth(people, name), atol=1e-8)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_a_neighbour_moves_the_exact_answers_by_at_most_the_sensitivity(operator):
    plan = hdmm.select(WORKLOAD, operators=[operator])
    scales = plan.mechanism.calibrate(BUDGET).scales
    moves = set()
    for cell in np.ndindex(*SCHEMA.sizes):
        spent = Fraction(0)
        for block, scale in zip(plan.mechanism.blocks, scales, strict=True):
            sizes = [SCHEMA.sizes[axis] for axis in block.axes]
            person = np.zeros(block.cells, np.int64)
            person[np.ravel_multi_index([cell[axis] for axis in block.axes], sizes) if sizes else 0] = 1
            spent += Fraction(sum(abs(int(answer)) for answer in measuring.exact_answers(block, person))) / scale
        moves.add(spent)
    assert max(moves) == BUDGET.epsilon  # never more, and somebody uses all of it


def test_the_intervals_cover(people):
    """20,000 answers of few-term Laplace noise: 95% intervals cover 95% to 96.5% (the lattice rounds up)."""
    plan = hdmm.select(WORKLOAD, operators=[hdmm.baselines.Identity()])
    true = truth(people, "table")
    covered = []
    for _ in range(340):
        table = hdmm.release(plan, people, hdmm.Budget(epsilon="0.02"), ledger=None).table("table")
        covered.append((table["low"].to_numpy() <= true) & (true <= table["high"].to_numpy()))
    assert 0.94 < np.mean(covered) < 0.96


def test_two_releases_differ(people, plan):
    first, second = (hdmm.release(plan, people, BUDGET, ledger=None) for _ in range(2))
    assert any((a != b).any() for a, b in zip(first.measurements, second.measurements, strict=True))


def test_columns_and_order_of_a_table(people, plan):
    table = hdmm.release(plan, people, BUDGET, ledger=None).table("older")
    assert table.column_names == ["age", "hispanic", "answer", "stderr", "low", "high"]
    assert table["age"].to_pylist() == ["age >= 18"] * 3
    assert table["hispanic"].to_pylist() == [False, True, None]


def test_answers_of_one_release_are_consistent(people, plan):
    made = hdmm.release(plan, people, BUDGET, ledger=None)
    false, true, both = made.table("older")["answer"].to_pylist()
    assert false + true == pytest.approx(both, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"plan": "people.plan"}, "str is not a plan"),
        ({"budget": 1.0}, "expected a Budget"),
        ({"ledger": "budget.db"}, "there is no such ledger"),
        ({"format": "xlsx"}, "expected 'parquet' or 'csv'"),
        ({"data": 3}, "int is not supported"),
        ({"budget": hdmm.Budget(epsilon="1", delta="1e-6")}, "Laplace noise takes epsilon alone"),
        ({"budget": hdmm.Budget(epsilon="1e-17")}, "epsilon is too small"),
    ],
)
def test_what_cannot_be_released_is_refused_before_counting(people, plan, arguments, message, monkeypatch):
    monkeypatch.setattr(measuring, "count", lambda *args, **options: pytest.fail("data was counted"))
    given = {"plan": plan, "data": people, "budget": BUDGET, "ledger": None} | arguments
    with pytest.raises(hdmm.errors.InputError, match=message):
        hdmm.release(**given)


GAUSSIAN = [
    hdmm.operators.Residual(),
    hdmm.operators.Explicit(),
    hdmm.operators.Kron(),
    hdmm.operators.Union(groups=()),
    hdmm.operators.Marginal(),
    hdmm.baselines.Plain(),
]


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("budget", [hdmm.Budget("1", "1e-6"), hdmm.Budget(rho="0.1")], ids=str)
@pytest.mark.parametrize("operator", GAUSSIAN, ids=lambda operator: operator.name)
def test_gaussian_releases_have_the_predicted_error(people, operator, budget):
    plan = gaussian_plan(operator)
    assert all(block.integral for block in plan.mechanism.blocks)
    assert mean_squared_z(people, plan, 200, budget)["table"] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("operator", GAUSSIAN, ids=lambda operator: operator.name)
def test_without_noise_every_gaussian_family_gives_the_truth(people, operator, monkeypatch):
    monkeypatch.setattr(measuring, "rounded_gaussian", lambda sigma, count: np.zeros(count, np.int64))
    made = hdmm.release(gaussian_plan(operator), people, hdmm.Budget("1", "1e-6"), ledger=None)
    for name in ("table", "older"):
        np.testing.assert_allclose(made.table(name)["answer"].to_numpy(), truth(people, name), atol=1e-6)


@pytest.mark.parametrize("epsilon", ["1", "30"])
def test_gaussian_intervals_cover(people, epsilon):
    """Fine noise, and noise so coarse that its steps show, where a normal interval would cover too little."""
    plan = hdmm.select(WORKLOAD, noise="gaussian", operators=[hdmm.baselines.Identity()])
    budget = hdmm.Budget(epsilon, "1e-6")
    covered = []
    for _ in range(100):
        table = hdmm.release(plan, people, budget, ledger=None).table("table")
        low, high = table["low"].to_numpy(), table["high"].to_numpy()
        covered.append(((low <= truth(people, "table")) & (truth(people, "table") <= high)).mean())
    assert np.mean(covered) >= 0.94
    if epsilon == "1":
        assert np.mean(covered) <= 0.96 + 0.01


def test_a_seed_is_not_accepted(people, plan):
    with pytest.raises(TypeError, match="seed"):
        hdmm.release(plan, people, BUDGET, ledger=None, seed=1)  # type: ignore[call-arg]


def test_a_record_with_one_value_outside_is_dropped_from_every_table(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "discrete_laplace", lambda scale, count: np.zeros(count, np.int64))
    path = tmp_path / "people.csv"
    path.write_text("sex,age,hispanic\nF,20,t\nF,999,t\nF,20,maybe\nX,20,f\n")
    for operator in OPERATORS:
        made = hdmm.release(hdmm.select(WORKLOAD, operators=[operator]), path, BUDGET, ledger=None)
        assert sum(made.table("table")["answer"].to_pylist()) == pytest.approx(1)
        assert made.table("older")["answer"].to_pylist() == pytest.approx([0, 1, 1], abs=1e-6)


@pytest.mark.parametrize(("operator", "epsilon"), [("Marginals", "4"), ("Marginals", "2"), ("Identity", "9")])
@pytest.mark.parametrize("people", [1, 10**9])
def test_coarse_intervals_are_not_lost_to_rounding(operator, epsilon, people, monkeypatch):
    """Noise that is mostly zero: the interval must hold the outermost value although answers are floats."""
    schema = hdmm.Schema(a=range(5), b=range(3))
    workload = hdmm.Workload(schema).add("t", a=hdmm.Identity(), b=hdmm.Custom([[0.1, 0.1, 0], [1, 0, 0], [0, 1, 0]]))
    plan = hdmm.select(workload, operators=[getattr(hdmm.baselines, operator)()])
    counts = np.arange(15) * people + 7
    monkeypatch.setattr(measuring, "count", lambda source, schema, tables, **options: [counts.copy() for _ in tables])
    encoded = workload.encoded
    true = encoded.of(encoded.products[0]).apply(counts)
    tables = [
        hdmm.Release(
            plan,
            budget,
            tuple(measuring.measure(plan, None, plan.mechanism.calibrate(budget))),  # type: ignore[arg-type]
        ).table("t")
        for budget in [hdmm.Budget(epsilon)]
        for _ in range(600)
    ]
    covered = [(t["low"].to_numpy() <= true) & (true <= t["high"].to_numpy()) for t in tables]
    assert np.mean(covered) > 0.945


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("reach", [2**3, 2**8, 2**16])
def test_answers_are_exact_however_large_they_are(reach, axes, monkeypatch):
    """Beside Python's integers, up to every cell at the cap."""
    rng = np.random.default_rng(8)
    factors = tuple(Dense(rng.integers(-reach, reach + 1, shape)) for shape in ((3, 4), (2, 5), (1, 1)))[:axes]
    block = Block(tuple(range(axes)), factors)
    assert block.wide == (reach**axes > 2**20)
    noise = np.array([3, -5, 0, 1, -2, 7])
    monkeypatch.setattr(measuring, "rounded_gaussian", lambda scale, count: noise)
    for counts in (rng.integers(0, 1000, 20), rng.integers(0, 2**40, 20), np.full(20, 2**40)):
        exact = block.matrix.dense().astype(object) @ counts.astype(object)
        answers = measuring.exact_answers(block, counts)
        assert answers.tolist() == exact.tolist()
        noisy = measuring.add_noise(answers, "gaussian", Fraction(1))
        expected = (exact + noise.astype(object)).tolist()
        assert noisy.tolist() == ([float(value) for value in expected] if block.wide else expected)


@pytest.mark.parametrize("spare", [True, False])
@pytest.mark.parametrize("largest", [3, 2**21, 2**40])
def test_many_wide_answers_are_rounded_as_whole_sums_are(largest, spare, monkeypatch):
    """A noisy answer in two parts, and the same in one: the float is that of the sum, whatever parts it came in."""
    rng = np.random.default_rng(10)
    factors = tuple(Dense(rng.integers(-(2**12), 2**12, (3, 4))) for _ in range(3))
    block = Block((0, 1, 2), factors)
    counts = rng.integers(0, largest, 64, endpoint=True)
    noise = rng.integers(-(2**50), 2**50, 27)
    exact = block.matrix.dense().astype(object) @ counts.astype(object) + noise.astype(object)
    assert block.wide
    monkeypatch.setattr(measuring, "_MAX_PYTHON_INTEGERS", 0)
    monkeypatch.setattr(measuring, "discrete_laplace", lambda scale, count: noise)
    found = measuring.noisy_answers(block, counts.copy(), "laplace", Fraction(1), spare=spare)
    assert found.tolist() == [float(value) for value in exact]


@pytest.mark.parametrize(
    "factors",
    [
        (Width(300, 2), Dense(np.array([[3, -(2**16), 1]]))),
        (AllRange(40), Prefix(9)),
        (Spiked.centred(200), Dense(np.array([[2**16, 2**16 - 1]]))),
        (Dense(np.array([[2**16] * 5, [1] * 5])), Identity(3), Total(2)),
        (Complement(Width(50, 3)), Identity(2)),
    ],
    ids=["widths", "ranges", "deviations", "dense", "complements"],
)
def test_answers_of_every_structure_are_exact_at_the_cap(factors):
    """Also those that are differences of running sums, which floats would not hold."""
    block = Block(tuple(range(len(factors))), factors)
    rng = np.random.default_rng(9)
    for counts in (
        rng.integers(0, 2, block.cells),
        rng.integers(2**39, 2**40, block.cells),
        np.full(block.cells, 2**40),
    ):
        exact = block.matrix.dense().astype(object) @ counts.astype(object)
        assert measuring.exact_answers(block, counts).tolist() == exact.tolist()


def test_a_release_of_wide_answers_is_kept_and_its_intervals_are_normal(tmp_path):
    schema = hdmm.Schema(a=range(12), b=range(12), c=range(12), d=range(3))
    sets = {"a": hdmm.Prefix(), "b": hdmm.Prefix(), "c": hdmm.AllRange(), "d": hdmm.Identity() | hdmm.Total()}
    plan = hdmm.select(hdmm.Workload(schema).add("all", sets), "gaussian", operators=[hdmm.operators.Kron()])
    assert all(block.wide for block in plan.mechanism.blocks)
    rows = np.random.default_rng(1).integers(0, schema.sizes, (2000, 4))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in rows)]) + "\n")
    made = hdmm.release(plan, path, hdmm.Budget("1", "1e-6"), ledger=None, out=tmp_path / "out")
    table = made.table("all")
    assert hdmm.Release.load(tmp_path / "out").table("all") == table
    margin = (table["high"].to_numpy() - table["low"].to_numpy()) / 2
    np.testing.assert_allclose(margin / table["stderr"].to_numpy(), 1.96, rtol=1e-3)
    counts = np.zeros(schema.sizes, int)
    np.add.at(counts, tuple(rows.T), 1)
    encoded = plan.workload.encoded
    error = table["answer"].to_numpy() - encoded.of(encoded.products[0]).apply(counts.reshape(-1))
    assert np.sqrt((error**2).mean()) == pytest.approx(plan.rmse(hdmm.Budget("1", "1e-6")), rel=0.2)
