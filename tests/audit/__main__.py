"""Run every audit at full size, print the table, and fail where an audit fails or lets a planted fault through."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

from hdmm.text import text_table
from tests.audit.audits import AUDITS, verdicts

COLUMNS = ("audit", "size", "result", "must be", "passes", "planted fault", "with it", "caught", "seconds")


def main() -> int:
    """The exit code: 0 where all is well."""
    start = perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = list(pool.map(verdicts, range(len(AUDITS))))
    rows: list[tuple[object, ...]] = []
    for audit, (honest, faulty, duration) in zip(AUDITS, found, strict=True):
        seconds: float | None = duration
        size = f"{audit.full:,} {audit.unit}"
        first: tuple[object, ...] = (audit.name, size, honest, honest.limit, _yes(honest.passes))
        for fault, verdict in zip(audit.faults, faulty, strict=True):
            rows.append((*first, fault, verdict, _yes(not verdict.passes), seconds))
            first, seconds = ("",) * len(first), None
    print(text_table(COLUMNS, rows))
    for audit, (honest, _, _) in zip(AUDITS, found, strict=True):
        if honest.detail:
            print(f"{audit.name}: {honest.detail}")
    failed = sum(not honest.passes for honest, _, _ in found)
    missed = sum(verdict.passes for _, faulty, _ in found for verdict in faulty)
    print(f"{failed} of {len(found)} audits failed; {missed} of {len(rows)} planted faults were not caught")
    print(f"faults are planted at the smaller sizes of `make test`; {perf_counter() - start:.0f} seconds in all")
    return 1 if failed or missed else 0


def _yes(fine: bool) -> str:
    return "yes" if fine else "NO"


if __name__ == "__main__":
    sys.exit(main())
