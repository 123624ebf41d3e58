"""All mistakes of a spec at once, each with its place, so that they can be mended in one go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hdmm.errors import SpecError
from hdmm.spec.reader import Mistake
from hdmm.spec.spec import Spec

_MAX_MISTAKES = 20
"""The most mistakes that are looked for: each takes another reading of the spec."""


def load_or_mistakes(path: Path) -> Spec | list[str]:
    """The spec of a YAML file; if there are mistakes, all of them with their lines."""
    from hdmm.spec.yaml import load_yaml

    try:
        data, line = load_yaml(path)
    except SpecError as error:
        return [str(error)]
    spec, mistakes = _read_on(data)
    if spec is not None and not mistakes:
        return spec
    placed = sorted((line(mistake.place), str(mistake)) for mistake in mistakes)
    return [f"{path}, line {number}: {message}" for number, message in placed]


def _read_on(data: Any) -> tuple[Spec | None, list[Mistake]]:
    """Read plain data again and again, each time without what was wrong before."""
    mistakes: list[Mistake] = []
    while len(mistakes) < _MAX_MISTAKES:
        try:
            return Spec.read(data), mistakes
        except Mistake as mistake:
            mistakes.append(mistake)
            rest = _without(data, mistake)
            if rest is None:
                break
            data = rest
    return None, mistakes


def _without(data: Any, mistake: Mistake) -> Any:
    """The data without the part in which a mistake is; None if nothing would be left to read.

    An entry of the workload becomes a harmless one, so that the places of the others stay the same. Without an
    attribute its questions cannot be read, so then only the other sections are.
    """
    match mistake.place:
        case ("schema", str(name), *_) if isinstance(data.get("schema"), Mapping):
            attributes = {key: value for key, value in data["schema"].items() if key != name}
            harmless = {"schema": attributes, "workload": [{"name": "total"}], "targets": {}}
            return {**data, **harmless} if attributes else None
        case ("workload", int(index), *_):
            entries = list(data["workload"])
            entries[index] = {"name": f"\u2026 {index}"}
            return {**data, "workload": entries}
        case ("privacy" | "targets" as section, str(key), *_) if isinstance(data.get(section), Mapping):
            return {**data, section: {other: value for other, value in data[section].items() if other != key}}
        case (str(section), *_) if section not in ("schema", "workload"):
            return {other: value for other, value in data.items() if other != section}
    return None
