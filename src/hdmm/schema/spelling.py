"""Other texts of declared values: aliases, which records may hold, and labels, which tables show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from hdmm.errors import SchemaError, nearest
from hdmm.numbers import shown
from hdmm.schema.domain import OUTSIDE, Domain, declared_text
from hdmm.schema.levels import Named

Aliases: TypeAlias = Mapping[Any, object]
"""For each value the texts that mean it too: a text, or a list of them."""
Labels: TypeAlias = Mapping[Any, object]
"""For some values what tables show instead."""
Fold: TypeAlias = Callable[[str], str]
"""What is compared of a text."""


def read_aliases(values: tuple[str, ...], declared: Aliases | None, fold: Fold) -> Named[tuple[str, ...]]:
    """The aliases that a user declares; refuse one that means two values, or is a listed value."""
    owners = {fold(value): value for value in values}
    listed, known = set(values), set(values)
    aliases: dict[str, tuple[str, ...]] = {}
    for given, texts in _entries("aliases", declared, "{'Male': ['M', 'male']}"):
        value = declared_text("aliases", given)
        if value not in listed:
            raise SchemaError(f"aliases of {shown(value)}: it is not a listed value{nearest(value, values)}")
        if value in aliases:
            raise SchemaError(f"aliases of {shown(value)}: are declared twice; declare them once")
        aliases[value] = tuple(declared_text("alias", text) for text in _texts(value, texts))
        for text in aliases[value]:
            owner = owners.setdefault(fold(text), value)
            if text in listed:
                raise SchemaError(f"alias {shown(text)} of {shown(value)}: is a listed value too; remove one of them")
            if owner != value:
                raise SchemaError(
                    f"alias {shown(text)} of {shown(value)}: means {shown(owner)} already; a text has one meaning, so "
                    "remove one of them"
                )
            if text in known:
                raise SchemaError(f"alias {shown(text)} of {shown(value)}: is listed twice; list each text once")
            known.add(text)
    return Named(aliases)


def _texts(value: str, declared: object) -> list[object]:
    texts = [declared] if isinstance(declared, (str, int)) and not isinstance(declared, bool) else declared
    if not isinstance(texts, (list, tuple)) or not texts:
        raise SchemaError(f"aliases of {shown(value)}: expected a text or a list of texts, not {shown(declared)}")
    return list(texts)


def read_labels(domain: Domain, declared: Labels | None, fold: Fold) -> Named[str]:
    """The labels that a user declares; refuse one that could mean two cells."""
    labels: dict[int, str] = {}
    owners: dict[str, str] = {}
    extra = ["other"] * domain.other + ["missing"] * domain.missing
    for given, text in _entries("labels", declared, "{'1': 'Male', '2': 'Female'}"):
        value = declared_text("labels", given)
        code = domain.find(value)
        if code == OUTSIDE:
            raise SchemaError(f"label of {shown(value)}: it is not a value of the attribute{domain.hint(value)}")
        if code in labels:
            raise SchemaError(f"label of {shown(value)}: is declared twice; declare it once")
        label = declared_text(f"label of {shown(value)}", text)
        meaning = domain.find(label)
        if meaning not in (OUTSIDE, code):
            raise SchemaError(
                f"label {shown(label)} of {shown(value)}: also means the value {shown(domain.value(meaning))}; choose "
                "another label"
            )
        if label in extra:
            raise SchemaError(f"label {label!r} of {shown(value)}: is the name of an extra cell; choose another label")
        owner = owners.setdefault(fold(label), value)
        if owner != value:
            raise SchemaError(
                f"label {shown(label)}: is that of {shown(owner)} and of {shown(value)}; give each value its own"
            )
        labels[code] = label
    return Named({str(domain.value(code)): label for code, label in labels.items()})


def _entries(name: str, declared: object, example: str) -> Iterable[tuple[object, object]]:
    if declared is None:
        return ()
    if not isinstance(declared, Mapping):
        raise SchemaError(f"{name}={shown(declared)}: expected a mapping from values, for example {example}")
    return declared.items()
