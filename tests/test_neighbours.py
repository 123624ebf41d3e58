"""Neighbouring data through `measure`, noise left out: no plan is changed by more than its noise is calibrated to.

The same replay as in the audit of random strategies, here of what the operators find; `tests/audit/replay.py` has it.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from unittest import mock

import numpy as np
import pytest

import hdmm
from hdmm import baselines, operators
from hdmm import measure as measuring
from hdmm.data import CsvFile
from hdmm.privacy.calibrate import Calibration, calibrate
from tests.audit import pairs, plans
from tests.audit.replay import BUDGETS, Held, replay
from tests.audit.sensitivity import wrong

NAMES = [f"{operator.name}, {noise}" for operator, noise in plans.CASES]
UNITS = [
    hdmm.Unit(rows=3),
    hdmm.Unit(neighbours="replace-one"),
    hdmm.Unit(rows=2, id="person"),
    hdmm.Unit(rows=2, neighbours="replace-one", id="person"),
]
SEVERAL = [(baselines.Identity(), "laplace"), (baselines.Plain(), "laplace"), (operators.Residual(), "gaussian")]


@pytest.mark.parametrize(("operator", "noise"), plans.CASES, ids=NAMES)
def test_the_worst_neighbour_changes_the_answers_by_what_is_declared(operator, noise):
    found = replay(plans.plan(operator, noise), np.random.default_rng(1))
    assert found.everyone
    assert not wrong(found)
    assert found.spent > 1 - Fraction(1, 2**40)  # the whole budget, but for the rounding of scales


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("operator", "noise"), SEVERAL, ids=lambda value: getattr(value, "name", value))
def test_neighbours_of_another_unit_change_them_by_no_more_than_is_declared(operator, noise, unit):
    assert not wrong(replay(pairs.plan(operator, noise, unit), np.random.default_rng(1)))


def test_a_scale_that_is_a_trillionth_too_small_is_seen():
    def short(*given) -> Calibration:
        noise = calibrate(*given)
        return replace(noise, scales=tuple(scale * (1 - Fraction(1, 10**12)) for scale in noise.scales))

    with mock.patch("hdmm.plans.mechanism.calibrate", short):
        plan = plans.plan(baselines.Plain(), "laplace")
        anew = replace(plan, mechanism=replace(plan.mechanism))  # which has calibrated nothing yet
        found = replay(anew, np.random.default_rng(1))
    assert found.spent > 1
    assert wrong(found)


def test_records_in_memory_are_counted_like_those_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "add_noise", lambda exact, kind, scale: exact)
    plan = plans.plan(baselines.Plain(), "laplace")
    cells = list(product(*map(range, plans.SCHEMA.sizes)))[::3]
    lines = [f"{'FM'[sex]},{age},{'ft'[hispanic]}" for sex, age, hispanic in cells]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["sex,age,hispanic", *lines]) + "\n")
    noise = plan.mechanism.calibrate(BUDGETS["laplace"])
    sources = Held(tuple(cells[:2]), tuple(cells[2:]), plans.SCHEMA.names), CsvFile(path)
    for held, read in zip(*(measuring.measure(plan, source, noise) for source in sources), strict=True):
        assert held.tolist() == read.tolist()
