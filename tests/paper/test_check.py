"""Every baseline that the paper prints is reproduced, or shown to be off."""

import pytest

from hdmm.paper.check import Cell, check_baselines, check_strategies, tables
from hdmm.paper.rounding import Loss, best_loss


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return list(check_baselines())


def test_every_printed_cell_is_checked(cells):
    columns = ("Identity", "Baseline", "DataCube", "SVDB")
    printed = sum(row.get(column) is not None for rows in tables().values() for row in rows for column in columns)
    assert len(cells) == printed == 110


def test_every_cell_agrees_or_the_paper_is_known_to_be_off(cells):
    assert [cell for cell in cells if not cell.agrees] == []


def test_few_cells_of_the_paper_are_off_and_each_says_why(cells):
    off = [cell for cell in cells if cell.known_to_be_off]
    assert len(off) == 2
    assert all(cell.note for cell in off)


def test_a_wrong_number_is_seen():
    assert not Cell("hd1_laplace", "CPS (5D) All Marginals", "SVDB", 2.62, 2.63).agrees


def test_a_strategy_that_loses_too_much_when_it_is_rounded_is_seen():
    place = ("hd1_laplace", "CPS (5D) All Marginals", "OPT_kron", 4.85, 4.85)
    assert Cell(*place, at_most=True, rounding=9e-5).agrees
    assert not Cell(*place, at_most=True, rounding=1.1e-4).agrees


def test_the_first_strategy_of_the_tables_is_rounded_and_told_so():
    cell = next(check_strategies("one-d"))
    assert cell.rounding is not None
    assert 0 < cell.rounding <= 1e-4
    assert f"rounded {cell.rounding:+.1e}" in cell.note


def test_the_best_is_the_best_that_can_be_measured_once_it_is_rounded():
    best = best_loss([Loss(100.0, None), Loss(104.0, 104.04)])
    assert best.rounding == pytest.approx(0.02)
    assert best_loss([Loss(100.0, None)]).note == "too large to be measured"


@pytest.mark.parametrize(("workload", "exact"), [("Census (5D) SF1", "57.98"), ("Census (5D) SF1+", "115.97")])
def test_the_exact_norm_of_the_census_is_shown_beside_the_sum(cells, workload, exact):
    (cell,) = [c for c in cells if (c.table, c.workload, c.column) == ("hd1_laplace", workload, "Baseline")]
    assert exact in cell.note
