"""Schemas as plain data: read with the place of every mistake, and written so that reading gives the same schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm.schema import Bins, Boolean, Dates, Domain, Integers, Listed, Merged, Numeric, Schema, Times
from hdmm.spec.hints import domain_remedy
from hdmm.spec.reader import Mistake, Place, boolean, integer, items, mapping, mistakes_at, scalar


def read_schema(data: Any, place: Place) -> Schema:
    """A schema from plain data."""
    with mistakes_at(place):
        return Schema(_read_domains(data, place))


def _read_domains(data: Any, place: Place) -> dict[str, Domain]:
    domains = {}
    for name, domain in mapping(data, place).items():
        with mistakes_at((*place, name)):
            domains[name] = read_domain(domain, (*place, name))
    return domains


def read_domain(data: Any, place: Place) -> Domain:
    """The domain of one attribute from plain data."""
    if data == "boolean":
        return Boolean()
    if isinstance(data, list):
        return Listed([scalar(item, (*place, i)) for i, item in enumerate(data)])
    if not isinstance(data, Mapping):
        raise Mistake(place, domain_remedy(data))
    cells, numerals = ("other", "missing", "levels"), ("thousands", "point", "currency")
    allowed = {
        "values": ("values", "ignore_case", "aliases", "labels", *cells),
        "min": ("min", "max", "decimals", "labels", *numerals, *cells),
        "bins": ("bins", "closed", *numerals, *cells),
        "boolean": ("boolean", *cells),
        "date": ("date", "by", "format", *cells),
        "time": ("time", "by", "format", *cells),
        "merged": ("merged",),
    }
    kinds = [kind for kind in allowed if kind in data]
    if len(kinds) != 1:
        every = sorted({key for keys in allowed.values() for key in keys})
        mapping(data, place, every)
        raise Mistake(place, "expected exactly one of values, min and max, bins, boolean, date, time, merged")
    entries = mapping(data, place, allowed[kinds[0]], required=("min", "max") if kinds[0] == "min" else ())
    extra = {key: read(entries[key], (*place, key)) for key, read in _OPTIONS.items() if key in entries}
    match kinds[0]:
        case "merged":
            return Merged(_read_domains(entries["merged"], (*place, "merged")))
        case "values":
            return Listed([scalar(item, place) for item in items(entries["values"], (*place, "values"))], **extra)
        case "min":
            return Integers(integer(entries["min"], (*place, "min")), integer(entries["max"], (*place, "max")), **extra)
        case "bins":
            edges = [scalar(item, place) for item in items(entries["bins"], (*place, "bins"))]
            return Bins(edges, **extra)
        case "date" | "time" as kind:
            first, last = _read_ends(entries[kind], (*place, kind))
            extra |= {name: scalar(entries[name], (*place, name)) for name in ("by", "format") if name in entries}
            return Dates(first, last, **extra) if kind == "date" else Times(first, last, **extra)
    if not boolean(entries["boolean"], (*place, "boolean")):
        raise Mistake((*place, "boolean"), "expected true")
    return Boolean(**extra)


def _read_ends(data: Any, place: Place) -> tuple[Any, Any]:
    """The first and the last date or time."""
    ends = [scalar(item, (*place, i)) for i, item in enumerate(items(data, place))]
    if len(ends) != 2:
        raise Mistake(place, "expected two values, the first and the last, for example [2020-01-01, 2024-12-31]")
    return ends[0], ends[1]


def _read_levels(data: Any, place: Place) -> dict[str, dict[str, list[Any]]]:
    def member(item: Any, here: Place) -> Any:
        return [scalar(end, here) for end in item] if isinstance(item, list) else scalar(item, here)

    levels: dict[str, dict[str, list[Any]]] = {}
    for name, groups in mapping(data, place).items():
        places = {group: (*place, name, group) for group in mapping(groups, (*place, name))}
        levels[name] = {
            group: [member(item, (*here, i)) for i, item in enumerate(items(groups[group], here))]
            for group, here in places.items()
        }
    return levels


def _read_missing(data: Any, place: Place) -> bool | list[Any]:
    return _read_texts(data, place) if isinstance(data, list) else boolean(data, place)


def _read_aliases(data: Any, place: Place) -> dict[str, list[Any]]:
    return {
        value: _read_texts(texts if isinstance(texts, list) else [texts], (*place, value))
        for value, texts in mapping(data, place).items()
    }


def _read_labels(data: Any, place: Place) -> dict[str, Any]:
    return {value: scalar(label, (*place, value)) for value, label in mapping(data, place).items()}


def _read_texts(data: list[Any], place: Place) -> list[Any]:
    return [scalar(text, (*place, i)) for i, text in enumerate(data)]


def _read_sign(data: Any, place: Place) -> str:
    return str(scalar(data, place))


_OPTIONS: Mapping[str, Callable[[Any, Place], Any]] = {
    "closed": boolean,
    "decimals": boolean,
    "ignore_case": boolean,
    "aliases": _read_aliases,
    "labels": _read_labels,
    "thousands": _read_sign,
    "point": _read_sign,
    "currency": _read_sign,
    "other": boolean,
    "missing": _read_missing,
    "levels": _read_levels,
}
"""How each option of an attribute is read."""


def domain_data(domain: Domain) -> Any:
    """A domain as plain data."""
    match domain:
        case Listed():
            data: dict[str, Any] = {"values": list(domain.values)}
            data |= {"ignore_case": True} if domain.ignore_case else {}
            data["aliases"] = {value: list(texts) for value, texts in domain.aliases.items()}
            data["labels"] = dict(domain.value_labels)
        case Integers():
            data = {"min": domain.min, "max": domain.max, "decimals": domain.decimals}
            data["labels"] = dict(domain.value_labels)
        case Bins():
            data = {"bins": [f"{edge:f}" for edge in domain.edges]} | ({"closed": True} if domain.closed else {})
        case Dates():
            data = {"date": [domain.first.isoformat(), domain.last.isoformat()], **_periods_data(domain)}
        case Times():
            data = {"time": [domain.first, domain.last], **_periods_data(domain)}
        case Merged():
            return {"merged": {name: domain_data(part) for name, part in domain.parts.items()}}
        case _:
            data = {"boolean": True}
    if isinstance(domain, Numeric):
        data |= {key: getattr(domain, key) for key in ("thousands", "point", "currency")}
    data |= {"other": domain.other, "missing": list(domain.missing_texts) or domain.missing}
    data |= {"levels": _levels_data(domain)}
    return {key: value for key, value in data.items() if value is not None and value is not False and value != {}}


def _periods_data(domain: Dates | Times) -> dict[str, Any]:
    return {"by": domain.by} | ({} if domain.format is None else {"format": domain.format})


def _levels_data(domain: Domain) -> dict[str, dict[str, list[Any]]]:
    levels: dict[str, dict[str, list[Any]]] = {}
    groups: set[str] = set()
    for name in domain.levels:
        if name in domain.implied:
            continue
        level = domain.levels[name]
        labels = [str(level.domain.value(group)) for group in range(level.domain.declared)]
        order = np.argsort(level.codes, kind="stable")
        members = np.split(order, np.searchsorted(level.codes[order], np.arange(1, level.domain.size)))
        levels[name] = {label: _members(domain, cells, groups) for label, cells in zip(labels, members, strict=False)}
        groups.update(labels)
    return levels


def _members(domain: Domain, cells: NDArray[np.int64], groups: set[str]) -> list[Any]:
    """Runs of numbers as pairs, other values one by one; a value that an earlier group is called is a pair, too."""
    ends = np.flatnonzero(np.diff(cells) > 1)
    runs = zip(cells[[0, *(ends + 1)]].tolist(), cells[[*ends, -1]].tolist(), strict=True)
    match domain:
        case Bins():
            return [[f"{domain.edges[first]:f}", f"{domain.edges[last + 1]:f}"] for first, last in runs]
        case Integers():
            pairs = [(domain.value(first), domain.value(last)) for first, last in runs]
            return [low if low == high and str(low) not in groups else [low, high] for low, high in pairs]
        case Dates() | Times():
            firsts, lasts = zip(*runs, strict=True)
            return [
                list(pair)
                for pair in zip(domain.ends(np.array(firsts))[0], domain.ends(np.array(lasts))[1], strict=True)
            ]
    values = [str(domain.value(code)) for code in cells.tolist()]
    return [[value, value] if value in groups else value for value in values]
