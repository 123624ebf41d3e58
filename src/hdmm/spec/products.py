"""Products as plain data, the form that :mod:`hdmm.spec.spec` reads back."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from hdmm import workload as p
from hdmm.workload.products import Product

WORDS: dict[str, p.Predicates] = {
    "identity": p.Identity(),
    "total": p.Total(),
    "prefix": p.Prefix(),
    "all_range": p.AllRange(),
}
"""The predicate sets that need no parameters."""


def product_data(product: Product) -> dict[str, Any]:
    """A product as plain data."""
    data: dict[str, Any] = {"name": product.name}
    if product.predicates:
        data["product"] = {name: predicates_data(predicates) for name, predicates in product.predicates.items()}
    if product.where is not None:
        data["where"] = product.where
    if product.weight != 1:
        data["weight"] = str(product.weight)
    return data


@singledispatch
def predicates_data(predicates: p.Predicates) -> Any:
    """A predicate set as plain data."""
    return next(word for word, candidate in WORDS.items() if candidate == predicates)


@predicates_data.register
def _(predicates: p.Identity) -> Any:
    return "identity" if predicates.where is None else {"identity": predicates.where}


@predicates_data.register
def _(predicates: p.Level) -> Any:
    names = predicates.names[0] if len(predicates.names) == 1 else list(predicates.names)
    return {"level": names} | ({} if predicates.where is None else {"where": predicates.where})


@predicates_data.register
def _(predicates: p.By) -> Any:
    (first, text), *more = predicates.expressions
    by = text if first == text and not more else dict(predicates.expressions)
    return {"by": by} | ({} if predicates.where is None else {"where": predicates.where})


@predicates_data.register
def _(predicates: p.Union) -> Any:
    return [predicates_data(part) for part in predicates.parts]


@predicates_data.register
def _(predicates: p.Not) -> Any:
    return {"not": predicates_data(predicates.inner)}


@predicates_data.register
def _(predicates: p.Permuted) -> Any:
    return {"permuted": predicates_data(predicates.inner), "order": list(predicates.order)}


@predicates_data.register
def _(predicates: p.Width) -> Any:
    return {"width": predicates.width}


@predicates_data.register
def _(predicates: p.Ranges) -> Any:
    return {"ranges": [list(pair) for pair in predicates.ranges]}


@predicates_data.register
def _(predicates: p.Values) -> Any:
    return {"values": list(predicates.values)}


@predicates_data.register
def _(predicates: p.Where) -> Any:
    return {"where": predicates.condition}


@predicates_data.register
def _(predicates: p.Custom) -> Any:
    return {"custom": [list(row) for row in predicates.rows]}
