"""Check a spec, and look at the records that it is meant for, before anything is planned or charged.

The report on records is for their custodian alone. Nothing that is published can come from here: measuring and
publishing cannot import this package, and this package cannot import them (the import contracts in pyproject.toml).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hdmm.data.csv import CsvFile, CsvFiles
from hdmm.data.findings import ColumnFindings, Findings
from hdmm.data.lines import is_utf8
from hdmm.data.open import open_source
from hdmm.data.source import Advance, Source, needed_columns, unheard
from hdmm.errors import DataError, SpecError
from hdmm.inspection.advice import advise
from hdmm.inspection.layout import column_problems, has_row_names, header_problems, line_problems
from hdmm.inspection.report import CheckReport
from hdmm.privacy.unit import Unit
from hdmm.schema import Schema
from hdmm.spec.mistakes import load_or_mistakes
from hdmm.spec.spec import Spec
from hdmm.syntax import example

__all__ = ["CheckReport", "check"]

_ENCODINGS = ("cp1252", "latin-1")
"""Encodings that are tried on texts which are not UTF-8."""


def check(
    spec: Spec | str | Path,
    data: Any = None,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    on_progress: Advance = unheard,
) -> CheckReport:
    """Check a spec; with data, report privately which of its records would be used, and why others would not.

    The report holds exact counts and values. It is not differentially private: do not publish it.

    Arguments:
        spec: A spec, or the path of a YAML file.
        data: The records, in any form that :func:`release` takes (default: only the spec is checked).
        delimiter: What separates the fields of text files.
        encoding: The encoding of text files.
        on_progress: Called with the share of the records that were looked at.
    """
    if not isinstance(spec, Spec):
        loaded = load_or_mistakes(Path(spec))
        if not isinstance(loaded, Spec):
            raise SpecError("\n".join(loaded))
        spec = loaded
    if data is None:
        return CheckReport(spec)
    name = str(data) if isinstance(data, (str, Path)) else type(data).__name__
    return _checked(spec, name, open_source(data, delimiter, encoding), on_progress)


def _checked(spec: Spec, name: str, source: Source, on_progress: Advance) -> CheckReport:
    """The report on a source: on its columns first, and then on the records, as far as the columns are there."""
    asked, unit = spec.schema.only(spec.workload.asked), spec.unit
    columns = source.column_names()
    problems = list(_column_problems(source, columns, list(needed_columns(asked, unit.id))))
    if unit.id is not None and columns.count(unit.id) != 1:
        unit = Unit(unit.rows, unit.neighbours)
    readable = []
    for attribute in asked:
        if any(columns.count(column) != 1 for column in asked[attribute].columns(attribute)):
            continue
        try:
            source.columns_check(asked.only([attribute]))
            readable.append(attribute)
        except DataError as error:  # a type from which the domain cannot be read
            problems.append(str(error))
    if len(readable) < len(asked.names) and not readable:
        return CheckReport(spec, name, problems=tuple(problems))
    present = asked.only(readable)
    findings = source.inspect(present, unit, on_progress)
    if findings.lines is not None:
        problems += line_problems(findings.lines, findings.records)
        if has_row_names(findings.lines, findings.records):  # go on as if the header had a name for them
            findings = _with_row_names(source).inspect(present, unit, on_progress)
    encoding = _encoding(present, findings)
    if encoding is not None:
        problems.append(
            f"values are not UTF-8 text, but declared values in another encoding; write {example('encoding', encoding)}"
        )
    advice = {
        column: advise(domain, _decoded(findings.columns[column], encoding))
        for column, domain in present.columns.items()
        if findings.columns[column].outside
    }
    if len(readable) < len(asked.names):
        problems.append("the numbers below are of the columns that could be read; mend the others, and check again")
    return CheckReport(spec, name, findings, advice, tuple(problems))


def _column_problems(source: Source, columns: Sequence[str], needed: Sequence[str]) -> Iterator[str]:
    """Why needed columns are not there, or twice."""
    if all(columns.count(column) == 1 for column in needed):
        return
    files = source.files if isinstance(source, CsvFiles) else (source,)
    if isinstance(files[0], CsvFile):
        yield from header_problems(files[0].path, files[0].first_line(), files[0].delimiter, needed)
    else:
        yield from column_problems(columns, needed)


def _with_row_names(source: Source) -> Source:
    """The same files, read as if their headers had one more name before the others."""
    match source:
        case CsvFile():
            return CsvFile(source.path, source.delimiter, source.encoding, row_names=True)
        case CsvFiles():
            return CsvFiles(
                tuple(CsvFile(file.path, file.delimiter, file.encoding, row_names=True) for file in source.files)
            )
    return source


def _encoding(schema: Schema, findings: Findings) -> str | None:
    """The encoding in which values that are not UTF-8 are declared ones."""
    for encoding in _ENCODINGS:
        for column, domain in schema.columns.items():
            texts = [text for text, _ in findings.columns[column].texts if not is_utf8(text)]
            if (domain.encode([text.decode(encoding, "replace").encode() for text in texts]) >= 0).any():
                return encoding
    return None


def _decoded(column: ColumnFindings, encoding: str | None) -> ColumnFindings:
    """The findings without the values that only another encoding of the file can mend."""
    if encoding is None:
        return column
    return replace(column, texts=tuple((text, count) for text, count in column.texts if is_utf8(text)))
