"""Replay neighbours through every source: ``python -m tests.attack --quick --sources csv parquet``."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from time import perf_counter

from hdmm.text import text_table
from tests.attack.campaign import Tally, campaign
from tests.attack.faults import FAULTS, plant_all
from tests.attack.replay import UNITS
from tests.attack.sources import NAMES


def main() -> int:
    """The exit code: 0 where all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--sources", nargs="+", choices=NAMES, default=NAMES, help="only these")
    parser.add_argument("--quick", action="store_true", help="one unit for each value, in turn, not all of them")
    parser.add_argument("--jobs", type=int, default=2, help="sources that are attacked at the same time")
    parser.add_argument("--faults", action="store_true", help="only show that planted faults are caught")
    given = parser.parse_args()
    start = perf_counter()
    tallies = {name: Tally() for name in ([] if given.faults else given.sources)}
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {pool.submit(campaign, name, given.quick, tally): name for name, tally in tallies.items()}
        for done in as_completed(running):
            done.result()
            name = running[done]
            print(text_table(("source", "unit", "neighbours", "violations"), _rows(name, tallies[name])))
            print(f"{perf_counter() - start:.0f} seconds so far\n", flush=True)
    wrong = sum(len(tally.texts) for tally in tallies.values())
    missed = plant_all()
    replayed = sum(count for tally in tallies.values() for count in tally.replayed.values())
    unheld = sum(tally.unheld for tally in tallies.values())
    print(f"{wrong} of {replayed:,} neighbours are violations; {unheld} values could not be held by their source")
    print(f"{missed} of {len(FAULTS)} planted faults were not caught; {perf_counter() - start:.0f} seconds in all")
    return 1 if wrong or missed else 0


def _rows(name: str, tally: Tally) -> list[tuple[object, ...]]:
    if name in tally.absent:
        return [(name, f"skipped: {tally.absent[name]}", "", "")]
    return [
        (name if unit == next(iter(UNITS)) else "", unit, tally.replayed[name, unit], tally.wrong[name, unit])
        for unit in UNITS
    ]


if __name__ == "__main__":
    sys.exit(main())
