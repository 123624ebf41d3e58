"""All checks of a case: each runs the library line by line and compares it with the oracle."""

import shutil
from collections import Counter
from collections.abc import Callable

import hdmm
from tests.fuzz.cases import Case
from tests.fuzz.oracle import Run
from tests.fuzz.predicted import bounds, errors, sensitivity, told
from tests.fuzz.published import answers, estimators, files, release
from tests.fuzz.session import Finding, Limit, Session, limit

_SECONDS = 120
"""The longest that a check of a small case may take."""

CHECKS: dict[str, Callable[[Run], None]] = {
    "told": told,
    "errors": errors,
    "release": release,
    "estimators": estimators,
    "bounds": bounds,
    "sensitivity": sensitivity,
    "files": files,
    "answers": answers,
}


def run_case(case: Case, only: str | None = None) -> tuple[list[Finding], Counter[str]]:
    """The findings of a case, and which checks were made."""
    done: Counter[str] = Counter()
    session = Session("select")
    try:
        try:
            with limit(_SECONDS):
                session.run(*case.workload_lines())
                session.run(f"plan = {case.select_line()}", refusals=(hdmm.errors.InputError,))
        except hdmm.errors.InputError as error:
            fitting = isinstance(error, hdmm.errors.TooLargeError) or str(error).startswith(
                "none of the given operators"
            )
            if case.operator != "default" and fitting:
                return [], Counter({"does not apply": 1})
            return [session.finding(f"refused: {type(error).__name__}", str(error))], Counter({"select": 1})
        except Finding as finding:
            return [finding], Counter({"select": 1})
        done["select"] += 1
        run = Run(case, session)
        found = []
        for name, check in CHECKS.items():
            if only is not None and only != name:
                continue
            done[name] += 1
            try:
                with limit(_SECONDS):
                    check(run)
            except Limit:
                done[name] -= 1
            except Finding as finding:
                found.append(finding)
        return found, done
    finally:
        shutil.rmtree(session["folder"], ignore_errors=True)
