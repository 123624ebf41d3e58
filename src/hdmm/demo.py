"""The demonstration: made-up people, a mixed workload, and a private release compared with the truth."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from math import sqrt
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hdmm.files import scratch
from hdmm.files.atomic import check_new
from hdmm.privacy.budget import Budget
from hdmm.progress import OnProgress
from hdmm.releases import Release
from hdmm.releases.publish import release
from hdmm.schema import Bins, Schema
from hdmm.selection import select
from hdmm.spec.spec import Spec
from hdmm.text import text_table
from hdmm.workload import Identity, Prefix, Ranges, Total, Where, Workload, marginals

PEOPLE = 100_000

Bars: TypeAlias = Callable[[], AbstractContextManager[OnProgress]]

_SHOWN_TABLE = "income of adults"
_RACES = ("White", "Black", "Native", "Asian", "Pacific", "Other race", "Two or more")
_POSTAL = (
    "AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV "
    "NY OH OK OR PA RI SC SD TN TX UT VA VT WA WI WV WY"
)
_STATES = _POSTAL.split()


def demo_workload() -> Workload:
    """A census-like schema and the questions that a statistical office might ask of it."""
    person = Schema(
        sex=["F", "M"],
        age=range(115),
        hispanic=[False, True],
        race=list(_RACES),
        state=_STATES,
        income=Bins([0, 15_000, 30_000, 50_000, 75_000, 100_000, 200_000, 10_000_000]),
    )
    groups = Ranges([(0, 4), (5, 17), (18, 24), (25, 44), (45, 64), (65, 114)])
    workload = Workload(person)
    workload = workload.add("age distribution by sex", sex=Identity() | Total(), age=Prefix())
    workload = workload.add("sex by age group by state", sex=Identity(), age=groups, state=Identity())
    workload = workload.add("adults by race", age=Where("age >= 18"), hispanic=Identity(), race=Identity() | Total())
    workload = workload.add(_SHOWN_TABLE, age=Where("age >= 18"), sex=Identity() | Total(), income=Prefix())
    return workload + marginals(person, up_to=1)


def write_people(path: Path, count: int = PEOPLE) -> None:
    """Write made-up people to a CSV file, the same ones every time."""
    rng = np.random.default_rng(1790)
    age = np.clip(rng.gamma(3.2, 12.5, count), 0, 114).astype(int)
    sex = rng.random(count) < 0.49 - 0.0015 * np.maximum(age - 60, 0)
    hispanic = rng.random(count) < 0.19
    race = rng.choice(len(_RACES), count, p=(0.6, 0.124, 0.011, 0.06, 0.002, 0.088, 0.115))
    state = rng.choice(len(_STATES), count, p=rng.dirichlet(np.ones(len(_STATES)) * 2))
    income = np.where(age < 16, 0, np.minimum(rng.lognormal(10.4, 0.9, count), 9_999_999)).astype(int)
    columns = [column.tolist() for column in (sex, age, hispanic, race, state, income)]
    with path.open("w", encoding="utf-8") as file:
        file.write("sex,age,hispanic,race,state,income\n")
        file.writelines(
            f"{'M' if s else 'F'},{a},{str(h).lower()},{_RACES[r]},{_STATES[t]},{i}\n"
            for s, a, h, r, t, i in zip(*columns, strict=True)
        )


def run(budget: Budget, keep: Path | None, show: Callable[[str], None], on_candidate: OnProgress, bars: Bars) -> None:
    """Run all steps: people, plan, predicted error, release, a table, and a comparison with the truth."""
    if keep is not None:
        check_new(keep)
        keep.mkdir()
        _run(budget, keep, show, on_candidate, bars)
        show(f"\nkept in {keep}: people.csv, spec.yaml, people.plan and release/")
        return
    with scratch.directory() as directory:
        _run(budget, directory, show, on_candidate, bars)


def _run(budget: Budget, directory: Path, show: Callable[[str], None], on_candidate: OnProgress, bars: Bars) -> None:
    workload = demo_workload()
    people = directory / "people.csv"
    write_people(people)
    show(f"1. {PEOPLE:,} made-up people: {', '.join(workload.schema)}; {workload.schema.cells:,} cells\n")
    show(
        f"2. What to measure for {workload.query_count:,} queries in {len(workload.products)} products? No data needed."
    )
    show("   Candidates, with their RMSE at ε = 1:")
    plan = select(workload, on_progress=on_candidate)
    Spec(workload.schema, workload).save(directory / "spec.yaml")
    plan.save(directory / "people.plan")
    show("\n3. The error to expect, before anything is spent:\n")
    show(plan.describe(budget))
    with bars() as advance:
        released = release(plan, people, budget, ledger=None, out=directory / "release", on_progress=advance)
    truth = _truth(people, workload)
    show(f"\n4. Released, spending {budget}. The table {_SHOWN_TABLE!r}, with 95% intervals,")
    show("   and the truth, shown here only because these people are made up:\n")
    table = released.table(_SHOWN_TABLE).to_pylist()
    shown = [[*row.values(), int(true)] for row, true in zip(table, truth[_SHOWN_TABLE], strict=True)]
    show(text_table([*table[0], "truth"], shown))
    show(_compare(released, truth))


def _compare(released: Release, truth: dict[str, NDArray[np.int64]]) -> str:
    squared, covered, count = 0.0, 0, 0
    for name, table in released.tables():
        answer, low, high = (table[column].to_numpy() for column in ("answer", "low", "high"))
        squared += float(np.sum((answer - truth[name]) ** 2))
        covered += int(np.sum((low <= truth[name]) & (truth[name] <= high)))
        count += len(answer)
    predicted = released.plan.rmse(released.budget)
    return (
        f"\n5. Over all {count:,} answers: predicted RMSE {predicted:,.2f}, observed {sqrt(squared / count):,.2f}; "
        f"{covered / count:.1%} of the\n"
        "   intervals hold the truth (the answers of one release share noise, so a single one varies)"
    )


def _truth(people: Path, workload: Workload) -> dict[str, NDArray[np.int64]]:
    """The true answers to every product."""
    schema, encoded = workload.schema, workload.encoded
    rows = [line.encode().split(b",") for line in people.read_text(encoding="utf-8").splitlines()[1:]]
    codes = [schema[name].encode(column) for name, column in zip(schema, zip(*rows, strict=True), strict=True)]
    counts = np.bincount(np.ravel_multi_index(codes, schema.sizes), minlength=schema.cells)
    return {
        product.name: encoded.of(code).apply(counts)
        for product, code in zip(workload.products, encoded.products, strict=True)
    }
