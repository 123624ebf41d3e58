"""Systems newer than the paper: every cell is at or below theirs."""

from math import sqrt

import numpy as np
import pytest

from hdmm.paper.run import run
from hdmm.paper.sections.base import Outcomes
from hdmm.paper.sections.cells import Cell
from hdmm.paper.sections.since import Since, published
from hdmm.paper.since import correlated_noise, counts_error, marginals_error
from hdmm.paper.workloads import survey_marginals
from hdmm.workload import Prefix

WAYS = ("1-way", "2-way", "3-way", "up to 3-way")
SURVEYS = ("CPS", "Loans", "Adult")


def shown(tasks: dict[str, dict[str, float | None]]) -> dict[tuple[str, ...], Cell]:
    """The cells of the section, from these outcomes."""
    outcomes: Outcomes = tasks
    return {(cell.table.split(",")[0], *cell.row, cell.column): cell for cell in Since().cells(outcomes)}


def test_every_published_number_is_a_cell():
    names = {task.name for task in Since().tasks()}
    assert {f"{kind} {survey} {ways}" for kind in ("identity marginals", "prefix marginals") for survey in SURVEYS
            for ways in WAYS} <= names  # fmt: skip
    for kind in ("identity marginals", "prefix marginals"):
        assert published()[kind]["system"] in published()["systems"]
        assert {survey: tuple(published()[kind][survey]) for survey in SURVEYS} == dict.fromkeys(SURVEYS, WAYS)


@pytest.mark.parametrize("survey", SURVEYS)
@pytest.mark.parametrize("ways", WAYS)
def test_marginals_are_as_low_as_the_bound(survey, ways):
    outcome = marginals_error(survey, ways, False)
    assert outcome["rmse"] == pytest.approx(outcome["bound"], rel=1e-9)
    assert outcome["rmse"] == pytest.approx(published()["identity marginals"][survey][ways], abs=5.1e-4)


@pytest.mark.parametrize("ways", WAYS)
def test_marginals_with_prefixes_are_below_the_published_ones(ways):
    assert marginals_error("CPS", ways, True)["rmse"] < published()["prefix marginals"]["CPS"][ways]


def test_prefixes_are_asked_where_the_conventions_say():
    for survey, count in (("CPS", 2), ("Loans", 4), ("Adult", 5)):
        workload = survey_marginals(survey, "1-way", prefixes=True)
        asked = [isinstance(sets, Prefix) for product in workload.products for sets in product.predicates.values()]
        assert asked == [True] * count + [False] * (len(asked) - count)


@pytest.mark.parametrize("d", [1, 4, 9, 16])
def test_correlated_noise_is_as_in_the_formula(d):
    """By the covariance written out, for every vector that one person may add."""
    covariance = (d + sqrt(d)) / 4 * np.eye(d) + (sqrt(d) + 1) / 4
    vectors = np.tri(d)
    lengths = np.einsum("ij,ij->i", vectors @ np.linalg.inv(covariance), vectors)
    assert correlated_noise(d) == pytest.approx(sqrt(covariance[0, 0] * lengths.max()))
    assert correlated_noise(d) == pytest.approx((sqrt(d) + 1) / 2)


@pytest.mark.parametrize("d", [4, 16, 64])
def test_counts_are_as_good_as_with_correlated_noise(d):
    outcome = counts_error(d)
    assert outcome["largest"] == pytest.approx(outcome["other"], rel=1e-9)
    assert outcome["largest"] == pytest.approx(outcome["bound"], rel=1e-3)


def test_cells_say_when_ours_is_above():
    section = Since()
    outcomes: dict[str, dict[str, float | None]] = {}
    for task in section.tasks():
        values = dict.fromkeys(("rmse", "largest", "other", "other rmse", "bound", "rmse bound", "seconds"), 1.0)
        outcomes[task.name] = {**values, "rounding": None}
    cells = shown(outcomes)
    assert all(cell.agrees for cell in cells.values())
    outcomes["prefix marginals CPS 2-way"]["rmse"] = 5.824
    outcomes["prefixes 64"]["largest"] = 1.001
    wrong = {place for place, cell in shown(outcomes).items() if not cell.agrees}
    assert wrong == {
        ("Marginals with prefixes", "CPS", "2-way"),
        ("Prefixes of n values", "n = 64", "largest error"),
    }


@pytest.mark.slow
def test_no_cell_is_above_the_other_system():
    cells = Since().cells(run(Since()))
    assert len(cells) == 34
    assert [cell for cell in cells if not cell.agrees] == []
