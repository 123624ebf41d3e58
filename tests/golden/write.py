"""Write the golden files of a version: ``python -m tests.golden.write tests/golden/0.2.0 symmetric ledger``.

A plan and a release of every case under every noise, and a ledger, or those that are named, small enough to be kept. A
case is a family of strategies, or the attributes that came later. A file that is there is never written again:
tests/golden/test_golden.py reads them with the code of today.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hdmm
from hdmm import AllRange, Identity, Level, Prefix, Total, Unit, Workload, baselines, operators
from hdmm.operators.base import Operator
from hdmm.privacy.calibrate import NoiseKind

SCHEMA = hdmm.Schema(
    sex=["F", "M"],
    age=hdmm.Integers(0, 7, levels={"group": {"young": [(0, 3)], "old": [(4, 7)]}}),
    pay=hdmm.Bins([0, "1.5", 10], missing=True),
    state=hdmm.Listed(["CA", "NY", "TX"], other=True),
)
PAIRS = (
    Workload(SCHEMA)
    .add("total")
    .add("by sex and age", sex=Identity() | Total(), age=Prefix(), weight="3/2")
    .add("by group", age=Level("group"), state=Identity())
    .add("pay", pay=Identity())
)
RANGES = Workload(SCHEMA).add("ranges", age=AllRange()).add("sexes", sex=Identity())
ACROSS = PAIRS.add("across", sex=Identity(), where="age >= 4 OR state = 'CA'")
TABLES = hdmm.marginals(SCHEMA, up_to=2)
VISITS = hdmm.Schema(
    admitted=hdmm.Dates("2024-01-10", "2024-03-20", format="%d.%m.%Y", missing=True),
    arrived=hdmm.Times("06:00", "22:30", other=True),
    stay=hdmm.Integers(0, 6, decimals=True, missing=["NA", "-9"], labels={6: "6 or more"}),
    cost=hdmm.Bins([0, "999.5", 2000], thousands=".", point=",", currency="€"),
    ward=hdmm.Listed(["A", "B"], ignore_case=True, aliases={"B": ["bee"]}, labels={"A": "Acute"}, missing=True),
    race=hdmm.Merged(white=[False, True], black=[False, True]),
)
BY_DATE = (
    Workload(VISITS)
    .add("by month", admitted=Level("month"), ward=Identity() | Total())
    .add("by hour", arrived=Prefix(), stay=hdmm.Where("stay >= 2"))
    .add("costs", cost=Identity(), race=Identity())
    .add_sql("half", "SELECT stay / 2 AS half, COUNT(*) FROM visits WHERE ward NOT IN ('a') GROUP BY half")
)
CASES: dict[str, tuple[Workload, Operator, Unit, dict[str, Any]]] = {
    "attributes": (BY_DATE, baselines.Plain(), Unit(), {}),
    "direct": (ACROSS, baselines.Plain(), Unit(), {}),
    "explicit": (RANGES, operators.Explicit(), Unit(2), {"objective": "max"}),
    "kron": (ACROSS, operators.Kron(), Unit(neighbours="replace-one"), {}),
    "marginal": (TABLES, operators.Marginal(), Unit(2, id="who"), {}),
    "marginal-plus": (PAIRS, operators.MarginalPlus(), Unit(), {}),
    "residual": (PAIRS, operators.Residual(), Unit(), {"targets": {"by group": "20@95%"}}),
    "symmetric": (ACROSS, operators.Symmetric(), Unit(2, id="who"), {}),
    "union": (PAIRS, operators.Union(), Unit(), {}),
}
LEDGER = "ledger"
GAUSSIAN_ONLY = ("residual", "symmetric")
BUDGETS: dict[NoiseKind, hdmm.Budget] = {"laplace": hdmm.Budget("1.25"), "gaussian": hdmm.Budget("1", "1e-6")}
RECORDS = [
    f"p{row // 3},{'FM'[row % 2]},{row * 7 % 9},{['', '1', '2.5', '11'][row % 4]},{['CA', 'NY', 'TX', 'WA'][row % 4]}"
    for row in range(300)
]
PEOPLE_LINES = ["who,sex,age,pay,state", *RECORDS]
VISIT_LINES = [
    "admitted;arrived;stay;cost;ward;white;black",
    *(
        f"{row % 28 + 1:02}.0{row % 4}.2024;{row % 24:02}:30:15;{['1.0', 'NA', '6', '-9', '3'][row % 5]};"
        f"{['€ 1.250,75', '999,5', '0'][row % 3]};{['a', 'BEE', '', 'c'][row % 4]};{row % 2};{['t', 'no'][row % 2]}"
        for row in range(300)
    ),
]


def main(directory: Path, names: Sequence[str]) -> None:
    """Write some of them, each case as an archive with the numbers that it is to give."""
    directory.mkdir(parents=True, exist_ok=True)
    if LEDGER in names:
        write_ledger(directory / f"{LEDGER}.db")
    for family in names:
        if family == LEDGER:
            continue
        workload, operator, unit, options = CASES[family]
        for noise, budget in BUDGETS.items():
            if family in GAUSSIAN_ONLY and noise == "laplace":
                continue
            archive = directory / f"{family}-{noise}.zip"
            if archive.exists():
                raise SystemExit(f"{archive}: is there already, and is not written again")
            plan = hdmm.select(workload, noise, unit=unit, operators=[operator], restarts=1, **options)
            with TemporaryDirectory() as place:
                data, out = Path(place) / "people.csv", Path(place) / "content" / "release"
                lines = VISIT_LINES if workload.schema is VISITS else PEOPLE_LINES
                data.write_text("\n".join(lines) + "\n")
                out.parent.mkdir()
                delimiter = ";" if ";" in lines[0] else ","
                release = hdmm.release(plan, data, budget, ledger=None, out=out, format="csv", delimiter=delimiter)
                numbers = {
                    "errors": plan.errors(budget).to_pylist(),
                    "tables": {name: table.to_pydict() for name, table in release.tables()},
                    "bound": plan.bound(budget),
                }
                (out.parent / "numbers.json").write_text(json.dumps(numbers))
                shutil.make_archive(str(archive.with_suffix("")), "zip", out.parent)


def write_ledger(path: Path) -> None:
    """A ledger with a grant, a release, a raised grant, and a release that needs it."""
    ledger = hdmm.Ledger.create(path, hdmm.Budget("1", "1e-6"), unit=Unit(2, id="who"))
    workload = TABLES
    for budget in ("0.75", "0.5"):
        plan = hdmm.select(workload, unit=Unit(2, id="who"), operators=[baselines.Identity()])
        with TemporaryDirectory() as place:
            data = Path(place) / "people.csv"
            data.write_text("\n".join(PEOPLE_LINES) + "\n")
            hdmm.release(plan, data, hdmm.Budget(budget), ledger=ledger, id=f"tables for {budget}")
        if budget == "0.75":
            ledger.grant(hdmm.Budget("0.5"), "the board, 2 March")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or [*CASES, LEDGER])
