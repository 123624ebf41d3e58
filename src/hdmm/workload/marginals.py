"""Workloads of marginals: cross-tabulations of sets of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import prod

from hdmm.errors import TooLargeError, WorkloadError, is_integer, nearest
from hdmm.numbers import shown
from hdmm.schema import Schema
from hdmm.workload.ordered import Prefix
from hdmm.workload.products import MAX_PRODUCTS, Product, Workload
from hdmm.workload.values import Identity


def marginals(
    schema: Schema,
    k: int | None = None,
    *,
    up_to: int | None = None,
    max_cells: int | None = None,
    all: bool = False,
    prefix: Iterable[str] = (),
) -> Workload:
    """The marginals on every set of ``k`` attributes, of at most ``up_to``, of at most ``max_cells`` cells, or all.

    With ``max_cells`` beside ``k`` or ``up_to``, larger ones among these are left out. Attributes in ``prefix`` are
    counted cumulatively. Products are named like ``"sex × age"``, the empty one ``"total"``.

    >>> person = Schema(sex=["F", "M"], age=range(115), hispanic=[False, True])
    >>> [product.name for product in marginals(person, k=2).products]
    ['sex × age', 'sex × hispanic', 'age × hispanic']
    >>> [product.name for product in marginals(person, k=2, max_cells=10).products]
    ['sex × hispanic']

    Arguments:
        schema: The attributes.
        k: Marginals on exactly this many attributes.
        up_to: Marginals on at most this many attributes.
        max_cells: Marginals of at most this many cells.
        all: All marginals.
        prefix: Attributes that are counted cumulatively.
    """
    options = {"k": k, "up_to": up_to, "max_cells": max_cells, "all": all or None}
    chosen = [name for name, value in options.items() if value is not None]
    if len(chosen) != 1 and chosen not in (["k", "max_cells"], ["up_to", "max_cells"]):
        raise WorkloadError(
            f"marginals: give exactly one of k, up_to, max_cells and all; given: {', '.join(chosen) or 'none'} "
            "(max_cells may go with k or with up_to)"
        )
    for name in ("k", "up_to", "max_cells"):
        value = options[name]
        low, high = (1, None) if name == "max_cells" else (0, len(schema))
        if value is not None and (not is_integer(value) or value < low or (high is not None and value > high)):
            raise WorkloadError(
                f"marginals: {name}={shown(value)}: expected an integer from {low}{f' to {high}' if high else ''}"
            )
    cumulative = frozenset(prefix)
    for name in cumulative:
        if name not in schema:
            raise WorkloadError(f"marginals: prefix attribute {name!r} is not in the schema{nearest(name, schema)}")

    ways = [k] if k is not None else range(1 + (len(schema) if up_to is None else up_to))
    if max_cells is None:
        sets = _sized(schema, ways)
    elif k is None and up_to is None:
        sets = _small(schema, max_cells)
    else:
        sizes = dict(zip(schema.names, schema.sizes, strict=True))
        sets = (names for names in _sized(schema, ways) if prod(sizes[name] for name in names) <= max_cells)
    predicates = {name: Prefix() if name in cumulative else Identity() for name in schema}
    empty = "total" if "total" not in schema else "grand total"
    products: list[Product] = []
    for names in sets:
        if len(products) == MAX_PRODUCTS:
            raise _too_many()
        products.append(Product(" × ".join(names) or empty, {name: predicates[name] for name in names}))
    return Workload(schema, products)


def _too_many() -> TooLargeError:
    return TooLargeError(f"marginals: more than {MAX_PRODUCTS} sets of attributes; ask for fewer, for example up_to=3")


def _sized(schema: Schema, ways: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """Every set of one of these numbers of attributes; refused before any is made if there are too many."""
    total = 0
    for way in ways:
        count = 1
        for step in range(min(way, len(schema) - way)):  # a huge binomial is not worked out to its end
            count = count * (len(schema) - step) // (step + 1)
            if total + count > MAX_PRODUCTS:
                raise _too_many()
        total += count
        if total > MAX_PRODUCTS:
            raise _too_many()
    return (names for way in ways for names in combinations(schema.names, way))


def _small(schema: Schema, max_cells: int) -> Iterator[tuple[str, ...]]:
    """Every set whose marginal has at most this many cells, smaller sets first."""
    sets: list[tuple[tuple[str, ...], int]] = [((), 1)]  # of the same size, with their cells
    names = schema.names
    while sets:
        yield from (chosen for chosen, _ in sets)
        larger: list[tuple[tuple[str, ...], int]] = []
        for chosen, cells in sets:
            start = schema.axis(chosen[-1]) + 1 if chosen else 0
            for name in names[start:]:
                if cells * schema[name].size <= max_cells:
                    larger.append(((*chosen, name), cells * schema[name].size))
            if len(larger) > MAX_PRODUCTS:
                raise _too_many()
        sets = larger
