"""Cases in processes of their own: where one ends its process, that is a violation, and the others go on."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection

from tests.attack.items import cases, heavy_items, items
from tests.attack.names import name_cases
from tests.attack.records import MARK
from tests.attack.replay import Case, violations
from tests.attack.sources import CannotHold, Source, opened
from tests.servers import Absent

_PROCESSOR, _HEAVY_PROCESSOR = 60, 600
"""Seconds of processor time after which a case counts as one that never ends, however busy the machine is."""


@dataclass
class Tally:
    """Neighbours replayed for each source and unit, and what was wrong."""

    replayed: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    wrong: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    texts: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    unheld: int = 0
    """Values that a source has no way to hold."""

    def add(self, source: str, unit: str, item: str, wrong: list[str]) -> None:
        """One pair of neighbours."""
        self.replayed[source, unit] += 1
        if wrong:
            self.wrong[source, unit] += 1
            self.texts.append(f"{source}, {unit}, {item}: " + "; ".join(wrong))
            print(self.texts[-1], flush=True)


def every_case(source: Source, quick: bool) -> Iterator[tuple[Case, object]]:
    """All cases of a source."""
    yield from cases(source, items(), every_unit=not quick and source.name != "spark")
    yield from name_cases(source)
    yield from cases(source, heavy_items())


def campaign(source: str, quick: bool, tally: Tally) -> None:
    """Replay every case of a source."""
    start: int | None = 0
    while start is not None:
        start = _part(source, quick, start, tally)


def _part(source: str, quick: bool, start: int, tally: Tally) -> int | None:
    """Replay cases from one on, until all are done or the process ends: then the next one is returned."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(source, quick, start, theirs))
    process.start()
    theirs.close()
    current: tuple[int, str, str] | None = None
    try:
        while True:
            message = ours.recv()
            if message[0] == "begin":
                current = message[1:]
            elif message[0] == "absent":
                tally.absent[source] = message[1]
                return None
            elif message[0] == "all":
                return None
            elif message[0] == "unheld":
                tally.unheld += 1
            else:
                tally.add(source, *message[1:])
    except EOFError:
        process.join()
        if current is None:
            raise RuntimeError(f"{source}: could not be started") from None
        at, unit, item = current
        tally.add(source, unit, item, [ending(process.exitcode)])
        return at + 1
    finally:
        process.join()


def ending(code: int | None) -> str:
    """How a process ended."""
    return "it never ends" if code == -signal.SIGXCPU else f"the process ended ({code})"


def limit_processor(seconds: int) -> None:
    """End this process if it takes so much more processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def alone(case: Case) -> str:
    """What is wrong about a pair of neighbours, replayed in a process of its own that may end or hang."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(case, theirs))
    process.start()
    theirs.close()
    try:
        return str(ours.recv())
    except EOFError:
        process.join()
        return ending(process.exitcode)


def _send(case: Case, pipe: Connection) -> None:
    limit_processor(10)
    pipe.send("; ".join(violations(case)))


def _run(source: str, quick: bool, start: int, pipe: Connection) -> None:
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)  # what libraries write past Python
        try:
            with opened(source) as opened_source:
                for at, (case, key) in enumerate(islice(every_case(opened_source, quick), start, None), start):
                    pipe.send(("begin", at, case.unit, case.item))
                    limit_processor(_HEAVY_PROCESSOR if case.memory else _PROCESSOR)
                    begin = os.fstat(errors.fileno()).st_size
                    try:
                        wrong = violations(case, key)
                    except CannotHold:
                        pipe.send(("unheld",))
                        continue
                    said = os.pread(errors.fileno(), 1 << 24, begin)
                    if MARK.encode() in said:
                        wrong.append("a value is written to the standard error")
                    pipe.send(("done", case.unit, case.item, wrong))
                pipe.send(("all",))
        except Absent as reason:
            pipe.send(("absent", str(reason)))
