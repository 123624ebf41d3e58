"""All audits: each claim about a release with its test, its sizes, and the faults that the test must catch."""

from time import perf_counter

from tests.audit import (
    accuracy,
    biased,
    correlation,
    coverage,
    forks,
    hockey_stick,
    lattice,
    laws,
    observed,
    pure,
    questions,
    sensitivity,
    simultaneous,
)
from tests.audit.verdict import Audit, Verdict

_OF_NOISE = (laws, forks, correlation, lattice, sensitivity, pure, hockey_stick)
_OF_ANSWERS = (accuracy, coverage, simultaneous, biased, questions, observed)

AUDITS: list[Audit] = [audit for module in (*_OF_NOISE, *_OF_ANSWERS) for audit in module.AUDITS]


def verdicts(number: int) -> tuple[Verdict, list[Verdict], float]:
    """What an audit finds at full size in the honest thing, and in each of the faulty ones; and the seconds it took.

    Faults are tried at the fast size: an audit that catches one there catches it all the more at full size.
    """
    audit, start = AUDITS[number], perf_counter()
    honest = audit.run(audit.honest, audit.full)
    faulty = [audit.run(fault, audit.fast) for fault in audit.faults.values()]
    return honest, faulty, perf_counter() - start
