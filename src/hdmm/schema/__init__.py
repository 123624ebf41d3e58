"""The schema, the public contract about the data: the attributes and the finite domain of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod
from typing import final

from hdmm.errors import SchemaError, WorkloadError, nearest, unquoted
from hdmm.schema.bins import Bins
from hdmm.schema.dates import Dates
from hdmm.schema.domain import OUTSIDE, Codes, Comparison, Domain, declared_once, text_of, writable
from hdmm.schema.kinds import Boolean, Integers, Listed, named_domain
from hdmm.schema.levels import Level
from hdmm.schema.merged import Merged
from hdmm.schema.numerals import Numeric
from hdmm.schema.times import Times

__all__ = [
    "OUTSIDE",
    "RESERVED",
    "Bins",
    "Boolean",
    "Codes",
    "Comparison",
    "Dates",
    "Domain",
    "Integers",
    "Level",
    "Listed",
    "Merged",
    "Numeric",
    "Schema",
    "Times",
    "text_of",
    "writable",
]

RESERVED = ("answer", "stderr", "low", "high", "estimator")
"""Columns of answer tables, which no attribute may be called."""


@final
class Schema(Mapping[str, Domain]):
    """The attributes of the records, in order, each with its declared domain.

    >>> person = Schema(sex=["F", "M"], age=range(115), income=Bins([0, 10_000, 50_000]))
    >>> person.sizes
    (2, 115, 2)
    >>> person["age"].encode([b"34", b" 007 ", b"5.0", b"115"]).tolist()
    [34, 7, -1, -1]

    Names that are not identifiers go into a mapping: ``Schema({"education-num": range(17)})``.

    Arguments:
        mapping: Attributes by name, for names that are not identifiers.
        attributes: Attributes by name: a list of values, a ``range``, or one of the kinds below.
    """

    def __init__(self, mapping: Mapping[str, object] | None = None, /, **attributes: object) -> None:
        self._domains: dict[str, Domain] = {}
        for name, declared in declared_once("attribute", mapping, attributes).items():
            if name in RESERVED:
                raise SchemaError(f"attribute {name!r}: the name is taken by a column of answer tables; rename it")
            self._domains[name] = named_domain("attribute", name, declared)
        if not self._domains:
            raise SchemaError("a schema needs at least one attribute, for example Schema(age=range(115))")
        self._index()

    def _index(self) -> None:
        """Find the places of all names."""
        self._axes = {name: axis for axis, name in enumerate(self._domains)}
        self._places: dict[str, tuple[str, str | None]] = {name: (name, None) for name in self._domains}
        for name, domain in self._domains.items():
            self._place_levels(name, domain)
        self._shared = self._place_implied()
        self._lowered: dict[str, list[tuple[str, str | None]]] = {}
        for name, place in self._places.items():
            self._lowered.setdefault(name.lower(), []).append(place)

    def _place_levels(self, name: str, domain: Domain) -> None:
        for level in domain.levels:
            if level in domain.implied:
                continue
            if level in self._places:
                owner, other = self._places[level]
                taken = f"attribute {owner!r}" if other is None else _named(other, owner, self._domains[owner])
                raise SchemaError(
                    f"{_named(level, name, domain)} has the name of {taken}; "
                    "attributes, their parts and their levels need names of their own, so rename one"
                )
            self._places[level] = (name, level)

    def _place_implied(self) -> dict[str, list[str]]:
        """Name the levels that come by themselves; return those that several attributes have, with their owners.

        Each has a long name, "admitted month", and a short one if no other attribute has that. What is declared comes
        first.
        """
        owners: dict[str, list[str]] = {}
        for name, domain in self._domains.items():
            for level in domain.implied:
                self._places.setdefault(f"{name} {level}", (name, level))
                owners.setdefault(level, []).append(name)
        shared = {level: names for level, names in owners.items() if len(names) > 1}
        for level, names in owners.items():
            if level not in shared:
                self._places.setdefault(level, (names[0], level))
        return shared

    def __getitem__(self, name: str) -> Domain:
        return self._domains[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._domains)

    def __len__(self) -> int:
        return len(self._domains)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self._domains.items()))

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}: {domain.size}' for name, domain in self._domains.items())})"

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names in order."""
        return tuple(self._domains)

    @property
    def columns(self) -> dict[str, Domain]:
        """The columns that records are read from, each with its domain: those of merged attributes' parts too."""
        return {column: part for name, domain in self.items() for column, part in domain.columns(name).items()}

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each attribute has."""
        return tuple(domain.size for domain in self._domains.values())

    @property
    def cells(self) -> int:
        """How many cells the full domain has: the product of the sizes."""
        return prod(self.sizes)

    def only(self, names: Collection[str]) -> Schema:
        """The same schema with some of its attributes, or with none of them."""
        part = Schema.__new__(Schema)
        part._domains = {name: domain for name, domain in self._domains.items() if name in names}
        part._index()
        return part

    def axis(self, name: str) -> int:
        """The position of an attribute; an unknown name is refused with the nearest known one."""
        if name not in self._domains:
            raise WorkloadError(f"attribute {name!r} is not in the schema{nearest(name, self._domains)}")
        return self._axes[name]

    def resolve(self, name: str) -> tuple[str, str | None]:
        """The attribute that a name means, and its level or part if it means one; case matters only if in doubt.

        >>> Schema(county=Listed(["001", "003"], levels={"state": {"CA": ["001", "003"]}})).resolve("State")
        ('county', 'state')
        """
        if name in self._places:
            return self._places[name]
        close = self._lowered.get(name.lower(), [])
        if not close and name.lower() in self._shared:
            owners = self._shared[name.lower()]
            raise WorkloadError(
                f"{name!r} is a level of {' and of '.join(map(repr, owners))}; "
                f"write {' or '.join(repr(self.level_name(owner, name.lower())) for owner in owners)}"
            )
        if len(close) != 1:
            hint = self._as_value(name) or unquoted(name, self._places) or nearest(name, self._places)
            raise WorkloadError(f"attribute {name!r} is not in the schema{hint}")
        return close[0]

    def _as_value(self, name: str) -> str:
        """A hint if a name is a value: in SQL, texts in double quotes are names."""
        owners = (own for own, domain in self._domains.items() if isinstance(domain, Listed) and name in domain.values)
        owner = next(owners, None)
        return "" if owner is None else f"; as a value of {owner!r} it is written in single quotes: '{name}'"

    def level_name(self, attribute: str, level: str) -> str:
        """A name that :meth:`resolve` resolves to a level of an attribute.

        >>> Schema(came=Dates("2020", "2021"), left=Dates("2020", "2021")).level_name("left", "month")
        'left month'
        """
        return level if self._places.get(level) == (attribute, level) else f"{attribute} {level}"


def _named(level: str, name: str, domain: Domain) -> str:
    kind = "part" if isinstance(domain, Merged) and level in domain.parts else "level"
    return f"{kind} {level!r} of attribute {name!r}"
