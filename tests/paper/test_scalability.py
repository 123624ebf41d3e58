"""The figures of running times: what is timed, and what a partial run shows."""

import pytest

from hdmm.paper.sections.base import Outcome
from hdmm.paper.sections.scalability import Scalability
from hdmm.paper.timing import OPERATORS, reconstruct_time, ten_products


def test_ten_products_stay_a_union():
    encoded = ten_products(3, 5)
    assert len(encoded.products) == len(encoded.compact.products) == 10


@pytest.mark.parametrize("operator", OPERATORS)
def test_reconstruction_is_timed_on_a_vector_of_all_cells(operator):
    outcome = reconstruct_time(operator, 2, 3)
    assert outcome["cells"] == 9
    assert outcome["seconds"] > 0


def test_every_curve_has_its_points_and_what_was_not_timed_says_so():
    section = Scalability()
    tasks = section.tasks()
    assert all(task.timed for task in tasks)
    quick = [task for task in tasks if not task.slow]
    outcomes: dict[str, Outcome] = {task.name: {"seconds": 2.0**place} for place, task in enumerate(quick)}
    cells = section.cells(outcomes)
    assert len(cells) == len(tasks)
    assert sum(cell.ours is None and cell.footnote != "" for cell in cells) == sum(task.slow for task in tasks) > 0
    assert set(section.charts(outcomes)) >= {"scalability-opt0"}
