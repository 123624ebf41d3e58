"""Every text has exactly one cell, or is outside, whatever its bytes and whatever texts stand beside it."""

import decimal
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import SchemaError
from hdmm.schema import OUTSIDE, Bins, Boolean, Domain, Integers, Listed
from hdmm.schema.text import floors

INTEGER = re.compile(rb"[+-]?[0-9]+")
DECIMAL = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
EDGES = ["-2.5", "-0.1", "0", "0.1", "1", "2.5", "1000"]
VALUES = ["F", "M", "01", "1", "No", "é", "two words", "x\ty", '"', "NaN"]


def listed(text: bytes) -> int | None:
    texts = [value.encode() for value in VALUES]
    return texts.index(text) if text in texts else None


def integer(low: int, high: int) -> Callable[[bytes], int | None]:
    def find(text: bytes) -> int | None:
        return int(text) - low if INTEGER.fullmatch(text) and low <= int(text) <= high else None

    return find


def boolean(text: bytes) -> int | None:
    words = {b"true": 1, b"t": 1, b"yes": 1, b"1": 1, b"false": 0, b"f": 0, b"no": 0, b"0": 0}
    return words.get(bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in text))


def binned(edges: list[str], closed: bool) -> Callable[[bytes], int | None]:
    def find(text: bytes) -> int | None:
        if not DECIMAL.fullmatch(text):
            return None
        number = Decimal(text.decode())
        for code in range(len(edges) - 1):
            if Decimal(edges[code]) <= number < Decimal(edges[code + 1]):
                return code
        return len(edges) - 2 if closed and number == Decimal(edges[-1]) else None

    return find


def kinds(**extra: Any) -> dict[str, tuple[Domain, int, Callable[[bytes], int | None]]]:
    """Each kind of domain with the number of its declared cells and a slow reading of one trimmed text."""
    return {
        "listed": (Listed(VALUES, **extra), len(VALUES), listed),
        "integers": (Integers(-2, 114, **extra), 117, integer(-2, 114)),
        "wide integers": (
            Integers(-(2**60) + 1, 2**60 - 1, **extra),
            2**61 - 1,
            integer(-(2**60) + 1, 2**60 - 1),
        ),
        "boolean": (Boolean(**extra), 2, boolean),
        "bins": (Bins(EDGES, **extra), len(EDGES) - 1, binned(EDGES, False)),
        "closed bins": (Bins(EDGES, closed=True, **extra), len(EDGES) - 1, binned(EDGES, True)),
        "whole bins": (Bins([0, 1, 10**17], **extra), 2, binned(["0", "1", "1e17"], False)),
        "fine bins": (
            Bins(["0", "0.000000000001", "999999"], **extra),
            2,
            binned(["0", "0.000000000001", "999999"], False),
        ),
    }


def slow_code(text: bytes, declared: int, find: Callable[[bytes], int | None], other: bool, missing: bool) -> int:
    text = text.strip(b" \t\r")
    found = find(text)
    if found is not None:
        return found
    if not text and missing:
        return declared + other
    return declared if other else OUTSIDE


NASTY = [
    # Blanks, and bytes that look like blanks to Python but are not trimmed.
    *[b"", b" ", b"\t\r ", b"\0", b"5\0", b"\0005", b" 5 ", b"\t5\r", b"\n5", b"5\n", b"5\x0b", b"\xc2\xa05", b"- 5"],
    *[b"two words", b"two  words", b"x\ty", b"1 0", b"\xff\xfe", b"\xe9", b"e\xcc\x81", b"\xc5\xbfo"],
    *"٣ ５ ² 1٣ −5 é É".encode().split(),
    *b"5 +5 -5 +-5 --5 + - 5- 1_0 0x10 5.0 5. .5 . 007 -0 +0 -00 1,5 1.2.3 ..1 nan NaN inf -inf Infinity".split(),
    *[b"0" * 23 + b"5", b"0" * 24 + b"5", b"-" + b"0" * 100 + b"1", b"1" * 18, b"9" * 18, b"1" * 19, b"9" * 19],
    # At and beyond ±2⁶⁰, 2⁶², 2⁶³ and 2⁶⁴.
    *b"1152921504606846975 -1152921504606846975 1152921504606846976 4611686018427387904 9223372036854775808".split(),
    *[b"18446744073709551621", b"9" * 30, b"-" + b"9" * 30],
    *b"1e2 1E2 1e+2 1e-2 1e e1 1e1.0 1e0002 1e999 -1e999 1e-999 -1e-999 0e999 1.e1 .e1 1e5e5".split(),
    # At and beside the edges of bins.
    *b"0.1 0.10 .1 1e-1 10e-2 0.0999999999999999999 0.09999999999999999999999999999999 -0.1".split(),
    *b"-0.10000000000000000001 0.1000000000000000055511151231257827 0.000000000001 0.0000000000009999999".split(),
    *[b"0.1" + b"0" * 40, b"0.1" + b"0" * 40 + b"1"],
    *b"2.5 2.4999999999999999999 2.5000000000000000001 25e-1 -2.5 -2.50000000000000000001 1000 1e3".split(),
    *b"1000.0000000000000000000000001 999.99999999999999999999999".split(),
    *b'true TRUE tRuE T yes Y 1 0 no NO No false F on tru 01 " ""'.split(),
]


@st.composite
def near_an_edge(draw: st.DrawFn) -> bytes:
    """A number that differs from an edge far behind the point, in one of its spellings."""
    edge = Decimal(draw(st.sampled_from(EDGES)))
    number = edge + draw(st.sampled_from([-1, 0, 1])) * Decimal(1).scaleb(-draw(st.integers(0, 26)))
    shift = draw(st.integers(-3, 3))
    text = draw(st.sampled_from([f"{number:f}", f"{number.scaleb(shift):f}e{-shift}", f"{number:E}"]))
    return (draw(st.sampled_from(["", " ", "0"])) + text + draw(st.sampled_from(["", "\t", "\r"]))).encode()


def spelled(alphabet: bytes) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from([bytes([byte]) for byte in alphabet]), max_size=30).map(b"".join)


TEXTS = st.lists(
    st.one_of(
        st.sampled_from(NASTY),
        near_an_edge(),
        spelled(b"+-0123456789.eE \t\r\0"),
        spelled(b"0123456789"),
        spelled(b"tTrRuUeEyYsSfFaAlLnNoO10"),
        st.integers(-(10**30), 10**30).map(lambda number: str(number).encode()),
        st.integers(-5, 120).map(lambda number: b"%+04d" % number),
        st.sampled_from(VALUES).map(str.encode),
        st.binary(max_size=30),
        st.text(max_size=5).map(str.encode),
    ),
    max_size=20,
)

EXTRAS = [{"other": other, "missing": missing} for other in (False, True) for missing in (False, True)]


@pytest.mark.parametrize("kind", kinds())
@given(texts=TEXTS, extra=st.sampled_from(EXTRAS))
def test_encoding_agrees_with_a_slow_reading_of_each_text(
    kind: str, texts: list[bytes], extra: dict[str, bool]
) -> None:
    domain, declared, find = kinds(**extra)[kind]
    assert domain.encode(texts).tolist() == [slow_code(text, declared, find, **extra) for text in texts]


@pytest.mark.parametrize("extra", EXTRAS, ids=["plain", "missing", "other", "other and missing"])
@pytest.mark.parametrize("kind", kinds())
def test_every_nasty_text_has_its_cell_or_is_outside(kind: str, extra: dict[str, bool]) -> None:
    domain, declared, find = kinds(**extra)[kind]
    found = dict(zip(NASTY, domain.encode(NASTY).tolist(), strict=True))
    assert found == {text: slow_code(text, declared, find, **extra) for text in NASTY}


@pytest.mark.parametrize("kind", kinds())
def test_a_text_is_encoded_by_itself(kind: str) -> None:
    domain, _, _ = kinds(other=True, missing=True)[kind]
    together = domain.encode(NASTY).tolist()
    assert [int(domain.encode([text])[0]) for text in NASTY] == together


@pytest.mark.parametrize("kind", kinds())
def test_codes_have_64_bits_even_of_nothing(kind: str) -> None:
    domain, _, _ = kinds()[kind]
    assert (domain.encode([]).dtype, domain.encode([b"1"]).dtype) == (np.dtype(np.int64), np.dtype(np.int64))


@pytest.mark.parametrize("kind", ["listed", "integers", "boolean", "bins", "closed bins"])
def test_cells_are_declared_values_then_other_then_missing(kind: str) -> None:
    domain, declared, _ = kinds(other=True, missing=True)[kind]
    assert domain.encode([b"nothing like it", b""]).tolist() == [declared, declared + 1]


def test_a_label_of_a_listed_value_or_integer_is_a_text_of_its_cell() -> None:
    for domain in (Listed(VALUES), Integers(-2, 114), Boolean()):
        texts = [str(label).encode() for label in domain.labels()]
        assert domain.encode(texts).tolist() == list(range(domain.size))


def test_listed_values_are_trimmed_of_the_same_blanks_as_fields() -> None:
    value = "\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}"
    assert Listed([f" {value}\t"]).encode([value.encode(), b"x"]).tolist() == [0, OUTSIDE]


@pytest.mark.parametrize("text", [b"-1e-999", b"-0.00000000000000000000000000001"])
def test_a_number_just_below_an_edge_is_below_it_however_close(text: bytes) -> None:
    assert Bins([-1, 0, 1]).encode([text, b"-0", b"0"]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("size", [4096, 4097, 1_000_000])
def test_a_number_of_more_than_4096_bytes_is_outside(size: int) -> None:
    text = b"5".rjust(size, b"0")
    expected = [0] if size <= 4096 else [OUTSIDE]
    assert (Integers(5, 6).encode([text]).tolist(), Bins([5, 6]).encode([text]).tolist()) == (expected, expected)


def test_a_changed_decimal_context_does_not_move_an_edge() -> None:
    texts = [b"0.0999999999999999999999999999999", b"0.1" + b"0" * 40, b"9" * 30]
    with decimal.localcontext() as context:
        context.prec = 2
        context.traps[decimal.Inexact] = True
        assert Bins(EDGES).encode(texts).tolist() == [2, 3, OUTSIDE]


def documented(kind: str) -> re.Pattern[bytes]:
    """The regular expression that docs/data.md gives."""
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    (pattern,) = re.findall(rf"^{kind}: (.*)$", text, re.MULTILINE)
    return re.compile(pattern.encode())


@given(
    st.lists(
        st.one_of(
            st.from_regex(documented("decimal"), fullmatch=True),
            st.from_regex(rb"[+-]{0,2}[0-9]{0,25}[.]{0,2}[0-9]{0,25}([eE][+-]?[0-9]{0,4})?[ _x]?", fullmatch=True),
            st.text("0123456789+-.eE_ \t\0٣", max_size=8).map(str.encode),
        ),
        min_size=1,
    )
)
def test_numbers_are_read_as_the_documentation_says(texts: list[bytes]) -> None:
    for kind, point in (("decimal", True), ("integer", False)):
        valid, _, _ = floors(texts, 3, point=point)
        assert valid.tolist() == [documented(kind).fullmatch(text) is not None for text in texts]


@pytest.mark.parametrize("edge", ["1_000", "٣", "1e1000", "0x10", "1 0"])
def test_an_edge_is_a_decimal_as_texts_are(edge: str) -> None:
    with pytest.raises(SchemaError, match="expected a decimal number"):
        Bins([0, edge, 10**6])
