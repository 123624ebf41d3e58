"""How an attribute's values are written, described independently of hdmm: options, what they read, how to use them."""

from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from string import digits
from typing import Any

_MISSING = ("NA", "n/a", "-9", "-9.5", ".", "99999")
_ALIASES = ("Ä1", "maSS", "x9", "other name", "0x1", "it’s")
_BLANKS = " \t\u00a0\u202f"


@dataclass(frozen=True)
class Options:
    """The options of an attribute; an empty one is not declared."""

    missing: tuple[str, ...] = ()
    decimals: bool = False
    ignore_case: bool = False
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    thousands: str = ""
    point: str = ""
    currency: str = ""

    def data(self) -> dict[str, Any]:
        """The options as a spec holds them."""
        held: dict[str, Any] = {name: getattr(self, name) for name in ("thousands", "point", "currency")}
        held |= {name: getattr(self, name) for name in ("decimals", "ignore_case")}
        held |= {"aliases": {value: list(texts) for value, texts in self.aliases}, "labels": dict(self.labels)}
        held["missing"] = list(self.missing)
        return {name: value for name, value in held.items() if value}

    def code(self) -> str:
        """The options as arguments in Python."""
        return "".join(f", {name}={value!r}" for name, value in self.data().items())

    def fold(self, text: str) -> str:
        """What is compared of a text."""
        return text.casefold() if self.ignore_case else text

    def listed(self, values: tuple[str, ...], text: str) -> int | None:
        """The place of the value that a text means."""
        names = {self.fold(alias): value for value, texts in self.aliases for alias in texts}
        folded = [self.fold(value) for value in values]
        meant = self.fold(names.get(self.fold(text), text))
        return folded.index(meant) if meant in folded else None

    def absent(self, text: str, numeric: bool) -> bool:
        """Whether a text means a missing value."""
        if self.fold(text) in {"", *map(self.fold, self.missing)}:
            return True
        number = self.number(text) if numeric else None
        return number is not None and number in [self.number(one) for one in self.missing]

    def number(self, text: str) -> Decimal | None:
        """The number that a text means."""
        if self.currency and self.currency in text:
            before, _, after = text.partition(self.currency)
            head, tail = before.rstrip(_BLANKS), after.lstrip(_BLANKS)
            if head in ("", "+", "-") and tail[:1] not in ("+", "-")[: 2 * bool(head)] and tail:
                text = head + tail
            elif head and not after:
                text = head
            else:
                return None
        sign, text = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
        mantissa, mark, exponent = text.replace("E", "e").partition("e")
        power = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if mark and not (1 <= len(power) <= 3 and _plain(power)):
            return None
        point = self.point or ("." if self.thousands != "." else "")
        whole, _, fraction = mantissa.partition(point) if point else (mantissa, "", "")
        if self.thousands and self.thousands in whole:
            first, *groups = whole.split(self.thousands)
            if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
                return None
            whole = first + "".join(groups)
        if not _plain(whole + fraction) or not whole + fraction:
            return None
        return Decimal(f"{sign}{whole or '0'}.{fraction or '0'}{mark}{exponent}")

    def integer(self, text: str) -> int | None:
        """The integer that a text means."""
        number = self.number(text)
        if number is None or number != number.to_integral_value():
            return None
        point = self.point or "."
        plain = self.currency == "" or self.currency not in text
        bare = text if plain else text.replace(self.currency, "")
        fractional = "e" in bare.lower() or (point in bare and point != self.thousands)
        return None if fractional and not self.decimals else int(number)

    @property
    def unusual(self) -> list[str]:
        """Texts that mean something only by these options, or nothing although they look like it."""
        texts = [*self.missing, *(["-9.0", "-90e-1"] if "-9" in self.missing else [])]
        texts += [f"0{self.point or '.'}5", f"1{self.point or '.'}0001"] if self.decimals else []
        texts += [f"1{self.thousands}5", f"10{self.thousands}00", f"{self.thousands}100"] if self.thousands else []
        texts += [self.currency, f"{self.currency}1{self.currency}"] if self.currency else []
        return texts

    def spelt(self, rng: Random, kind: str, text: str) -> str:
        """A declared value, written in one of the ways that the options allow."""
        if kind == "listed":
            ways = [text, *(alias for value, texts in self.aliases if value == text for alias in texts)]
            way = rng.choice(ways)
            return rng.choice((way, way.upper(), way.lower())) if self.ignore_case else way
        sign, digits_only = ("-", text[1:]) if text.startswith("-") else ("", text)
        whole, dot, fraction = digits_only.partition(".")
        if self.thousands and rng.random() < 0.5:
            padded = whole.zfill(-(-len(whole) // 3) * 3) if rng.random() < 0.3 else whole
            first = len(padded) % 3 or 3
            groups = [padded[:first], *(padded[at : at + 3] for at in range(first, len(padded), 3))]
            whole = self.thousands.join(groups)
        written = whole + (self.point or ".") * bool(dot) + fraction
        if kind == "integers" and self.decimals and rng.random() < 0.5:
            written += (self.point or ".") + rng.choice(("", "0", "000"))
        match rng.choice((0, 1, 2, 3)) if self.currency else 0:
            case 1:
                return f"{sign}{self.currency}{written}"
            case 2:
                return f"{self.currency} {sign}{written}"
            case 3:
                return f"{sign}{written}\u00a0{self.currency}"
        return sign + written


PLAIN = Options()


def _plain(text: str) -> bool:
    return all(mark in digits for mark in text)


def random_options(rng: Random, kind: str, values: tuple[str, ...], missing: bool) -> Options:
    """Options that fit an attribute of a kind with these values."""
    options = Options()
    if rng.random() < 0.3:
        return options
    if kind == "listed":
        ignore = len({value.casefold() for value in values}) == len(values) and rng.random() < 0.5
        spare = rng.sample(_ALIASES, 3)
        given = {value: (spare.pop(),) for value in values if spare and rng.random() < 0.3}
        options = Options(ignore_case=ignore, aliases=tuple(given.items()), labels=_labels(rng, values))
    elif kind in ("integers", "bins"):
        decimals = kind == "integers" and rng.random() < 0.7
        point = rng.choice(("", ",")) if decimals or kind == "bins" else ""
        marks = {"'", " ", "_", "," if not point else "", "." if point or (kind == "integers" and not decimals) else ""}
        thousands = rng.choice(sorted(marks))
        numbers = tuple(map(str, range(int(values[0]), int(values[1]) + 1))) if kind == "integers" else ()
        options = Options(
            decimals=decimals,
            labels=_labels(rng, numbers),
            thousands=thousands,
            point=point,
            currency=rng.choice(("", "$", "€", "kr")),
        )
    return replace(options, missing=tuple(rng.sample(_MISSING, 2)) if missing else ())


def _labels(rng: Random, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((value, f"label of {value}".replace(",", ";")) for value in values if rng.random() < 0.2)
