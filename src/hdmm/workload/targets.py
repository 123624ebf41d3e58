"""Accuracy targets: a margin that every answer of a product is to keep, such as ±50 at 95%."""

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
_LEVELS = (Fraction(1, 2), Fraction(99999, 100000))


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
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None or not fraction(found[1]):
            raise WorkloadError(f"target {shown(text)}: expected a margin and a level, for example '50@95%'")
        level = fraction(found[2] or "95") / 100
        if not _LEVELS[0] <= level <= _LEVELS[1]:
            raise WorkloadError(f"target {shown(text)}: expected a level from 50% to 99.999%, for example '50@95%'")
        object.__setattr__(self, "margin", fraction(found[1]))
        object.__setattr__(self, "level", level)

    def __str__(self) -> str:
        return f"{float(self.margin):.12g}@{float(100 * self.level):.12g}%"

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


def read_targets(workload: Workload, given: Mapping[str, str | Target]) -> dict[str, Target]:
    """Targets by the names of products, or of the entries of a spec that the products come from; all names must exist.

    >>> import hdmm
    >>> pairs = hdmm.marginals(hdmm.Schema(a=range(2), b=range(3)), k=1)
    >>> read_targets(pairs, {"a": "20"})
    {'a': Target('20@95%')}
    """
    if not isinstance(given, Mapping):
        raise WorkloadError(f"targets={given!r}: expected a mapping such as {{'by sex and age': '50@95%'}}")
    targets = {}
    for name, target in given.items():
        _matching(workload, name)
        try:
            targets[name] = target if isinstance(target, Target) else Target(target)
        except WorkloadError as error:
            raise WorkloadError(f"product {name!r}: {error}") from None
    return targets


def by_product(workload: Workload, targets: Mapping[str, Target]) -> list[list[tuple[str, Target]]]:
    """For every product the targets that apply to it, under the names by which they were given."""
    found: list[list[tuple[str, Target]]] = [[] for _ in workload.products]
    for name, target in targets.items():
        for place in _matching(workload, name):
            found[place].append((name, target))
    return found


def _matching(workload: Workload, name: str) -> list[int]:
    names = [product.name for product in workload.products]
    if name in names:
        return [names.index(name)]
    found = [place for place, product in enumerate(names) if product.startswith(f"{name}: ")]
    if not found:
        entries = {product.partition(": ")[0] for product in names}
        raise WorkloadError(f"target {name!r}: no such product{nearest(str(name), [*names, *(entries - set(names))])}")
    return found
