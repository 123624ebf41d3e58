"""Days of a century, sex and region: every table of days, months and years, beside binning by month first.

The error of each table at ε = 1 (and δ = 1e-6): of a plan for days, of the same questions if the schema has months
instead of days, and of counts of single days. Then the plan for days is released from a CSV of made-up people.

    python benchmarks/dates.py [--days 36525] [--records 1000000] [--noise gaussian]
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import date, timedelta
from pathlib import Path
from time import perf_counter

import numpy as np

import hdmm

START = date(1920, 1, 1)
REGIONS = 20


def workload(days: int, by: str) -> hdmm.Workload:
    """Prefixes, months and years, and all pairs; by days or by months."""
    end = START + timedelta(days - 1)
    when = (
        hdmm.Dates(str(START), str(end), by="day")
        if by == "day"
        else hdmm.Dates(str(START)[:7], str(end)[:7], by="month")
    )
    schema = hdmm.Schema(date=when, sex=["F", "M"], region=range(REGIONS))
    months = hdmm.Level("month") if by == "day" else hdmm.Identity()
    asked = hdmm.Workload(schema).add(f"up to each {by}", date=hdmm.Prefix())
    asked = asked.add("month", date=months).add("year", date=hdmm.Level("year"))
    asked = asked.add("month × sex", date=months, sex=hdmm.Identity())
    asked = asked.add("month × region", date=months, region=hdmm.Identity())
    asked = asked.add("sex × region", sex=hdmm.Identity(), region=hdmm.Identity())
    if by == "day":
        asked = asked.add("day × sex", date=hdmm.Identity(), sex=hdmm.Identity())
        asked = asked.add("day × region", date=hdmm.Identity(), region=hdmm.Identity())
    return asked


def errors(plan: hdmm.Plan, budget: hdmm.Budget) -> dict[str, dict[str, float]]:
    """The columns of every product's errors."""
    return {row["product"]: row for row in plan.errors(budget).to_pylist()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=36_525)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--noise", choices=["gaussian", "laplace"], default="gaussian")
    arguments = parser.parse_args()
    budget = hdmm.Budget("1", "1e-6") if arguments.noise == "gaussian" else hdmm.Budget("1")
    plans, seconds = {}, {}
    for by in ("day", "month"):
        start = perf_counter()
        plans[by] = hdmm.select(workload(arguments.days, by), arguments.noise)
        seconds[by] = perf_counter() - start
        print(f"by {by}: {plans[by].operator} in {seconds[by]:.1f} s, RMSE {plans[by].rmse(budget):.2f}")
    days, months = (errors(plans[by], budget) for by in ("day", "month"))
    print(f"{'table':<16} {'queries':>8} {'by day':>8} {'by month':>9} {'cells':>9}")
    for name, row in days.items():
        binned = f"{months[name]['rmse']:>9.2f}" if name in months else f"{'–':>9}"
        print(f"{name:<16} {row['queries']:>8,} {row['rmse']:>8.2f} {binned} {row['identity']:>9.2f}")
    with tempfile.TemporaryDirectory() as directory:
        csv, out = Path(directory) / "people.csv", Path(directory) / "out"
        draws = np.random.default_rng(1)
        when = (np.sqrt(draws.random(arguments.records)) * arguments.days).astype(np.int64)
        texts = np.array([str(START + timedelta(day)) for day in range(arguments.days)])[when]
        sexes = draws.choice(["F", "M"], arguments.records)
        columns = zip(texts, sexes, draws.integers(0, REGIONS, arguments.records), strict=True)
        csv.write_text("date,sex,region\n" + "".join(f"{a},{b},{c}\n" for a, b, c in columns))
        start = perf_counter()
        release = hdmm.release(plans["day"], csv, budget, ledger=None, out=out)
        print(f"released with all tables in {perf_counter() - start:.1f} s")
        answers = release.table("up to each day")["answer"].to_numpy()
        truth = np.cumsum(np.bincount(when, minlength=arguments.days))
        print(f"observed RMSE of 'up to each day' in this release: {np.sqrt(np.mean((answers - truth) ** 2)):.2f}")


if __name__ == "__main__":
    main()
