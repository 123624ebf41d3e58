"""Checked access to plain data (mappings, lists, texts and numbers): a mistake is reported with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from hdmm import numbers
from hdmm.errors import InputError, SpecError, nearest

Place = tuple[str | int, ...]
Word = TypeVar("Word", bound=str)


_BUDGET = (
    "the budget is no part of a spec: give it to hdmm show and hdmm release, as --epsilon 1, or under Gaussian noise "
    'as --epsilon 1 --delta 1e-6 or --rho 0.5 (in Python: hdmm.Budget(epsilon="1"))'
)
_UNIT = "what is protected belongs in the section `privacy`; write privacy: {unit: {rows: 1, id: patient}}"
_ELSEWHERE = {
    **dict.fromkeys(
        ("epsilon", "eps", "ε", "delta", "δ", "rho", "ρ", "budget", "privacy_budget", "privacy budget"), _BUDGET
    ),
    **dict.fromkeys(("type", "dtype"), "an attribute is declared by its values, not by a type; leave the type out"),
    "ledger": "the ledger is no part of a spec: give it to hdmm release, as --ledger budget.db",
    "data": "the data are no part of a spec: give them to hdmm release, after the plan",
    **dict.fromkeys(("rows", "neighbours", "neighbors", "id"), _UNIT),
}
"""Keys that belong elsewhere, if they are not known at their place."""


class Mistake(SpecError):
    """A mistake in a spec, with its place in the data."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{_at(place)}: {message}" if place else message)
        self.place = place


@contextmanager
def mistakes_at(place: Place) -> Iterator[None]:
    """Report errors inside the `with` block as mistakes at a place, unless they have one already."""
    try:
        yield
    except Mistake:
        raise
    except InputError as error:
        raise Mistake(place, str(error)) from None


def mapping(
    data: Any,
    place: Place,
    allowed: Sequence[str] | None = None,
    required: Sequence[str] = (),
    remedy: str | None = None,
) -> Mapping[str, Any]:
    """A mapping with text keys, all of them allowed and none of the required ones missing."""
    if not isinstance(data, Mapping):
        keys = f" with the keys {', '.join(allowed)}" if allowed else ""
        raise Mistake(place, f"expected a mapping{keys}{f'; {remedy}' if remedy else ''}")
    for key in data:
        if not isinstance(key, str):
            raise Mistake(place, f"key {numbers.shown(key)}: expected text")
        if allowed is not None and key not in allowed:
            elsewhere = _ELSEWHERE.get(key.strip().casefold())
            hint = nearest(key, allowed) if elsewhere is None else f"; {elsewhere}"
            raise Mistake((*place, key), f"unknown key {numbers.shown(key)}{hint}")
    for key in required:
        if key not in data:
            raise Mistake(place, f"the key {key!r} is missing{f'; {remedy}' if remedy else ''}")
    return data


def items(data: Any, place: Place) -> list[Any]:
    """A list."""
    if not isinstance(data, list):
        raise Mistake(place, "expected a list; write it in brackets, with commas: [a, b]")
    return data


def scalar(data: Any, place: Place) -> str | int | float:
    """A single value: text or a number."""
    if isinstance(data, bool) or not isinstance(data, (str, int, float)):
        raise Mistake(place, "expected a single value, not a list or a mapping")
    return data


def word(data: Any, place: Place, words: Sequence[Word]) -> Word:
    """One of some words; an unknown one is refused with the nearest word."""
    for choice in words:
        if data == choice:
            return choice
    near = nearest(data if isinstance(data, str) else "", words)
    raise Mistake(place, f"unknown word {numbers.shown(data)}{near}")


def integer(data: Any, place: Place) -> int:
    """An integer, from text or a number."""
    try:
        return numbers.integer(str(data) if isinstance(scalar(data, place), float) else data)
    except numbers.NumberError as error:
        raise Mistake(place, f"{numbers.shown(data)} is not an integer that a spec may hold: {error}") from None


def number(data: Any, place: Place) -> int | float:
    """An integer or a float, from text or a number."""
    try:
        return numbers.real(scalar(data, place))
    except numbers.NumberError as error:
        raise Mistake(place, f"{numbers.shown(data)} is not a number that a spec may hold: {error}") from None


def boolean(data: Any, place: Place) -> bool:
    """True or false, from text or a truth value."""
    if data in (True, "true"):
        return True
    if data in (False, "false"):
        return False
    raise Mistake(place, f"{numbers.shown(data)} is neither true nor false; write one of them")


def _at(place: Place) -> str:
    text = str(place[0])
    for step in place[1:]:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    return text
