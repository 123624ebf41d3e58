"""Tables in other ways than the usual one: intervals that hold together, biased estimators, whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm.accuracy.margins import normal_margin
from hdmm.errors import FaultError, InputError, WorkloadError
from hdmm.estimators import graphical, joint, split
from hdmm.estimators.least_squares import local_least_squares
from hdmm.progress import Progress
from hdmm.releases.rows import BOUND, NOTE

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(8), hispanic=[False, True])
W = (
    hdmm.Workload(SCHEMA)
    .add("total")
    .add("ages", sex=hdmm.Identity(), age=hdmm.Prefix())
    .add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    .add("pairs", age=hdmm.Identity(), hispanic=hdmm.Identity())
)
UNION = (
    hdmm.Workload(SCHEMA)
    .add("table", sex=hdmm.Identity(), age=hdmm.Identity())
    .add("ranges", age=hdmm.AllRange(), hispanic=hdmm.Identity())
    .add("prefixes", age=hdmm.Prefix())
)
LAPLACE, GAUSSIAN = hdmm.Budget("0.5"), hdmm.Budget("0.5", "1e-6")


def released(operator, workload=W, noise="gaussian") -> hdmm.Release:
    """Few records: some answers are negative. The strategy is that for Gaussian noise, where unions stay unions."""
    found = hdmm.select(workload, "gaussian", operators=[operator], restarts=1)
    plan = replace(found, mechanism=replace(found.mechanism, noise=noise))
    rng = np.random.default_rng(4)
    answers = tuple(rng.integers(-20, 40, block.queries) for block in plan.mechanism.blocks)
    return hdmm.Release(plan, GAUSSIAN if noise == "gaussian" else LAPLACE, answers)


@pytest.fixture(scope="module")
def release() -> hdmm.Release:
    return released(operators.Marginal())


def test_intervals_that_hold_together_are_those_of_a_higher_level(release):
    together = release.table("ages", simultaneous=True)
    each = release.table("ages", level=1 - 0.05 / 16)
    assert together.equals(each)
    narrow, wide = release.table("ages"), release.table("ages", simultaneous=True, level=0.99)
    assert (wide["high"].to_numpy() > together["high"].to_numpy()).all()
    assert (together["high"].to_numpy() > narrow["high"].to_numpy()).all()
    margin = (together["high"].to_numpy() - together["low"].to_numpy()) / 2 / together["stderr"].to_numpy()
    assert margin == pytest.approx(normal_margin(1.0, 1 - 0.05 / 16), rel=1e-3)
    assert release.answer(W, simultaneous=True)["ages"].equals(together)
    assert dict(release.tables(simultaneous=True))["ages"].equals(together)


@pytest.mark.parametrize("estimator", ["nonnegative", pytest.param("pgm", id="Private-PGM")])
def test_biased_tables_are_never_negative_and_say_what_they_are(release, estimator):
    if estimator == "pgm" and not graphical.available():
        pytest.skip("needs mbi, the extra hdmm[pgm]")
    assert min(release.table("table")["answer"].to_pylist()) < 0
    table = release.table("table", estimator=estimator)
    assert table.column_names == ["sex", "age", "answer", "estimator"]
    assert min(table["answer"].to_pylist()) >= 0
    name = {"nonnegative": "non-negative least squares", "pgm": "Private-PGM"}[estimator]
    assert set(table["estimator"].to_pylist()) == {name}
    assert table.schema.metadata[b"hdmm.note"].decode() == NOTE
    total = release.table("total", estimator=estimator)["answer"].to_pylist()[0]
    assert sum(table["answer"].to_pylist()) == pytest.approx(total)
    for wish in ("simultaneous", "exact"):
        with pytest.raises(InputError, match=f"{wish}=True: the estimator '{estimator}' is biased"):
            release.table("table", estimator=estimator, **{wish: True})


def test_private_pgm_says_what_it_needs(release, monkeypatch):
    monkeypatch.setattr(graphical, "available", lambda: False)
    fresh = hdmm.Release(release.plan, release.budget, release.measurements)
    with pytest.raises(InputError, match=r"pip install 'hdmm\[pgm\]'"):
        fresh.table("table", estimator="pgm")


def test_new_questions_of_a_biased_estimator_are_those_it_can_tell():
    release = released(operators.Residual())
    three = hdmm.Workload(SCHEMA).add("all", dict.fromkeys(SCHEMA.names, hdmm.Identity()))
    with pytest.raises(WorkloadError, match="measured no table of sex × age × hispanic"):
        release.answer(three)
    found = release.answer(three, estimator="nonnegative")["all"]
    assert min(found["answer"].to_pylist()) >= 0
    only = hdmm.select(hdmm.Workload(SCHEMA).add("a", age=hdmm.Identity()))
    small = hdmm.Release(only, LAPLACE, tuple(np.zeros(b.queries, np.int64) for b in only.mechanism.blocks))
    with pytest.raises(WorkloadError, match="measured nothing about 'sex', 'hispanic'"):
        small.answer(three, estimator="nonnegative")


def test_an_unknown_estimator_is_refused(release):
    with pytest.raises(InputError, match="estimator='median': expected one of 'global', 'local'"):
        release.table("table", estimator="median")


@pytest.mark.parametrize("estimator", ["global", "nonnegative"])
def test_whole_numbers_add_up_and_are_near(release, estimator):
    before, after = (release.table("table", estimator=estimator, rounded=flag) for flag in (False, True))
    values, whole = (table["answer"].to_numpy() for table in (before, after))
    assert whole.dtype == np.int64
    assert abs(values - whole).max() <= 1
    for axis in (0, 1):
        assert abs(values.reshape(2, 8).sum(axis=axis) - whole.reshape(2, 8).sum(axis=axis)).max() <= 1
    assert abs(values.sum() - whole.sum()) <= 1
    assert set(after["estimator"].to_pylist()) == {
        {"global": "least squares", "nonnegative": "non-negative least squares"}[estimator] + ", rounded"
    }
    if estimator == "global":
        assert after.column_names == ["sex", "age", "answer", "low", "high", "estimator"]
        assert after["low"].equals(before["low"])
        assert after["high"].equals(before["high"])
    else:
        assert whole.min() >= 0
        assert after.column_names == ["sex", "age", "answer", "estimator"]


def test_overlapping_predicates_are_rounded_apart(release):
    values, whole = (release.table("ages", rounded=flag)["answer"].to_numpy().reshape(2, 8) for flag in (False, True))
    assert abs(values - whole).max() <= 1
    assert abs(values.sum(axis=0) - whole.sum(axis=0)).max() <= 1  # sexes are disjoint, ages up to a value are not


@pytest.mark.parametrize("operator", [operators.Union(groups=()), baselines.Plain()], ids=lambda one: one.name)
def test_local_answers_are_those_of_one_block(operator):
    release = released(operator, UNION)
    together, alone = release.table("table"), release.table("table", estimator="local")
    assert together.column_names == ["sex", "age", "answer", "stderr", "low", "high"]
    assert set(alone["estimator"].to_pylist()) == {"least squares on one block"}
    assert not np.allclose(together["answer"].to_numpy(), alone["answer"].to_numpy())
    local, noise = release.plan.mechanism.local, release.plan.mechanism.calibrate(GAUSSIAN).variances
    product = UNION.encoded.products[0]
    expected = local.answer(product, local.reconstruct(release.measurements, noise))
    np.testing.assert_allclose(alone["answer"].to_numpy(), expected)
    assert (alone["stderr"].to_numpy() >= together["stderr"].to_numpy() * (1 - 1e-9)).all()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_bounds_say_that_they_are_bounds(noise, monkeypatch):
    exact = released(operators.Union(groups=()), UNION, noise)
    with monkeypatch.context() as patch:
        patch.setattr(joint, "_MAX_COORDINATES", 0)
        patch.setattr(split, "_MAX_COORDINATES", 0)
        rough = released(operators.Union(groups=()), UNION, noise)
        assert "at most" in rough.plan.describe(rough.budget)
        table, worked_out = rough.table("table"), rough.table("table", exact=True)
        assert table.schema.metadata[b"hdmm.note"].decode() == BOUND
    known = exact.table("table")
    assert known.schema.metadata is None
    assert "at most" not in exact.plan.describe(exact.budget)
    np.testing.assert_allclose(table["answer"].to_numpy(), known["answer"].to_numpy(), atol=1e-6)
    np.testing.assert_allclose(worked_out["stderr"].to_numpy(), known["stderr"].to_numpy(), rtol=1e-6)
    assert worked_out.schema.metadata is None
    for name in ("stderr", "high"):
        assert (table[name].to_numpy() >= known[name].to_numpy() - 1e-6).all()


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_all_tables_are_written_as_they_are_asked_for(release, format, tmp_path):
    out = tmp_path / "other"
    told: list[Progress] = []
    release.save_tables(out, estimator="nonnegative", rounded=True, format=format, on_progress=told.append)
    assert told[-1].done == 1
    files = sorted(out.iterdir())
    names = ("total", "ages", "table", "pairs")
    assert [file.name for file in files] == [f"00{i}-{name}.{format}" for i, name in enumerate(names, 1)]
    expected = release.table("table", estimator="nonnegative", rounded=True)
    if format == "parquet":
        found = pyarrow.parquet.read_table(files[2])
        assert found.schema.metadata[b"hdmm.note"].decode() == NOTE
    else:
        found = pyarrow.csv.read_csv(files[2])
    assert found["answer"].to_pylist() == expected["answer"].to_pylist()
    assert found["estimator"].to_pylist() == expected["estimator"].to_pylist()
    with pytest.raises(InputError, match="exists already"):
        release.save_tables(out)
    with pytest.raises(InputError, match="expected 'parquet' or 'csv'"):
        release.save_tables(tmp_path / "new", format="xlsx")
    assert not (tmp_path / "new").exists()


def test_a_level_is_refused_where_there_are_no_intervals(release):
    with pytest.raises(InputError, match=r"level=0\.9: the estimator 'nonnegative' is biased and has no intervals"):
        release.table("total", estimator="nonnegative", level=0.9)
    for level in (17, "high", True):
        with pytest.raises(InputError, match="level="):
            release.table("total", level=level)
        with pytest.raises(InputError, match="level="):
            release.share("sex = 'F'", "sex = 'F'", level=level)


def test_biased_estimators_know_what_all_measurements_tell_together():
    """A plan of two tables, neither of them the total."""
    pytest.importorskip("mbi", reason="needs the extra hdmm[pgm]")
    workload = hdmm.Workload(SCHEMA).add("sex", sex=hdmm.Identity()).add("age", age=hdmm.Identity())
    made = released(baselines.Plain(), workload)
    total = hdmm.Workload(SCHEMA).add("total")
    unbiased, fitted = (made.answer(total, estimator=one)["total"]["answer"][0].as_py() for one in ("global", "pgm"))
    assert fitted == pytest.approx(unbiased)


def test_what_only_all_blocks_tell_is_not_local():
    workload = hdmm.Workload(SCHEMA).add("sex", sex=hdmm.Identity()).add("age", age=hdmm.Identity())
    made = released(baselines.Plain(), workload)
    total = hdmm.Workload(SCHEMA).add("total")
    assert made.answer(total)["total"].num_rows == 1
    with pytest.raises(WorkloadError, match='no single block of the release determines it; use estimator="global"'):
        made.answer(total, estimator="local")


def test_a_table_that_only_all_blocks_determine_is_refused_by_name_if_local():
    """Blocks improved together need not answer any table alone."""
    workload = hdmm.Workload(SCHEMA).add("sex", sex=hdmm.Identity()).add("ages", age=hdmm.Prefix())
    made = released(baselines.Plain(), workload)
    ages_only = replace(made.plan.mechanism.strategy, blocks=made.plan.mechanism.blocks[1:])
    assert not local_least_squares(ages_only).supports(workload.encoded.products[0])
    unpublished = replace(made.plan, mechanism=replace(made.plan.mechanism, strategy=ages_only))
    with pytest.raises(WorkloadError, match="product 'sex': no single block of the release determines it"):
        hdmm.Release(unpublished, made.budget, made.measurements[1:]).table("sex", estimator="local")


def test_a_release_whose_least_squares_does_not_settle_is_published_from_one_block_each(tmp_path, monkeypatch):
    """What was measured is paid for: it is not lost to a solver."""

    def unsettled(*_):
        raise FaultError('did not settle; take estimator="local"')

    monkeypatch.setattr("hdmm.estimators.equations._solve", unsettled)
    monkeypatch.setattr(split, "_MAX_COORDINATES", 0)
    made = released(baselines.Plain(), UNION)
    made.save(tmp_path / "out")
    loaded = hdmm.Release.load(tmp_path / "out")
    published = pyarrow.parquet.read_table(tmp_path / "out" / "tables" / "001-table.parquet")
    assert published.to_pylist() == loaded.table("table", estimator="local").to_pylist()
    assert set(published["estimator"].to_pylist()) == {"least squares on one block"}
    with pytest.raises(FaultError, match='take estimator="local"'):
        loaded.table("table")


def test_exact_errors_that_are_known_are_not_worked_out_again(monkeypatch):
    made = released(baselines.Plain(), UNION)
    usual = dict(made.tables())
    monkeypatch.setattr("numpy.linalg.eigh", lambda *_: pytest.fail("decomposed again"))
    assert all(table.equals(usual[name]) for name, table in made.tables(exact=True))
    assert made.share("sex = 'F'").low < made.share("sex = 'F'").high
