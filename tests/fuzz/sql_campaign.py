"""Compare SQL with DuckDB: ``python -m tests.fuzz.sql_campaign --statements 5000``, or ``--faults``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import floor
from multiprocessing import get_context
from typing import Any

import numpy as np

from hdmm.text import text_table
from tests.fuzz.faults import Fault
from tests.fuzz.sql_oracle import PER_TABLE, Tally, campaign

_TABLES = 25
"""Tables within which a planted fault must be found."""


def _two_valued(original: Callable[..., Any], *arguments: Any) -> Any:
    found = original(*arguments)
    return replace(found, truth=np.where(found.truth > 0, 1, -1).astype(np.int8))


def _rounded_down(original: Callable[..., Any], left: Any, right: Any) -> Any:
    found = original(left, right)
    return floor(left / right) if isinstance(found, int) else found


def _without_nulls(original: Callable[..., Any], *parts: Any) -> Any:
    return original(*(part for part in parts if part is not None)) if any(part is not None for part in parts) else False


def _any_case(original: Callable[..., Any], pattern: str, escape: str | None = None) -> Any:
    matches = original(pattern.lower(), escape)
    return lambda text: matches(text.lower())


def _never_other(original: Callable[..., Any], self: Any, operator: str, column: Any, texts: Sequence[str]) -> Any:
    found = original(self, operator, column, texts)
    domain = self.domain(column)
    if domain.other and column.level is None:
        found.truth[domain.declared] = -1
    return found


FAULTS = {
    "NOT of unknown is true": Fault("hdmm.workload.cells:Cells.any_of", _two_valued),
    "other values differ from nothing": Fault("hdmm.workload.cells:Cells.any_of", _never_other),
    "NULL in a list is left out": Fault("hdmm.workload.clauses:disjunction", _without_nulls),
    "/ rounds down": Fault("hdmm.workload.scalars:divided", _rounded_down),
    "LIKE ignores case": Fault("hdmm.workload.clauses:like", _any_case),
}


def caught(name: str) -> str | None:
    """The first statement that shows a fault; None if none does."""
    with FAULTS[name].planted():
        found = campaign(range(_TABLES)).differences
    return None if not found else f"seed {found[0].seed}: {found[0].sql}"


def main() -> int:
    """The exit code: 0 if there is no difference, and every fault is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sql_campaign", description=__doc__)
    parser.add_argument("--statements", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--faults", action="store_true", help="only show that planted faults are caught")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        if given.faults:
            rows = [(name, said or "NOT CAUGHT") for name, said in zip(FAULTS, pool.map(caught, FAULTS), strict=True)]
            print(text_table(("planted fault", "found by"), rows))
            return 1 if any(said == "NOT CAUGHT" for _, said in rows) else 0
        tables = -(-given.statements // PER_TABLE)
        seeds = [range(given.seed + job, given.seed + tables, given.jobs) for job in range(given.jobs)]
        tallies: list[Tally] = list(pool.map(campaign, seeds))
    differences = [difference for tally in tallies for difference in tally.differences]
    for difference in differences[:20]:
        print(f"{difference}\n")
    compared, skipped = (sum(getattr(tally, field) for tally in tallies) for field in ("compared", "skipped"))
    print(f"{len(differences):,} differences in {compared:,} statements; {skipped:,} more are refused, as documented")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
