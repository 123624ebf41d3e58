"""The few distinct texts among the many fields of a column.

A column has few distinct texts, so it is enough to look at one field of each. Fields are compared as 64-bit words that
hold seven bytes of text and, in the eighth, how many of the seven are there: two fields are the same exactly if their
words are, whatever bytes they hold. A longer field takes several words, and the distinct pairs of a word and the next
are numbered in turn. No two texts are ever taken for each other because a hash is equal.

Arrow can number texts directly, but its hash of longer texts is easily made to collide, and then takes quadratic time.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdmm.data.lines import Positions

PADDING = bytes(8)
"""Follows the last field, so that a word can be read from any place in it."""

_SPAN = 7
"""Bytes of text in a word."""
_MAX_NUMBERED = 5 * _SPAN
"""Bytes of the longest fields that are compared by words; longer ones are rare, and are taken one by one."""

# In the machine's byte order: keep the first n bytes of a word, and put n into its last byte.
_KEEP = np.array([int.from_bytes(b"\xff" * n + bytes(8 - n), sys.byteorder) for n in range(8)], np.uint64)
_SIZE = np.array([int.from_bytes(bytes([0, 0, 0, 0, 0, 0, 0, n]), sys.byteorder) for n in range(8)], np.uint64)


class Distinct(NamedTuple):
    """Texts, a few of which may repeat, and for every field the position of its text among them."""

    texts: list[bytes]
    which: NDArray[np.int32]


def distinct(data: bytes, begin: Positions, end: Positions) -> Distinct:
    """The texts of the fields ``data[begin:end]``; ``data`` ends with :data:`PADDING`."""
    length = end - begin
    words = np.ndarray(len(data) - len(PADDING) + 1, np.uint64, data, strides=(1,))
    which, count = _number(_words(words, begin, length))
    for offset in range(_SPAN, min(int(length.max(initial=0)), _MAX_NUMBERED), _SPAN):
        longer = np.flatnonzero(length > offset)
        following, followings = _number(_words(words, begin[longer] + offset, length[longer] - offset))
        pairs, added = _number(which[longer].astype(np.int64) * followings + following)
        which[longer] = count + pairs
        count += added
    longest = np.flatnonzero(length > _MAX_NUMBERED)
    which[longest] = count + np.arange(len(longest))
    # One field for each number; if no field has a number any more, because longer fields got new ones, any will do.
    example = np.zeros(count + len(longest), np.int64)
    example[which] = np.arange(len(which))
    return Distinct([data[a:b] for a, b in zip(begin[example].tolist(), end[example].tolist(), strict=True)], which)


def _words(words: NDArray[np.uint64], begin: Positions, length: Positions) -> NDArray[np.uint64]:
    """The first seven bytes from ``begin``, and how many of them belong to the field."""
    size = np.minimum(length, _SPAN)
    return (words[begin] & _KEEP[size]) | _SIZE[size]


def _number(keys: NDArray[np.int64] | NDArray[np.uint64]) -> tuple[NDArray[np.int32], int]:
    """Number the distinct keys from 0: the number of each key, and the number of distinct keys."""
    import pyarrow as pa

    # By buffers and dlpack, because pa.array and to_numpy import pandas, which takes a second.
    kind = pa.from_numpy_dtype(keys.dtype)
    encoded = pa.Array.from_buffers(kind, len(keys), [None, pa.py_buffer(keys)]).dictionary_encode()
    return np.from_dlpack(encoded.indices).astype(np.int32), len(encoded.dictionary)
