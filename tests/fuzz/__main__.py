"""Compare hdmm with an independent oracle on random cases: ``python -m tests.fuzz --workloads 200 --single 30``."""

import argparse
import sys
from pathlib import Path

from hdmm.text import text_table
from tests.fuzz.campaign import Tally, campaign, scripts
from tests.fuzz.cases import OPERATORS
from tests.fuzz.checks import CHECKS
from tests.fuzz.faults import plant_all

NOISES = ("laplace", "gaussian")


def main() -> int:
    """The exit code: 0 where all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--workloads", type=int, default=200, help="cases with the default operators, for each noise")
    parser.add_argument("--single", type=int, default=0, help="cases with each operator alone, for each noise")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--noise", choices=NOISES, help="only this noise")
    parser.add_argument("--operators", nargs="+", choices=list(OPERATORS), help="only these")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--scripts", type=Path, help="write the scripts of findings to this directory too")
    parser.add_argument("--faults", action="store_true", help="only show that planted faults are caught")
    given = parser.parse_args()
    if given.faults:
        return plant_all(given.jobs)
    tasks = [
        (seed, noise, operator)
        for noise in ([given.noise] if given.noise else NOISES)
        for operator in given.operators or OPERATORS
        for seed in range(given.seed, given.seed + (given.workloads if operator == "default" else given.single))
    ]
    tally = campaign(tasks, given.jobs)
    for number, ((check, kind), times, text) in enumerate(scripts(tally, given.jobs), 1):
        print(f"{times} times: {check}: {kind}\n\n{text}\n")
        if given.scripts:
            given.scripts.mkdir(parents=True, exist_ok=True)
            (given.scripts / f"{number:02d}-{check}.py").write_text(text, encoding="utf-8")
    print(table(tally))
    print(f"{tally.findings:,} findings of {len(tally.kinds)} kinds in {len(tasks):,} cases")
    return 1 if tally.findings else 0


def table(tally: Tally) -> str:
    """How often each check was made, for each noise and operator."""
    checks = ["does not apply", "select", *CHECKS]
    pairs = sorted(
        {(noise, operator) for _, noise, operator in tally.checks}, key=lambda p: (p[0], [*OPERATORS].index(p[1]))
    )
    rows = [(noise, operator, *(tally.checks[check, noise, operator] for check in checks)) for noise, operator in pairs]
    return text_table(("noise", "operator", *checks), rows)


if __name__ == "__main__":
    sys.exit(main())
