"""Accuracy targets: the largest margin that answers of a product may have, such as ±50 at 95%."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hdmm.errors import WorkloadError, nearest
from hdmm.numbers import fraction, shown
from hdmm.workload.products import Workload

_TEXT = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(?:@\s*([0-9]{1,3}(?:\.[0-9]{1,10})?)\s*%\s*)?")
_MIN_LEVEL = Fraction(1, 2)
_MAX_LEVEL = Fraction(99999, 100000)


@final
@dataclass(frozen=True)
class Target:
    """At this level of confidence every answer is to lie within ± this margin of the truth.

    >>> Target("50@95%")
    Target('50@95%')
    """

    margin: Fraction
    level: Fraction

    def __init__(self, text: str) -> None:
        parts = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if parts is None or not fraction(parts[1]):
            raise WorkloadError(f"target {shown(text)}: expected a margin and a level, for example '50@95%'")
        level = fraction(parts[2] or "95") / 100
        if not _MIN_LEVEL <= level <= _MAX_LEVEL:
            raise WorkloadError(f"target {shown(text)}: expected a level from 50% to 99.999%, for example '50@95%'")
        object.__setattr__(self, "margin", fraction(parts[1]))
        object.__setattr__(self, "level", level)

    def __str__(self) -> str:
        return f"{float(self.margin):.12g}@{float(100 * self.level):.12g}%"

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


def read_targets(workload: Workload, targets: Mapping[str, str | Target]) -> dict[str, Target]:
    """Targets by the name of a product, or of the spec's entry that products come from; every name must exist.

    >>> import hdmm
    >>> pairs = hdmm.marginals(hdmm.Schema(a=range(2), b=range(3)), k=1)
    >>> read_targets(pairs, {"a": "20"})
    {'a': Target('20@95%')}
    """
    if not isinstance(targets, Mapping):
        raise WorkloadError(f"targets={targets!r}: expected a mapping such as {{'by sex and age': '50@95%'}}")
    checked = {}
    for name, target in targets.items():
        _matching(workload, name)
        try:
            checked[name] = target if isinstance(target, Target) else Target(target)
        except WorkloadError as error:
            raise WorkloadError(f"product {name!r}: {error}") from None
    return checked


def by_product(workload: Workload, targets: Mapping[str, Target]) -> list[list[tuple[str, Target]]]:
    """For every product the targets that apply to it, under the names by which they were given."""
    applying: list[list[tuple[str, Target]]] = [[] for _ in workload.products]
    for name, target in targets.items():
        for place in _matching(workload, name):
            applying[place].append((name, target))
    return applying


def _matching(workload: Workload, name: str) -> list[int]:
    """The positions of the products that a target's name means."""
    names = [product.name for product in workload.products]
    if name in names:
        return [names.index(name)]
    places = [place for place, product in enumerate(names) if product.startswith(f"{name}: ")]
    if not places:
        entries = {product.partition(": ")[0] for product in names}
        raise WorkloadError(f"target {name!r}: no such product{nearest(str(name), [*names, *(entries - set(names))])}")
    return places
