"""A privacy unit is what the noise is made for: no neighbours are further apart, and the errors are as predicted."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm import measure as measuring
from hdmm.data import open_source
from hdmm.errors import BudgetError, InputError
from hdmm.measure import measure
from hdmm.privacy.calibrate import NORM

SCHEMA = hdmm.Schema(a=["x", "y"], b=range(3), c=range(2))
W = (
    hdmm.Workload(SCHEMA)
    .add("prefix", a=hdmm.Identity(), b=hdmm.Prefix())
    .add("range", b=hdmm.AllRange(), c=hdmm.Identity(), weight=2)
    .add("total")
)
MARGINALS = hdmm.marginals(SCHEMA, up_to=2)
BUDGET = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}
FAMILIES = {
    "kron": (operators.Kron(), W),
    "union": (operators.Union(), W),
    "marginal": (operators.Marginal(), W),
    "marginal over bases": (operators.MarginalPlus(), W),
    "residual": (operators.Residual(), MARGINALS),
    "symmetric": (operators.Symmetric(), W),
    "explicit": (operators.Explicit(), W),
    "identity": (baselines.Identity(), W),
    "plain": (baselines.Plain(), W),
    "plain with a condition": (baselines.Plain(), W.add("either", b=hdmm.Identity(), where="a = 'x' OR c = 1")),
}
CELLS = [(a, b, c) for a in "xy" for b in range(3) for c in range(2)]


def plan_of(family: str, noise, **unit) -> hdmm.Plan:
    operator, workload = FAMILIES[family]
    if family in ("residual", "symmetric") and noise == "laplace":
        pytest.skip("residuals are for Gaussian noise")
    return hdmm.select(workload, noise, unit=hdmm.Unit(**unit), operators=[operator], restarts=1)


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is measured of some records, without noise, each answer times its block's weight."""
    monkeypatch.setattr(measuring, "add_noise", lambda answers, kind, scale: answers)

    def of(plan: hdmm.Plan, records: list[tuple]) -> np.ndarray:
        path = tmp_path / "records.csv"
        path.write_text("a,b,c,who\n" + "".join(",".join(map(str, record)) + "\n" for record in records))
        noise = plan.mechanism.calibrate(BUDGET[plan.noise])
        answers = measure(plan, open_source(path), noise)
        weighted = [
            answer.astype(object) * block.weight for answer, block in zip(answers, plan.mechanism.blocks, strict=True)
        ]
        return np.concatenate(weighted)

    return of


def distance(plan: hdmm.Plan, one: np.ndarray, other: np.ndarray):
    return sum(abs(change) ** NORM[plan.noise] for change in one - other)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_added_change_no_more_than_is_stated(replay, family, noise):
    plan = plan_of(family, noise, rows=3)
    empty = replay(plan, [])
    changes = [distance(plan, replay(plan, [(*cell, 1)] * 3), empty) for cell in CELLS]
    assert max(changes) <= plan.mechanism.change.power
    if plan.mechanism.change.exact:
        assert max(changes) == plan.mechanism.change.power


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_replaced_change_no_more_than_is_stated(replay, family, noise):
    plan = plan_of(family, noise, rows=2, neighbours="replace-one")
    alone = [replay(plan, [(*cell, 1)] * 2) for cell in CELLS]
    alone.append(replay(plan, [("outside", 1, 1, 1)] * 2))
    changes = [distance(plan, one, other) for one in alone for other in alone]
    mixed = replay(plan, [(*CELLS[0], 1), (*CELLS[5], 1)])
    changes += [distance(plan, mixed, other) for other in alone]
    assert max(changes) <= plan.mechanism.change.power
    if plan.mechanism.change.exact:
        assert max(changes) == plan.mechanism.change.power


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("family", ["kron", "residual", "plain"])
def test_a_person_with_many_rows_changes_no_more_than_is_stated(replay, family, noise):
    plan = plan_of(family, noise, rows=2, id="who")
    others = [(*cell, f"p{n}") for n, cell in enumerate(CELLS * 2)]
    without = replay(plan, others)
    for own in (CELLS, CELLS[:1] * 50, CELLS[3:9] * 3):
        changed = distance(plan, replay(plan, [*others, *((*cell, "me") for cell in own)]), without)
        assert 0 < changed <= plan.mechanism.change.power


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_more_rows_need_so_many_times_the_noise(noise):
    one, three = (plan_of("kron", noise, rows=rows) for rows in (1, 3))
    budget = hdmm.Budget("0.1", BUDGET[noise].delta)
    assert three.rmse(budget) / one.rmse(budget) == pytest.approx(3, rel=0.01)  # on integers not exactly
    assert three.certificate == one.certificate
    bound = one.bound(budget)
    assert bound is not None
    assert three.bound(budget) == pytest.approx(3 * bound, rel=0.01)


def test_replaced_rows_need_more_noise_and_the_bound_still_holds():
    added, replaced = (plan_of("explicit", "gaussian", neighbours=n) for n in ("add-remove", "replace-one"))
    ratio = replaced.rmse(BUDGET["gaussian"]) / added.rmse(BUDGET["gaussian"])
    assert ratio == pytest.approx(sqrt(replaced.mechanism.change.power / added.mechanism.change.power), rel=0.01)
    assert 1.2 < ratio < 2
    assert replaced.bound(BUDGET["gaussian"]) == added.bound(BUDGET["gaussian"])
    assert added.certificate is not None
    expected = (1 + added.certificate) * float(replaced.mechanism.change.power / added.mechanism.change.power) - 1
    assert replaced.certificate == pytest.approx(expected)


def test_the_best_plan_is_the_best_for_its_unit():
    """Candidates are compared by the noise that the unit needs, not by that of a row added."""
    plan = hdmm.select(W, "laplace", unit=hdmm.Unit(2, "replace-one"), restarts=1)
    assert plan.rmse(BUDGET["laplace"]) == pytest.approx(min(plan.candidates["rmse"].to_pylist()))


def test_a_plan_and_its_description_state_the_unit(tmp_path):
    plan = plan_of("kron", "laplace", rows=2, neighbours="replace-one", id="who")
    plan.save(tmp_path / "p.plan")
    loaded = hdmm.Plan.load(tmp_path / "p.plan")
    assert loaded.unit == hdmm.Unit(2, "replace-one", "who")
    assert loaded.mechanism.change == plan.mechanism.change
    assert "2 rows per 'who', replace-one" in loaded.describe(BUDGET["laplace"])


def test_an_upper_bound_is_said_to_be_one():
    said = "the sensitivity is an upper bound"
    assert said in plan_of("plain with a condition", "laplace", neighbours="replace-one").describe(BUDGET["laplace"])
    assert said not in plan_of("plain with a condition", "laplace").describe(BUDGET["laplace"])


def test_a_release_states_its_unit_and_charges_a_ledger_of_that_unit(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("a,b,c,who\nx,0,1,7\ny,2,0,7\n")
    plan = plan_of("identity", "laplace", rows=2, id="who")
    book = hdmm.Ledger.create(tmp_path / "people.db", hdmm.Budget("1"), hdmm.Unit(2, id="who"))
    hdmm.release(plan, path, hdmm.Budget("0.5"), ledger=book, out=tmp_path / "out")
    assert hdmm.Release.load(tmp_path / "out").plan.unit == hdmm.Unit(2, id="who")
    assert hdmm.Ledger.open(tmp_path / "people.db").unit == hdmm.Unit(2, id="who")
    other = hdmm.Ledger.create(tmp_path / "rows.db", hdmm.Budget("1"), hdmm.Unit(2))
    with pytest.raises(BudgetError, match="accounts for 2 rows per person"):
        hdmm.release(plan, path, hdmm.Budget("0.5"), ledger=other)


def test_units_that_cannot_be_meant_are_refused():
    with pytest.raises(InputError, match="id='b': is a column of the schema"):
        hdmm.select(W, unit=hdmm.Unit(id="b"))
    word: Any = "row"
    with pytest.raises(InputError, match="expected a Unit"):
        hdmm.select(W, unit=word)


def test_the_observed_error_of_a_person_with_many_rows_is_the_predicted_one(tmp_path):
    """2,000 runs of the noise of a unit of 3 rows: the mean square of every answer is its variance, within 6 sigma."""
    plan = plan_of("kron", "gaussian", rows=3, id="who")
    noise = plan.mechanism.calibrate(BUDGET["gaussian"])
    runs = 2000
    draws = [
        measuring.add_noise(np.zeros(block.queries * runs, np.int64), noise.kind, scale).reshape(runs, -1)
        for block, scale in zip(plan.mechanism.blocks, noise.scales, strict=True)
    ]
    for product in plan.workload.encoded.products:
        found = np.array(
            [
                plan.mechanism.local.answer(
                    product, plan.mechanism.local.reconstruct([draw[run] for draw in draws], noise.variances)
                )
                for run in range(runs)
            ]
        )
        name = plan.workload.products[plan.workload.encoded.products.index(product)].name
        accuracy = plan.accuracy(name, BUDGET["gaussian"])
        predicted = accuracy.expand(accuracy.stderr) ** 2
        assert abs((found**2).mean(axis=0) / predicted - 1).max() < 6 * sqrt(2 / runs)
