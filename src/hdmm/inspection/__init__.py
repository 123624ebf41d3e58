"""Check a spec, and look at the records that it is meant for, before anything is planned or charged.

The report on records is for their custodian alone. Nothing that is published can come from here: measuring and
publishing cannot import this package, and this package cannot import them (the import contracts in pyproject.toml).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from hdmm.data.csv import CsvFile, CsvFiles
from hdmm.data.findings import ColumnFindings, Findings
from hdmm.data.header import first_line_remedy, other_layout
from hdmm.data.lines import is_utf8
from hdmm.data.open import open_source
from hdmm.data.source import Advance, Source, needed_columns, unheard
from hdmm.data.table import DatabaseTable
from hdmm.errors import DataError, SpecError
from hdmm.inspection.advice import Texts, advise
from hdmm.inspection.layout import column_problems, has_row_names, header_problems, line_problems
from hdmm.inspection.report import CheckReport
from hdmm.privacy.unit import Unit
from hdmm.schema import Listed, Schema
from hdmm.spec.mistakes import load_or_mistakes
from hdmm.spec.spec import Spec
from hdmm.syntax import example

__all__ = ["CheckReport", "check"]

_ENCODINGS = (
    *("cp1252", "latin-1", "iso8859-15", "cp850", "cp437", "mac-roman", "cp1250", "iso8859-2", "cp852"),
    *("cp1251", "koi8-r", "iso8859-5", "cp866", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("cp932", "euc_jp", "gb18030", "cp950", "cp949"),
)
"""Encodings that are tried on texts which are not UTF-8; of equally good ones, the first is proposed."""
_NAMED_FILES = 3
"""Files that the report names."""


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
    return _checked(spec, _name(data), open_source(data, delimiter, encoding), on_progress)


def _name(data: Any) -> str:
    """What the report calls the data."""
    paths = data if isinstance(data, (list, tuple)) else [data]
    if not all(isinstance(path, (str, Path)) for path in paths):
        return data.name if isinstance(data, DatabaseTable) else type(data).__name__
    more = f" and {len(paths) - _NAMED_FILES} more" if len(paths) > _NAMED_FILES else ""
    return ", ".join(map(str, paths[:_NAMED_FILES])) + more


def _checked(spec: Spec, name: str, source: Source, on_progress: Advance) -> CheckReport:
    """The report on a source: on its columns first, and then on the records, as far as the columns are there."""
    asked, unit = spec.schema.only(spec.workload.asked), spec.unit
    needed = list(needed_columns(asked, unit.id))
    source, problems = _in_other_layout(source, needed)
    columns = source.column_names()
    problems += _column_problems(source, columns, needed)
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
            findings = _reread(source, row_names=True).inspect(present, unit, on_progress)
    encoding = _encoding(present, findings)
    if encoding is not None:
        problems.append(
            f"values are not UTF-8 text, but declared values in another encoding; write {example('encoding', encoding)}"
        )
    advice = {
        column: advise(domain, _decoded(findings.columns[column], encoding))
        for column, domain in present.columns.items()
        if findings.columns[column].outside or findings.columns[column].other
    }
    advice = {column: one for column, one in advice.items() if findings.columns[column].outside or one.regained}
    if len(readable) < len(asked.names):
        problems.append("the numbers below are of the columns that could be read; mend the others, and check again")
    return CheckReport(spec, name, findings, advice, tuple(problems))


def _in_other_layout(source: Source, needed: Sequence[str]) -> tuple[Source, list[str]]:
    """Text files read with the encoding and the delimiter that they seem to have, and what to state to do so."""
    problems: list[str] = []
    stated = _header_encoding(source, needed)
    if stated is not None:
        source = _reread(source, encoding=stated)
        problems.append(
            f"the header is not UTF-8 text: state {example('encoding', stated)} "
            "(the numbers below are those after that)"
        )
    for _ in ("encoding", "delimiter"):
        files = _text_files(source)
        if not files or any(name in source.column_names() for name in needed):
            break
        first, line = files[0], files[0].first_line()
        match other_layout(line, first.delimiter, needed):
            case "encoding", encoding if first.encoding is None:
                source = _reread(source, encoding=encoding)
            case "delimiter", delimiter:
                source = _reread(source, delimiter=delimiter)
            case _:
                break
        remedy = first_line_remedy(first.path, line, first.delimiter, needed, checked=True)
        problems.append(f"{remedy} (the numbers below are those after that)")
    return source, problems


def _header_encoding(source: Source, needed: Sequence[str]) -> str | None:
    """The encoding in which a first line that is not UTF-8 holds most of the needed names that are not ASCII."""
    files = _text_files(source)
    line = files[0].first_line() if files and files[0].encoding is None else b""
    foreign = [name for name in needed if not name.isascii()]
    if is_utf8(line) or not foreign:
        return None

    def held(encoding: str) -> int:
        text = line.decode(encoding, "replace")
        return sum(name in text for name in foreign)

    best = max(_ENCODINGS, key=held)
    return best if held(best) else None


def _text_files(source: Source) -> tuple[CsvFile, ...]:
    match source:
        case CsvFile():
            return (source,)
        case CsvFiles():
            return source.files
    return ()


def _reread(source: Source, **options: Any) -> Source:
    """The same text files, read with other options."""
    files = [
        CsvFile(
            file.path,
            options.get("delimiter", file.delimiter),
            options.get("encoding", file.encoding),
            row_names=options.get("row_names", file.row_names),
        )
        for file in _text_files(source)
    ]
    return CsvFiles(tuple(files)) if isinstance(source, CsvFiles) else files[0]


def _column_problems(source: Source, columns: Sequence[str], needed: Sequence[str]) -> Iterator[str]:
    """Why needed columns are not there, or twice."""
    if all(columns.count(column) == 1 for column in needed):
        return
    files = _text_files(source)
    if files:
        yield from header_problems(files[0].path, files[0].first_line(), files[0].delimiter, needed)
    else:
        yield from column_problems(columns, needed)


def _encoding(schema: Schema, findings: Findings) -> str | None:
    """The encoding in which most values that are not UTF-8 are declared ones, case aside."""
    best, most = None, 0
    for encoding in _ENCODINGS:
        records = 0
        for column, domain in schema.columns.items():
            if isinstance(domain, Listed):
                declared = {text.casefold() for text in (*domain.values, *chain.from_iterable(domain.aliases.values()))}
                found = findings.columns[column]
                texts = [(text, times) for text, times in (*found.texts, *found.other_texts) if not is_utf8(text)]
                records += sum(
                    times for text, times in texts if text.decode(encoding, "replace").casefold() in declared
                )
        if records > most:
            best, most = encoding, records
    return best


def _decoded(column: ColumnFindings, encoding: str | None) -> ColumnFindings:
    """The findings with the values that are not UTF-8 read in another encoding, so that what remains is seen."""
    if encoding is None:
        return column

    def read(texts: Texts) -> tuple[tuple[bytes, int], ...]:
        return tuple((text if is_utf8(text) else text.decode(encoding, "replace").encode(), n) for text, n in texts)

    return replace(column, texts=read(column.texts), other_texts=read(column.other_texts))
