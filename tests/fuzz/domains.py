"""Random schemas: every kind of attribute, often of one cell, with levels, merged parts and cells for other values."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from math import prod
from random import Random

from tests.fuzz.schemas import Attribute, Levels, period_of
from tests.fuzz.spellings import random_options

_SIZES = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 12)
_NAMES = ("sex", "age", "state", "flag", "income", "education-num", "size of household", "Order", "x1", "größe")
_TEXTS = ("F", "M", "CA", "NY", "TX", "it's", "a b", "7", "01", "true", "ü", "x,y", "low", "none", "A+B", "-1", "*")


def random_schema(rng: Random) -> tuple[Attribute, ...]:
    """One to four attributes of few cells together."""
    limit = rng.choice((6, 12, 12, 24, 24, 36, 60, 120, 240))
    names = rng.sample(_NAMES, rng.choice((1, 1, 1, 2, 2, 2, 3, 3, 4)))
    attributes: list[Attribute] = []
    for name in names:
        left = limit // prod(attribute.size for attribute in attributes)
        attributes.append(_attribute(rng, name, max(1, left), merged=True))
    return tuple(attributes)


def _attribute(rng: Random, name: str, most: int, *, merged: bool) -> Attribute:
    size = min(rng.choice(_SIZES), most)
    if merged and most >= 4 and rng.random() < 0.15:
        flags = rng.random() < 0.5
        parts: list[Attribute] = []
        for place in range(rng.choice((1, 2, 2, 3))):
            left = min(12, most) // prod(part.size for part in parts)
            own = f"{name} {'abc'[place]}"
            if flags and left >= 2:
                parts.append(Attribute(own, "boolean"))
            elif left >= 2 or not parts:
                parts.append(_attribute(rng, own, min(left, 4), merged=False))
        return Attribute(name, "merged", parts=tuple(parts))
    other = size < most and rng.random() < 0.25
    missing = size + other < most and rng.random() < 0.4
    kind = rng.choice(("listed", "listed", "integers", "integers", "bins", "boolean", "dates", "times"))
    closed = False
    if kind == "boolean" and most < 2:
        kind = "listed"
    match kind:
        case "listed":
            numbers = rng.random() < 0.3
            texts = [text for text in _TEXTS if merged or "," not in text]
            values = (
                tuple(str(n) for n in rng.sample(range(-3, 40), size)) if numbers else tuple(rng.sample(texts, size))
            )
        case "integers":
            low = rng.choice((0, 0, 1, -2, 100))
            values = (str(low), str(low + size - 1))
        case "bins":
            edges = sorted(
                rng.sample(
                    ("-5", "0", "0.1", "1", "2.5", "10", "15", "100", "1000", "2000.25", "5000"), min(size, 10) + 1
                ),
                key=Decimal,
            )
            values, closed = tuple(edges), rng.random() < 0.3
        case "dates" | "times":
            bare = _dates(rng, name, size) if kind == "dates" else _times(rng, name, size)
            bare = replace(bare, other=other, missing=missing)
            return replace(bare, levels=_levels(rng, bare)) if rng.random() < 0.2 else bare
        case _:
            values = ()
            other, missing = other and most > 2, missing and most > 3
    options = random_options(rng, kind, values, missing)
    bare = Attribute(name, kind, values, closed, other, missing, options=options)
    return replace(bare, levels=_levels(rng, bare) if rng.random() < 0.3 else ())


def _dates(rng: Random, name: str, size: int) -> Attribute:
    """As many periods, the first and the last of them perhaps cut."""
    by = rng.choice(("day", "day", "week", "month", "quarter", "year"))
    first = date(2019, 12, 1) + timedelta(rng.randrange(60))
    seen: list[str] = []
    last = day = first
    stop = rng.random() < 0.5
    while True:
        label = period_of(day, by)
        if label not in seen[-1:]:
            if len(seen) == size:
                break
            seen.append(label)
        last = day
        if stop and len(seen) == size and rng.random() < 0.1:
            break
        day += timedelta(1)
    formats = ["", "", "%d.%m.%Y", "%Y%m%d", *(["%m/%Y"] if by in ("month", "quarter", "year") else [])]
    return Attribute(name, "dates", (str(first), str(last)), by=by, format=rng.choice(formats))


def _times(rng: Random, name: str, size: int) -> Attribute:
    """As many hours or minutes."""
    by = rng.choice(("hour", "minute"))
    minutes = {"hour": 60, "minute": 1}[by]
    first = rng.randrange(11) * 60 + rng.choice((0, 0, 30, 55))
    last = first // minutes * minutes + size * minutes - (rng.choice((0, 0, 3)) if by == "hour" else 0)
    ends = (f"{first // 60:02}:{first % 60:02}", f"{last // 60:02}:{last % 60:02}")
    return Attribute(name, "times", ends, by=by, format=rng.choice(("", "", "%H%M")))


def _levels(rng: Random, domain: Attribute) -> Levels:
    """One level, perhaps a second: groups of neighbouring or of scattered cells."""
    levels = []
    for number in range(rng.choice((1, 1, 2))):
        count = rng.randint(1, min(3, domain.declared))
        codes = [*range(count), *(rng.randrange(count) for _ in range(domain.declared - count))]
        if rng.random() < 0.5:
            codes.sort()
        else:
            rng.shuffle(codes)
        groups = [(f"g{number}{'abc'[g]}", tuple(c for c, own in enumerate(codes) if own == g)) for g in range(count)]
        levels.append((f"{domain.name} level{number}", tuple(groups)))
    return tuple(levels)
