"""From a plan and data to a release: check everything, reserve, measure once, write, mark published.

Everything that can be refused is refused before anything is charged. Once the ledger has reserved the budget, noise may
be drawn, and the budget is spent whatever happens. If the machine fails after a release was written and before it was
marked published, the same command marks it; nothing is measured twice under one id (docs/privacy.md).
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from hdmm.data import DatabaseTable, open_source
from hdmm.errors import ArtefactError, BudgetError, InputError
from hdmm.files import scratch
from hdmm.files.atomic import check_new
from hdmm.measure import check_measurable, measure
from hdmm.memory import memory_allowed
from hdmm.plans import Plan
from hdmm.plans.footprint import check_disk, check_memory, listed
from hdmm.privacy.budget import Budget, check_budget
from hdmm.privacy.ledger import Entry, Ledger
from hdmm.progress import OnProgress
from hdmm.releases.present import Digits, check_digits
from hdmm.releases.release import Release
from hdmm.releases.write import Format, check_format
from hdmm.syntax import either, given

__all__ = ["DatabaseTable", "release"]


def release(
    plan: Plan,
    data: Any,
    budget: Budget,
    *,
    ledger: str | Path | Ledger | None,
    id: str | None = None,
    out: str | Path | None = None,
    format: Format = "parquet",
    digits: Digits = "meaningful",
    delimiter: str | None = None,
    encoding: str | None = None,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
) -> Release:
    """Measure the data once, with noise that gives the budget's privacy, and return consistent answers.

    Everything that can be refused is refused before the data is counted and anything is charged.

    Arguments:
        plan: What to measure, from :func:`hdmm.select`.
        data: Where the records are: the path of CSV or Parquet files, or a list or a pattern of such paths; a
            DataFrame of pandas, polars or Spark, a LazyFrame, or a pyarrow.Table; a stream or a dataset of Arrow; a
            relation of DuckDB; a table of ibis; ``hdmm.DatabaseTable(database, name)`` for a table in a database.
        budget: What is spent.
        ledger: The ledger that is charged first, or its path. None says that nobody keeps account of what was spent on
            these data.
        id: The release's name in the ledger. The same one, given again, returns the release that was written to
            ``out`` and spends nothing.
        out: A new directory that the release is written to.
        format: The format of the tables, "parquet" or "csv".
        digits: "full" writes all digits to CSV files; by default only those that the standard error leaves a meaning.
        delimiter: What separates the fields of a text file: a character, or one of the words tab, comma, semicolon,
            pipe and space (default: a comma; a tab in .tsv and .tab files).
        encoding: The encoding of a text file, such as "latin-1" (default: UTF-8).
        memory: Memory limit, such as "8GB" (default: half of RAM). Work arrays too large for it are in temporary
            files. DuckDB, if it counts, takes up to a quarter of it more, at most 2 GiB.
        on_progress: Called with a :class:`Progress` for "counting records", "adding noise" and "writing tables".
    """
    _check_arguments(plan, budget, ledger, id, format)
    check_digits(digits)
    noise = plan.mechanism.calibrate(budget)
    check_measurable(plan)
    with memory_allowed(memory):
        check_memory(plan.mechanism.estimator, plan.workload.encoded)
        check_disk(plan.mechanism.estimator, plan.workload.encoded)
    book = Ledger.open(ledger) if isinstance(ledger, (str, Path)) else ledger
    for parent in (Path(tempfile.gettempdir()), *([] if out is None else [Path(out).absolute().parent])):
        scratch.sweep(parent)  # remove what killed processes have left, whatever becomes of this release
    name = id or uuid4().hex
    digest = _plan_digest(plan)
    if book is not None and id is not None and out is not None:
        stored = _stored(book, id, digest, budget, Path(out))
        if stored is not None:
            return stored
    if out is not None:
        check_new(Path(out))
    source = open_source(data, delimiter, encoding)
    source.columns_check(plan.counted, plan.unit.id)  # quick: it reads a header; margins may take long
    for product in listed(plan.workload.encoded):  # computed now, so that after the charge only writing can fail
        plan.accuracy(product.name, budget)
    if book is not None:
        book.reserve(name, budget, plan.unit, digest)
    with memory_allowed(memory):
        answers = measure(plan, source, noise, on_progress=on_progress)
        published = Release(plan, budget, tuple(answers))
        if out is not None:
            published.save(out, format=format, digits=digits, on_progress=on_progress)
    if book is not None:
        book.publish(name, _unwritten_digest(digest, published) if out is None else _written_digest(Path(out)))
    return published


def _check_arguments(
    plan: Plan, budget: Budget, ledger: str | Path | Ledger | None, id: str | None, format: Format
) -> None:
    if not isinstance(plan, Plan):
        raise InputError(f"plan: {type(plan).__name__} is not a plan; make one with hdmm.select(workload)")
    check_budget(budget)
    if ledger is not None and not isinstance(ledger, (str, Path, Ledger)):
        raise InputError(
            f"{given('ledger', repr(ledger))}: expected the path of a ledger, or None to spend without one"
        )
    if ledger is None and id is not None:
        raise InputError(
            f"{given('id', repr(id))}: names a release in a ledger; give the ledger too, or leave the id out"
        )
    check_format(format)


def _stored(book: Ledger, id: str, digest: str, budget: Budget, out: Path) -> Release | None:
    """The release of this id, if it was written before; None if it is new. Nothing is spent."""
    entry = latest_entry(book, id)
    if entry is None or entry.state == "abandoned" or (entry.state == "reserved" and not out.exists()):
        return None
    if (entry.plan, entry.budget) != (digest, budget):
        raise BudgetError(
            f"{given('id', repr(id))}: was charged on {entry.time} for another plan or budget; choose another output "
            f"({either(python='out=…, and another id', command='-o; without --id, that is its id')})"
        )
    if not out.exists():
        raise ArtefactError(f"{out}: the release {id!r} was published on {entry.time}, but is not there; restore it")
    return _checked(book, entry, out)


def latest_entry(book: Ledger, id: str) -> Entry | None:
    """The ledger's last entry of this id."""
    return next((entry for entry in reversed(book.entries()) if entry.id == id), None)


def _checked(book: Ledger, entry: Entry, out: Path) -> Release:
    stored = Release.load(out)
    if _plan_digest(stored.plan) != entry.plan or stored.budget != entry.budget:
        raise ArtefactError(f"{out}: holds another release than {entry.id!r}; choose another output")
    digest = _written_digest(out)
    if entry.state == "published" and entry.release != digest:
        raise ArtefactError(f"{out}: is not the release that was published as {entry.id!r}; restore that one")
    book.publish(entry.id, digest)
    return stored


def _plan_digest(plan: Plan) -> str:
    from hdmm.plans.file import plan_bytes  # imports pydantic, which `import hdmm` does not need

    return hashlib.sha256(plan_bytes(plan)).hexdigest()


def _written_digest(out: Path) -> str:
    from hdmm.releases.file import manifest_digest

    return manifest_digest(out)


def _unwritten_digest(plan: str, published: Release) -> str:
    """Identifies a release that is not written to files."""
    hashed = hashlib.sha256(plan.encode())
    for answers in published.measurements:
        hashed.update(answers.tobytes())
    return hashed.hexdigest()
