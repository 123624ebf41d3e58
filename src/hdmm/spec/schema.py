"""Schemas as plain data: read with the place of every mistake, and written so that reading gives the same schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm.schema import Bins, Boolean, Domain, Integers, Listed, Merged, Schema
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
            domains[name] = _read_domain(domain, (*place, name))
    return domains


def _read_domain(data: Any, place: Place) -> Domain:
    if data == "boolean":
        return Boolean()
    if isinstance(data, list):
        return Listed([scalar(item, (*place, i)) for i, item in enumerate(data)])
    if not isinstance(data, Mapping):
        raise Mistake(place, domain_remedy(data))
    allowed = {
        "values": ("values", "other", "missing", "levels"),
        "min": ("min", "max", "other", "missing", "levels"),
        "bins": ("bins", "closed", "other", "missing", "levels"),
        "boolean": ("boolean", "other", "missing", "levels"),
        "merged": ("merged",),
    }
    kinds = [kind for kind in allowed if kind in data]
    if len(kinds) != 1:
        every = sorted({key for keys in allowed.values() for key in keys})
        mapping(data, place, every)
        raise Mistake(place, "expected exactly one of values, min and max, bins, boolean, merged")
    entries = mapping(data, place, allowed[kinds[0]], required=("min", "max") if kinds[0] == "min" else ())
    extra: dict[str, Any] = {key: boolean(entries.get(key, False), (*place, key)) for key in ("other", "missing")}
    extra["levels"] = _read_levels(entries.get("levels", {}), (*place, "levels"))
    match kinds[0]:
        case "merged":
            return Merged(_read_domains(entries["merged"], (*place, "merged")))
        case "values":
            return Listed([scalar(item, place) for item in items(entries["values"], (*place, "values"))], **extra)
        case "min":
            return Integers(integer(entries["min"], (*place, "min")), integer(entries["max"], (*place, "max")), **extra)
        case "bins":
            closed = boolean(entries.get("closed", False), (*place, "closed"))
            edges = [scalar(item, place) for item in items(entries["bins"], (*place, "bins"))]
            return Bins(edges, closed=closed, **extra)
    if not boolean(entries["boolean"], (*place, "boolean")):
        raise Mistake((*place, "boolean"), "expected true")
    return Boolean(**extra)


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


def domain_data(domain: Domain) -> Any:
    """A domain as plain data."""
    match domain:
        case Listed():
            data: dict[str, Any] = {"values": list(domain.values)}
        case Integers():
            data = {"min": domain.min, "max": domain.max}
        case Bins():
            data = {"bins": [f"{edge:f}" for edge in domain.edges]} | ({"closed": True} if domain.closed else {})
        case Merged():
            return {"merged": {name: domain_data(part) for name, part in domain.parts.items()}}
        case _:
            data = {"boolean": True}
    data |= {key: True for key in ("other", "missing") if getattr(domain, key)}
    return data | ({"levels": _levels_data(domain)} if domain.levels else {})


def _levels_data(domain: Domain) -> dict[str, dict[str, list[Any]]]:
    levels: dict[str, dict[str, list[Any]]] = {}
    groups: set[str] = set()
    for name, level in domain.levels.items():
        labels = [str(level.domain.value(group)) for group in range(level.domain.declared)]
        members = [np.flatnonzero(level.codes == group) for group in range(len(labels))]
        levels[name] = {label: _members(domain, cells, groups) for label, cells in zip(labels, members, strict=True)}
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
    values = [str(domain.value(code)) for code in cells.tolist()]
    return [[value, value] if value in groups else value for value in values]
