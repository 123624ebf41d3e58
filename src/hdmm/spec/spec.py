"""Specs: a schema, a workload, an objective and privacy, as plain data and as YAML.

The plain data is what YAML and plan files hold: mappings, lists and texts. Reading it is the one way in, so a file
and a plan build the same workload. A mistake is reported with its place, and from YAML with its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, final, get_args

from hdmm import workload as p
from hdmm.errors import InputError, SpecError
from hdmm.objective import Aim
from hdmm.privacy.calibrate import NoiseKind
from hdmm.privacy.unit import Neighbours, Unit, check_unit
from hdmm.schema import Schema
from hdmm.spec.hints import ENTRY, PRODUCT, SECTIONS, check_entry_keys
from hdmm.spec.products import WORDS, product_data
from hdmm.spec.reader import Mistake, Place, boolean, integer, items, mapping, mistakes_at, number, scalar, word
from hdmm.spec.schema import domain_data, read_schema
from hdmm.syntax import messages_for
from hdmm.workload.marginals import marginals
from hdmm.workload.products import MAX_PRODUCTS, Product, Workload
from hdmm.workload.sql import read_sql
from hdmm.workload.targets import Target, read_targets

_PRIVACY = ("noise", "unit")
_SECTIONS = ("schema", "workload", "objective", "targets", "privacy")
_KEYS = ("identity", "width", "ranges", "values", "where", "custom", "not", "permuted")


@final
@dataclass(frozen=True)
class Spec:
    """The contents of a spec file: schema, questions, noise, privacy unit, objective and targets.

    Arguments:
        schema: The attributes of the records.
        workload: The questions.
        noise: "laplace" or "gaussian".
        unit: What is protected.
        objective: "total" or "max".
        targets: Accuracies by product.
    """

    schema: Schema
    workload: Workload
    noise: NoiseKind = "laplace"
    unit: Unit = field(default_factory=Unit)
    objective: Aim = "total"
    targets: Mapping[str, Target] = field(default_factory=dict)

    @staticmethod
    def load(path: str | Path) -> Spec:
        """Read a YAML spec; mistakes are reported with their line."""
        from hdmm.spec.yaml import load_yaml

        data, line = load_yaml(Path(path))
        try:
            with messages_for("spec"):
                return Spec.read(data)
        except Mistake as mistake:
            raise SpecError(f"{path}, line {line(mistake.place)}: {mistake}") from None

    @staticmethod
    def read(data: Any) -> Spec:
        """Read a spec from plain data."""
        if not isinstance(data, Mapping):
            raise Mistake((), f"this is no spec; {SECTIONS}")
        for key in _PRIVACY:
            if key in data:
                raise Mistake((key,), f"{key!r} belongs in the section `privacy`; write privacy: {{{key}: …}}")
        sections = mapping(data, (), _SECTIONS, required=("schema", "workload"), remedy=SECTIONS)
        schema = read_schema(sections["schema"], ("schema",))
        workload = _read_workload(schema, sections["workload"], ("workload",))
        privacy = mapping(sections.get("privacy", {}), ("privacy",), _PRIVACY)
        noise = word(privacy.get("noise", "laplace"), ("privacy", "noise"), get_args(NoiseKind))
        unit = _read_unit(privacy.get("unit", {}), ("privacy", "unit"), schema)
        objective = word(sections.get("objective", "total"), ("objective",), get_args(Aim))
        targets = _read_targets(workload, mapping(sections.get("targets", {}), ("targets",)))
        if targets and objective != "total":
            raise Mistake(("objective",), "give an objective or targets, not both")
        return Spec(schema, workload, noise, unit, objective, targets)

    def data(self) -> dict[str, Any]:
        """The spec as plain data; reading it back gives an equal spec."""
        return {
            "schema": {name: domain_data(domain) for name, domain in self.schema.items()},
            "workload": [product_data(product) for product in self.workload.products],
            **({"objective": self.objective} if self.objective != "total" else {}),
            **({"targets": {name: str(target) for name, target in self.targets.items()}} if self.targets else {}),
            "privacy": {"noise": self.noise, "unit": self.unit.data()},
        }

    def save(self, path: str | Path) -> None:
        """Write the spec as YAML."""
        from hdmm.spec.yaml import save_yaml

        save_yaml(Path(path), self.data())


def _read_unit(data: Any, place: Place, schema: Schema) -> Unit:
    entries = mapping(
        data, place, ("rows", "neighbours", "id"), remedy="write for example unit: {rows: 1, id: patient}"
    )
    rows = integer(entries.get("rows", 1), (*place, "rows"))
    neighbours = word(entries.get("neighbours", "add-remove"), (*place, "neighbours"), get_args(Neighbours))
    id = _text(entries, "id", place)
    with mistakes_at(place):
        unit = Unit(rows, neighbours, id)
        check_unit(unit, schema)
    return unit


def _read_workload(schema: Schema, data: Any, place: Place) -> Workload:
    if not isinstance(data, list):
        raise Mistake(place, f"expected a list; {ENTRY}")
    entries = items(data, place)
    if not entries:
        raise Mistake(place, "the workload is empty; ask for at least one product")
    products: list[Product] = []
    places: list[Place] = []
    for index, entry in enumerate(entries):
        here: Place = (*place, index)
        keys = ("name", "product", "where", "weight", "marginals", "sql")
        if isinstance(entry, Mapping):
            check_entry_keys(entry, here, schema)
        with mistakes_at(here):
            added = _read_entry(schema, mapping(entry, here, keys, ("name",), ENTRY), here)
        products += added
        places += [here] * len(added)
        if len(products) > MAX_PRODUCTS:
            raise Mistake(here, f"with this entry there are more than {MAX_PRODUCTS:,} products; ask for fewer")
    try:
        return Workload(schema, products)
    except InputError as error:
        raise Mistake(_culprit(schema, products, places), str(error)) from None


def _read_targets(workload: Workload, data: Mapping[str, Any]) -> dict[str, Target]:
    targets: dict[str, Target] = {}
    for name, text in data.items():
        place: Place = ("targets", name)
        with mistakes_at(place):
            targets |= read_targets(workload, {name: str(scalar(text, place))})
    return targets


def _culprit(schema: Schema, products: Sequence[Product], places: Sequence[Place]) -> Place:
    """The place of the first product with which the workload cannot be built."""
    good: list[Product] = []
    for product, place in zip(products, places, strict=True):
        try:
            Workload(schema, [*(other for other in good if other.name == product.name), product])
        except InputError:
            return place
        good.append(product)
    return ("workload",)


def _text(entries: Mapping[str, Any], key: str, place: Place) -> str | None:
    """The text of an optional key."""
    return str(scalar(entries[key], (*place, key))) if key in entries else None


def _read_entry(schema: Schema, entry: Mapping[str, Any], place: Place) -> list[Product]:
    name = str(scalar(entry["name"], (*place, "name")))
    weight = str(scalar(entry.get("weight", 1), (*place, "weight")))
    kinds = [kind for kind in ("product", "marginals", "sql") if kind in entry]
    if len(kinds) > 1:
        raise Mistake(place, f"give one of product, marginals and sql, not {' and '.join(kinds)}")
    where = _text(entry, "where", place)
    if where is not None and "sql" in entry:
        raise Mistake((*place, "where"), "where does not go with sql; write the condition into the statement")
    if "sql" in entry:
        with mistakes_at((*place, "sql")):
            return read_sql(schema, name, str(scalar(entry["sql"], (*place, "sql"))), weight)
    if "marginals" in entry:
        here: Place = (*place, "marginals")
        options = mapping(entry["marginals"], here, ("k", "up_to", "max_cells", "all", "prefix"))
        numbers = {key: integer(options[key], (*here, key)) for key in ("k", "up_to", "max_cells") if key in options}
        prefix = [str(scalar(item, here)) for item in items(options.get("prefix", []), (*here, "prefix"))]
        every = boolean(options.get("all", False), (*here, "all"))
        tables = marginals(schema, numbers.pop("k", None), all=every, prefix=prefix, **numbers)
        return [Product(f"{name}: {product.name}", product.predicates, weight, where) for product in tables.products]
    here = (*place, "product")
    sets = {
        attribute: _read_predicates(data, (*here, attribute))
        for attribute, data in mapping(entry.get("product", {}), here, remedy=PRODUCT).items()
    }
    return [Product(name, sets, weight, where)]


def _read_predicates(data: Any, place: Place) -> p.Predicates:
    if isinstance(data, str):
        return WORDS[word(data, place, tuple(WORDS))]
    if isinstance(data, list):
        parts = [_read_predicates(item, (*place, i)) for i, item in enumerate(data)]
        if not parts:
            raise Mistake(place, "the list of predicate sets is empty; write for example [identity, total]")
        return reduce(or_, parts)
    if isinstance(data, Mapping) and "level" in data:
        return _read_level(data, place)
    if isinstance(data, Mapping) and "by" in data:
        return _read_by(data, place)
    entries = mapping(data, place, (*_KEYS, "level", "by", "order"))
    kinds = [key for key in _KEYS if key in entries]
    if len(kinds) != 1 or ("order" in entries and kinds != ["permuted"]):
        words = ", ".join(WORDS)
        raise Mistake(place, f"expected one of the words {words}, or one of the keys {', '.join(_KEYS)}, level, by")
    (key,) = kinds
    value, here = entries[key], (*place, key)
    match key:
        case "identity":
            return p.Identity(str(scalar(value, here)))
        case "width":
            return p.Width(integer(value, here))
        case "ranges":
            return p.Ranges([[scalar(end, here) for end in items(pair, here)] for pair in items(value, here)])
        case "values":
            return p.Values([scalar(item, here) for item in items(value, here)])
        case "where":
            return p.Where(str(scalar(value, here)))
        case "custom":
            return p.Custom([[number(item, here) for item in items(row, here)] for row in items(value, here)])
        case "not":
            return p.Not(_read_predicates(value, here))
    order = [scalar(item, (*place, "order")) for item in items(entries.get("order", []), (*place, "order"))]
    return p.Permuted(_read_predicates(value, here), order)


def _read_level(data: Mapping[str, Any], place: Place) -> p.Level:
    entries = mapping(data, place, ("level", "where"))
    here: Place = (*place, "level")
    names = entries["level"] if isinstance(entries["level"], list) else [entries["level"]]
    return p.Level(*(str(scalar(name, here)) for name in names), where=_text(entries, "where", place))


def _read_by(data: Mapping[str, Any], place: Place) -> p.By:
    entries = mapping(data, place, ("by", "where"))
    here: Place = (*place, "by")
    by = entries["by"]
    if isinstance(by, Mapping):
        expressions: Any = {name: str(scalar(text, (*here, name))) for name, text in mapping(by, here).items()}
    else:
        expressions = str(scalar(by, here))
    return p.By(expressions, where=_text(entries, "where", place))
