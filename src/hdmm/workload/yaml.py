"""YAML 1.2 as plain data with line numbers: every scalar keeps its text, duplicate keys are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hdmm.errors import SpecError

_LARGEST = 1 << 28
_DEEPEST = 50
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]*[A-Za-z0-9_]")


def load_yaml(path: Path) -> tuple[Any, Callable[[tuple[str | int, ...]], int]]:
    """A file's data, and a function from a place in it to its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        if path.stat().st_size > _LARGEST:
            raise SpecError(f"{path}: a spec of more than {_LARGEST >> 20} MiB is refused")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: is not UTF-8 text") from None
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except RecursionError:
        raise SpecError(f"{path}: nested too deeply") from None
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise SpecError(f"{path}{where}: {problem}") from None
    if root is None:
        raise SpecError(f"{path}: the spec is empty; it needs the sections schema and workload")

    def line(place: tuple[str | int, ...]) -> int:
        node = mark = root
        for step in place:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
        return int(mark.start_mark.line) + 1

    return _data(root, path, 0), line


def save_yaml(path: Path, data: Any) -> None:
    """Write plain data as YAML, short mappings and lists on one line."""
    from ruamel.yaml import YAML

    def text(representer: Any, value: str) -> Any:
        # Between double quotes nothing can be taken for something else, and every odd character is escaped.
        return representer.represent_scalar(
            "tag:yaml.org,2002:str", value, style=None if _PLAIN.fullmatch(value) else '"'
        )

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 120
    yaml.allow_unicode = True
    yaml.representer.add_representer(str, text)
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(data, file)


def _data(node: Any, path: Path, depth: int) -> Any:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    here = f"{path}, line {node.start_mark.line + 1}"
    if depth > _DEEPEST:
        raise SpecError(f"{here}: nested too deeply")
    if node.anchor:
        raise SpecError(f"{here}: anchors and aliases are not used in specs; write the value out")
    if isinstance(node, ScalarNode):
        if _blank(node):
            raise SpecError(f"{here}: a value is missing")
        return node.value
    if isinstance(node, SequenceNode):
        return [_data(item, path, depth + 1) for item in node.value]
    assert isinstance(node, MappingNode)
    mapping: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, ScalarNode):
            raise SpecError(f"{path}, line {line}: a key must be text")
        if key.value in mapping:
            raise SpecError(f"{path}, line {line}: the key {key.value!r} stands twice in one mapping")
        if _blank(value):
            raise SpecError(f"{path}, line {line}: the key {key.value!r} has no value")
        mapping[key.value] = _data(value, path, depth + 1)
    return mapping


def _blank(node: Any) -> bool:
    from ruamel.yaml.nodes import ScalarNode

    return isinstance(node, ScalarNode) and node.style is None and node.value in ("", "~", "null", "Null", "NULL")


def _child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The node at a key or index, and before it the node that marks its line: the key, or the item itself."""
    items = node.value if isinstance(node.value, list) else []
    if isinstance(step, int):
        return (items[step], items[step]) if step < len(items) and not isinstance(items[step], tuple) else None
    return next((item for item in items if isinstance(item, tuple) and item[0].value == step), None)
