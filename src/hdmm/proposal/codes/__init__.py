"""Code lists: the values of columns, with labels, groups and limits, from files that agencies publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hdmm.errors import InputError, nearest
from hdmm.proposal.attribute import Proposal
from hdmm.proposal.codes.code_list import read_code_list
from hdmm.proposal.codes.csvw import csvw_columns, is_csvw
from hdmm.proposal.codes.files import read_json
from hdmm.proposal.codes.table_schema import is_table_schema, schema_columns

__all__ = ["read_codes"]


def read_codes(arguments: Sequence[str], columns: Sequence[str]) -> dict[str, Proposal]:
    """The proposals of all code lists, by column.

    An argument is a file, or ``column=file``. A list of codes without a column belongs to that of its file's name. If
    no columns are known, those that the files name are taken.
    """
    proposals: dict[str, Proposal] = {}
    for argument in arguments:
        for name, proposal in _read(argument, columns).items():
            if name in proposals:
                raise InputError(f"--codes {argument}: there is another code list for column {name!r}; give one")
            proposals[name] = proposal
    return proposals


def _read(argument: str, columns: Sequence[str]) -> dict[str, Proposal]:
    column, equals, rest = argument.partition("=")
    named = bool(equals) and not Path(argument).exists()
    path = Path(rest if named else argument)
    if path.suffix.lower() == ".json" and not named:
        data = read_json(path)
        if is_csvw(data):
            found = csvw_columns(data, str(path), columns)
        elif is_table_schema(data):
            found = schema_columns(data, str(path))
        else:
            raise InputError(
                f'--codes {path}: is neither a Table Schema (with "fields"), a data package (with "resources") nor '
                'metadata of CSVW (with "tableSchema")'
            )
        fitting = {name: proposal for name, proposal in found.items() if not columns or name in columns}
        if not fitting:
            raise InputError(f"--codes {path}: describes no column of the data; its columns are {_some(found)}")
        return fitting
    name = column if named else _by_stem(path, columns)
    if columns and name not in columns:
        raise InputError(f"--codes {argument}: there is no column {name!r}{nearest(name, columns)}")
    return {name: read_code_list(path, name)}


def _by_stem(path: Path, columns: Sequence[str]) -> str:
    """The column that has the name of a file, in any case."""
    if not columns or path.stem in columns:
        return path.stem
    close = [column for column in columns if column.lower() == path.stem.lower()]
    if len(close) != 1:
        raise InputError(
            f"--codes {path}: no column is called {path.stem!r}; write --codes COLUMN={path}"
            f"{nearest(path.stem, columns)}"
        )
    return close[0]


def _some(names: dict[str, Proposal]) -> str:
    return ", ".join(repr(name) for name in list(names)[:12]) + (", …" if len(names) > 12 else "")
