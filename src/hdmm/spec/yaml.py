"""YAML 1.2 as plain data with line numbers: every scalar keeps its text, duplicate keys are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, final

from hdmm.errors import SpecError
from hdmm.files.atomic import OversizedError, read_regular
from hdmm.numbers import shown

_MAX_BYTES = 1 << 23
"""Bytes of a spec."""
_MAX_LINE = 1 << 20
"""Bytes of a line."""
_MAX_MARKS = 1 << 18
"""Commas, brackets and lines, about as many as values: each takes up to twenty microseconds and a kilobyte."""
_MAX_DEPTH = 50
"""Mappings and lists inside each other."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]*[A-Za-z0-9_]")
"""Texts that need no quotes."""


def load_yaml(path: Path) -> tuple[Any, Callable[[tuple[str | int, ...]], int]]:
    """A file's data, and a function from a place in it to its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = read_regular(path, _MAX_BYTES)
        marks = sum(content.count(mark) for mark in (b",", b"[", b"{", b"\n", b"\r"))
        if marks > _MAX_MARKS:
            raise SpecError(
                f"{path}: {marks:,} commas, brackets and lines are more than a spec may have ({_MAX_MARKS:,}); declare "
                "ranges or bins in place of long lists, or make the workload in Python"
            )
        if max(map(len, content.splitlines()), default=0) > _MAX_LINE:
            raise SpecError(f"{path}: a line has more than {_MAX_LINE:,} bytes; break it, or write a shorter one")
        text = content.decode("utf-8")
    except OversizedError:
        raise SpecError(f"{path}: a spec of more than {_MAX_BYTES >> 20} MiB is refused; write a shorter one") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: is not UTF-8 text") from None
    try:
        data, lines = _Reader(path, YAML(typ="safe", pure=True).parse(text)).read()
    except RecursionError:
        raise SpecError(f"{path}: nested too deeply") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise SpecError(f"{path}{where}: {problem}") from None

    def line(place: tuple[str | int, ...]) -> int:
        node = lines
        for step in place:
            child = node.children.get(step)
            if child is None:
                break
            node = child
        return node.line

    return data, line


def save_yaml(path: Path, data: Any) -> None:
    """Write plain data as YAML, short mappings and lists on one line."""
    with path.open("w", encoding="utf-8") as file:
        dump_yaml(data, file)


def dump_yaml(data: Any, stream: TextIO, *, flow: bool = False) -> None:
    """Write plain data as YAML to a stream; with ``flow`` on one line."""
    from ruamel.yaml import YAML

    def text(representer: Any, value: str) -> Any:
        # In double quotes nothing can be mistaken for another type, and every odd character is escaped.
        return representer.represent_scalar(
            "tag:yaml.org,2002:str", value, style=None if _PLAIN.fullmatch(value) else '"'
        )

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = True if flow else None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = _MAX_LINE if flow else 120
    yaml.allow_unicode = True
    yaml.representer.add_representer(str, text)
    yaml.dump(data, stream)


@final
@dataclass(frozen=True)
class _Lines:
    """The line of a value, or of its key, and those of what it holds."""

    line: int
    children: dict[str | int, _Lines]


@final
class _Reader:
    """Builds data from the parser's events, one by one; anything that is not allowed is refused where it begins."""

    def __init__(self, path: Path, events: Iterator[Any]) -> None:
        self._path = path
        self._events = events

    def read(self) -> tuple[Any, _Lines]:
        """The one document that a spec is."""
        from ruamel.yaml.events import DocumentStartEvent, StreamEndEvent

        next(self._events)
        if isinstance(next(self._events), StreamEndEvent):
            raise self._refuse(None, "the spec is empty; it needs the sections schema and workload")
        first = next(self._events)
        document = self._value(first, _line(first), 0)
        next(self._events)
        event = next(self._events)
        if isinstance(event, DocumentStartEvent):
            raise self._refuse(_line(event), "another document begins; write one spec in one file")
        return document

    def _value(self, event: Any, line: int, depth: int) -> tuple[Any, _Lines]:
        from ruamel.yaml.events import ScalarEvent, SequenceStartEvent

        here = _line(event)
        if depth > _MAX_DEPTH:
            raise self._refuse(here, "nested too deeply")
        if event.anchor:
            raise self._refuse(here, "anchors and aliases are not used in specs; write the value out")
        if isinstance(event, ScalarEvent):
            if _blank(event):
                remedy = f'; if the text {event.value} is meant, write "{event.value}"' if event.value else ""
                raise self._refuse(here, f"a value is missing{remedy}")
            return event.value, _Lines(line, {})
        return (self._items if isinstance(event, SequenceStartEvent) else self._mapping)(line, depth)

    def _items(self, line: int, depth: int) -> tuple[list[Any], _Lines]:
        from ruamel.yaml.events import SequenceEndEvent

        items: list[Any] = []
        lines: dict[str | int, _Lines] = {}
        while not isinstance(event := next(self._events), SequenceEndEvent):
            item, lines[len(items)] = self._value(event, _line(event), depth + 1)
            items.append(item)
        return items, _Lines(line, lines)

    def _mapping(self, line: int, depth: int) -> tuple[dict[str, Any], _Lines]:
        from ruamel.yaml.events import MappingEndEvent, ScalarEvent

        mapping: dict[str, Any] = {}
        lines: dict[str | int, _Lines] = {}
        while not isinstance(key := next(self._events), MappingEndEvent):
            here = _line(key)
            if not isinstance(key, ScalarEvent):
                raise self._refuse(here, "a key must be text")
            if key.anchor:
                raise self._refuse(here, "anchors and aliases are not used in specs; write the value out")
            if key.value in mapping:
                raise self._refuse(here, f"the key {shown(key.value)} stands twice in one mapping")
            event = next(self._events)
            if isinstance(event, ScalarEvent) and _blank(event) and not event.anchor:
                raise self._refuse(here, f"the key {shown(key.value)} has no value")
            mapping[key.value], lines[key.value] = self._value(event, here, depth + 1)
        return mapping, _Lines(line, lines)

    def _refuse(self, line: int | None, reason: str) -> SpecError:
        return SpecError(f"{self._path}{'' if line is None else f', line {line}'}: {reason}")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _blank(event: Any) -> bool:
    return event.style is None and event.value in ("", "~", "null", "Null", "NULL")
