"""Every field gets its own text back, whatever the bytes."""

from __future__ import annotations

from itertools import chain, permutations, product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hdmm.data.fields import PADDING, distinct


def texts_of(fields: list[bytes]) -> tuple[list[bytes], int]:
    lengths = np.array([len(field) for field in fields], np.int64)
    ends = np.cumsum(lengths)
    texts, which = distinct(b"".join(fields) + PADDING, ends - lengths, ends)
    return [texts[number] for number in which], len(texts)


@given(st.lists(st.lists(st.sampled_from([b"\0", b"a", b"\x07", b"1234567"]), max_size=8).map(b"".join), max_size=30))
@example([b"", b"\0", b"\0" * 7, b"\0" * 8, b"\0" * 35, b"\0" * 36])
@example([b"a" * 36, b"b" * 36, b"a" * 36])
@example([b"1234567", b"1234567\0", b"12345671234567", b"1234567\x07", b"7654321\0"])
def test_every_field_is_found_again(fields: list[bytes]) -> None:
    assert texts_of(fields)[0] == fields


def test_every_pair_of_short_fields_is_told_apart() -> None:
    fields = [bytes(pair) for pair in product(range(256), repeat=2)] + [bytes([byte]) for byte in range(256)]
    assert texts_of(fields)[0] == fields


def test_repeated_texts_are_looked_at_once() -> None:
    pairs = permutations([b"a", b"bc", b"\0", b"a label of 24 bytes, say"], 2)
    assert texts_of(list(chain.from_iterable(pairs)) * 100)[1] < 10
