"""A list of codes as CSV: code, label and parent, the last two optional."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hdmm.errors import InputError
from hdmm.proposal.attribute import Attribute, extra_cells
from hdmm.proposal.codes.files import read_text

_MAX_CODES = 50_000
"""Codes of a list: a spec with more would be refused."""
_MAX_DEPTH = 12
"""Levels above a code."""
_CODE = ("code", "value", "id", "key", "notation")
_LABEL = ("label", "name", "title", "description", "meaning", "text")
_PARENT = ("parent", "parent_code", "parentcode", "broader", "group", "parent_id")


def read_code_list(path: Path, column: str) -> Attribute:
    """The attribute whose values a list holds: its leaves if the codes have parents, which become levels."""
    header, rows = _rows(path)
    code_at, label_at, parent_at = _places(header)
    labels: dict[str, str] = {}
    parents: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        code = cells[code_at] if code_at < len(cells) else ""
        if not code or not code.isprintable():
            raise InputError(f"--codes {path}, line {line}: the code is empty or does not stay on one line")
        if code in labels:
            raise InputError(f"--codes {path}, line {line}: the code {code[:50]!r} stands twice; list each once")
        labels[code] = _at(cells, label_at)
        if (parent := _at(cells, parent_at)) and parent != code:
            parents[code] = parent
    if not labels:
        raise InputError(f"--codes {path}: holds no codes; give a line for each, under the header code,label")
    return coded(
        column, labels, parents, _level_name(header, parent_at), f"--codes {path}", f"From the code list {path.name}."
    )


def coded(
    column: str, labels: Mapping[str, str], parents: Mapping[str, str], level: str | None, place: str, note: str
) -> Attribute:
    """An attribute of codes: those that are nobody's parent are its values, their ancestors the groups of levels."""
    ancestors = {code: _ancestors(code, parents, place) for code in labels}
    inner = set(parents.values())
    values = [code for code in labels if code not in inner]
    paths = {value: ancestors[value] for value in values}
    depth = max(map(len, paths.values()))
    names = _level_names(column, level, depth)
    domain: dict[str, Any] = {"values": values, "missing": True}
    notes = [note]
    if len(values) < len(labels):
        domain["other"] = True
        notes.append("Records that hold the code of a group count as other.")
    shown = {value: labels[value] for value in values if labels[value] and labels[value] != value}
    if shown:
        domain["labels"] = shown
    levels: dict[str, dict[str, list[Any]]] = {}
    earlier: set[str] = set()
    for finer, name in enumerate(names):
        groups = _groups(paths, depth - finer, labels, values)
        # A value that an earlier group is called is written as a range, so that it is not taken for the group.
        levels[name] = {g: [[v, v] if v in earlier else v for v in held] for g, held in groups.items()}
        earlier.update(groups)
    if levels:
        domain["levels"] = levels
    return Attribute(column, domain, len(values) + extra_cells(domain), False, tuple(notes))


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    text = read_text(path)
    if text.count("\n") > 4 * _MAX_CODES:
        raise InputError(f"--codes {path}: has more than {4 * _MAX_CODES:,} lines; a code list is shorter")
    first = text.partition("\n")[0]
    delimiter = max(",;\t|", key=first.count)
    try:
        rows = list(islice(csv.reader(text.splitlines(keepends=True), delimiter=delimiter), _MAX_CODES + 2))
    except csv.Error:
        raise InputError(f"--codes {path}: is not CSV; write lines such as code,label,parent") from None
    if len(rows) > _MAX_CODES + 1:
        raise InputError(f"--codes {path}: more than {_MAX_CODES:,} codes; list fewer, or declare a range of integers")
    if not rows:
        raise InputError(f"--codes {path}: is empty; write lines such as code,label,parent")
    return [cell.strip() for cell in rows[0]], rows[1:]


def _places(header: Sequence[str]) -> tuple[int, int | None, int | None]:
    """The places of code, label and parent: by name, and otherwise in this order."""
    lowered = [name.lower() for name in header]

    def place(names: Sequence[str], default: int) -> int | None:
        found = next((lowered.index(name) for name in names if name in lowered), None)
        return found if found is not None else default if default < len(header) else None

    code = place(_CODE, 0)
    label = place(_LABEL, 1)
    parent = place(_PARENT, 2)
    assert code is not None
    if label in (code, parent):
        label = None
    if parent in (code, label):
        parent = None
    return code, label, parent


def _at(cells: Sequence[str], place: int | None) -> str:
    return " ".join(cells[place].split()) if place is not None and place < len(cells) else ""


def _level_name(header: Sequence[str], parent: int | None) -> str | None:
    """The name of the column of parents, if it says more than that they are parents."""
    name = "" if parent is None else header[parent]
    return name if name and name.lower() not in _PARENT else None


def _level_names(column: str, level: str | None, depth: int) -> list[str]:
    """Names of levels, from the finest to the coarsest."""
    if depth <= 1:
        return [level if level is not None and level != column else f"{column} group"] * depth
    return [f"{column} level {depth - at}" for at in range(depth)]


def _ancestors(code: str, parents: Mapping[str, str], place: str) -> list[str]:
    """The groups above a code, the coarsest first."""
    path: list[str] = []
    seen = {code}
    while code in parents:
        code = parents[code]
        if code in seen:
            raise InputError(
                f"{place}: the parents of {code[:50]!r} go round in a circle; each code needs an end above it"
            )
        seen.add(code)
        path.append(code)
        if len(path) > _MAX_DEPTH:
            raise InputError(f"{place}: more than {_MAX_DEPTH} groups lie above a code; give a flatter list")
    return path[::-1]


def _groups(
    paths: Mapping[str, Sequence[str]], depth: int, labels: Mapping[str, str], values: Sequence[str]
) -> dict[str, list[str]]:
    """The groups at a depth, with their values; a value without an ancestor there goes to its last one, or alone."""
    members: dict[str, list[str]] = {}
    for value in values:
        path = paths[value]
        members.setdefault(path[min(depth, len(path)) - 1] if path else value, []).append(value)
    shown = [labels.get(group) or group for group in members]
    unique = len(set(shown)) == len(shown) and set(shown).isdisjoint(values)
    return dict(zip(shown if unique else members, members.values(), strict=True))
