"""Write the golden files of a version: ``python -m tests.golden.write tests/golden/0.2.0 symmetric``.

A plan and a release of every family under every noise, or of the families that are named, small enough to be kept. A
file that is there is never written again: tests/golden/test_golden.py reads them with the code of today.
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
CASES: dict[str, tuple[Workload, Operator, Unit, dict[str, Any]]] = {
    "direct": (ACROSS, baselines.Plain(), Unit(), {}),
    "explicit": (RANGES, operators.Explicit(), Unit(2), {"objective": "max"}),
    "kron": (ACROSS, operators.Kron(), Unit(neighbours="replace-one"), {}),
    "marginal": (TABLES, operators.Marginal(), Unit(2, id="who"), {}),
    "marginal-plus": (PAIRS, operators.MarginalPlus(), Unit(), {}),
    "residual": (PAIRS, operators.Residual(), Unit(), {"targets": {"by group": "20@95%"}}),
    "symmetric": (ACROSS, operators.Symmetric(), Unit(2, id="who"), {}),
    "union": (PAIRS, operators.Union(), Unit(), {}),
}
GAUSSIAN_ONLY = ("residual", "symmetric")
BUDGETS: dict[NoiseKind, hdmm.Budget] = {"laplace": hdmm.Budget("1.25"), "gaussian": hdmm.Budget("1", "1e-6")}
RECORDS = [
    f"p{row // 3},{'FM'[row % 2]},{row * 7 % 9},{['', '1', '2.5', '11'][row % 4]},{['CA', 'NY', 'TX', 'WA'][row % 4]}"
    for row in range(300)
]


def main(directory: Path, families: Sequence[str]) -> None:
    """Write those of some families, each as an archive with the numbers that it is to give."""
    directory.mkdir(parents=True, exist_ok=True)
    for family in families:
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
                data.write_text("\n".join(["who,sex,age,pay,state", *RECORDS]) + "\n")
                out.parent.mkdir()
                release = hdmm.release(plan, data, budget, ledger=None, out=out, format="csv")
                numbers = {
                    "errors": plan.errors(budget).to_pylist(),
                    "tables": {name: table.to_pydict() for name, table in release.tables()},
                    "bound": plan.bound(budget),
                }
                (out.parent / "numbers.json").write_text(json.dumps(numbers))
                shutil.make_archive(str(archive.with_suffix("")), "zip", out.parent)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(CASES))
