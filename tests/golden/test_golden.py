"""Plans and releases that were written by published versions are read today, and say what they said then."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hdmm
from tests.golden.write import BUDGETS, CASES, GAUSSIAN_ONLY, LEDGER, TABLES

ARCHIVES = sorted(Path(__file__).parent.glob("*/*.zip"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_release_of_a_published_version_is_read(archive: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(archive, tmp_path)
    then = json.loads((tmp_path / "numbers.json").read_text())
    release = hdmm.Release.load(tmp_path / "release")
    for row, known in zip(release.plan.errors(release.budget).to_pylist(), then["errors"], strict=True):
        assert row.pop("product") == known.pop("product")
        least, before = row.pop("bound"), known.pop("bound")  # a later version may prove more
        assert before is None or least >= before * (1 - 1e-9)
        assert row == pytest.approx(known, rel=1e-6)
    bound = release.plan.bound(release.budget)
    assert bound == then["bound"] if bound is None else bound == pytest.approx(then["bound"], rel=1e-9)
    for name, known in then["tables"].items():
        table = release.table(name).to_pydict()
        assert len(table) == len(known)
        for (column, values), (title, found) in zip(known.items(), table.items(), strict=True):
            if column in ("answer", "stderr", "low", "high"):
                assert title == column
                np.testing.assert_allclose(found, values, rtol=1e-6, atol=1e-6)
            else:  # the column of a level has its name, no longer that of its attribute
                assert title == column or title in release.plan.workload.schema[column].levels
                assert found == values


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_plan_of_a_published_version_is_written_as_it_was(archive: Path, tmp_path: Path) -> None:
    """So that the same id in a ledger still stands for the same plan."""
    shutil.unpack_archive(archive, tmp_path)
    hdmm.Plan.load(tmp_path / "release" / "plan.hdmm").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "release" / "plan.hdmm").read_bytes()


def test_every_family_is_among_them() -> None:
    expected = {f"{family}-{noise}" for family in CASES for noise in BUDGETS}
    assert {archive.stem for archive in ARCHIVES} == expected - {f"{family}-laplace" for family in GAUSSIAN_ONLY}


def test_a_ledger_of_a_published_version_is_read_and_spent(tmp_path: Path) -> None:
    path = Path(shutil.copy(ARCHIVES[-1].parent / f"{LEDGER}.db", tmp_path))
    ledger = hdmm.Ledger.open(path)
    assert [(grant.budget, grant.note) for grant in ledger.grants()] == [
        (hdmm.Budget("1", "1e-6"), None),
        (hdmm.Budget("0.5"), "the board, 2 March"),
    ]
    assert [(entry.id, str(entry.budget)) for entry in ledger.entries()] == [
        ("tables for 0.75", "ε = 0.75"),
        ("tables for 0.5", "ε = 0.5"),
    ]
    plan = hdmm.select(TABLES, unit=ledger.unit, operators=[hdmm.baselines.Identity()])
    records = pa.table({"who": ["a"], "sex": ["F"], "age": [3], "pay": [1.0], "state": ["CA"]})
    with pytest.raises(hdmm.errors.BudgetError):
        hdmm.release(plan, records, hdmm.Budget("0.26"), ledger=ledger)
    hdmm.release(plan, records, hdmm.Budget("0.25"), ledger=ledger)
    assert ledger.verify().steps == 7
