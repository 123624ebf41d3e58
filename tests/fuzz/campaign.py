"""Many cases on several processes: what was checked, and what was found."""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from time import perf_counter

from tests.fuzz.cases import Case
from tests.fuzz.checks import run_case
from tests.fuzz.script import script
from tests.fuzz.session import Finding
from tests.fuzz.shrink import shrunk

Task = tuple[int, str, str]
"""A seed, a noise and an operator."""


@dataclass
class Outcome:
    """What came of one case."""

    task: Task
    checks: Counter[str]
    findings: list[Finding]
    seconds: float


@dataclass
class Tally:
    """What came of all cases."""

    checks: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By check, noise and operator."""
    kinds: dict[tuple[str, str], list[tuple[Finding, Task]]] = field(default_factory=dict)
    """The findings by their signatures."""

    @property
    def findings(self) -> int:
        """How many there are, equal ones counted each time."""
        return sum(map(len, self.kinds.values()))


@contextmanager
def strict() -> Iterator[None]:
    """No warnings, but an internal error of an operator, which is otherwise one of them, is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*an internal error", category=RuntimeWarning)
        yield


def run_task(task: Task) -> Outcome:
    """Make the case of a task, and check it."""
    start = perf_counter()
    with strict():
        findings, checks = run_case(Case.random(*task))
    return Outcome(task, checks, findings, perf_counter() - start)


def run_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """The outcomes as they come."""
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(run_task, tasks, chunksize=4)


def campaign(tasks: Sequence[Task], jobs: int) -> Tally:
    """Run all tasks, with a line of progress on stderr."""
    tally = Tally()
    start = perf_counter()
    for number, outcome in enumerate(run_tasks(tasks, jobs), 1):
        _, noise, operator = outcome.task
        for check, times in outcome.checks.items():
            tally.checks[check, noise, operator] += times
        for finding in outcome.findings:
            tally.kinds.setdefault(finding.signature, []).append((finding, outcome.task))
            print(f"\r{outcome.task}: {': '.join(finding.signature)}", file=sys.stderr, flush=True)
        if number % 10 == 0 or number == len(tasks):
            seconds = perf_counter() - start
            print(
                f"\r{number:,} of {len(tasks):,} cases, {tally.findings} findings of {len(tally.kinds)} kinds, "
                f"{seconds:.0f} s ",
                end="\n" if number == len(tasks) else "",
                file=sys.stderr,
                flush=True,
            )
    return tally


def scripts(tally: Tally, jobs: int) -> list[tuple[tuple[str, str], int, str]]:
    """For each kind of finding how often there is one, and a script; the most frequent first."""
    kinds = sorted(tally.kinds.items(), key=lambda item: -len(item[1]))
    firsts = [found[0] for _, found in kinds]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        texts = list(pool.map(smallest, *zip(*firsts, strict=True))) if firsts else []
    return [(kind, len(found), text) for (kind, found), text in zip(kinds, texts, strict=True)]


def smallest(finding: Finding, task: Task, seconds: float = 30) -> str:
    """A script of a case that is as small as can be and fails in the same way."""
    case, shown = Case.random(*task), finding

    def fails(smaller: Case) -> bool:
        nonlocal shown
        found = [f for f in run_case(smaller, finding.check)[0] if f.signature == finding.signature]
        shown = found[0] if found else shown
        return bool(found)

    with strict():
        case = shrunk(case, fails, seconds)
    return script(shown, case)
