"""Counts what JSON holds before it is parsed: a few bytes of brackets become hundreds of bytes of objects."""

from __future__ import annotations

from typing import final

import numpy as np

# Bytes of memory for each object, list and value, and for each byte of text, which is decoded and copied.
_OBJECT = 200
_LIST = 88
_VALUE = 60
_BYTE = 3


@final
class Structure:
    """Counts the objects, lists and further values of JSON outside its texts, piece by piece."""

    def __init__(self) -> None:
        self.bytes = self.objects = self.lists = self.values = 0
        self._inside = False
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Count one more piece."""
        self.bytes += len(piece)
        # A run of backslashes is pairs from its left; an odd one belongs to what follows, maybe in the next piece.
        piece = (self._rest + piece).replace(b"\\\\", b"__")
        self._rest = b"\\" if piece.endswith(b"\\") else b""
        piece = piece.removesuffix(b"\\").replace(b'\\"', b"__")
        if b'"' not in piece and self._inside:
            return
        marks = np.frombuffer(piece, np.uint8)
        if b'"' in piece:
            inside = np.logical_xor.accumulate(marks == ord('"')) ^ self._inside
            self._inside = bool(inside[-1])
            marks = marks[~inside]
        self.objects += int(np.count_nonzero(marks == ord("{")))
        self.lists += int(np.count_nonzero(marks == ord("[")))
        self.values += int(np.count_nonzero(marks == ord(",")))

    @property
    def memory(self) -> int:
        """About how many bytes the parsed JSON takes, with its text."""
        return _BYTE * self.bytes + _OBJECT * self.objects + _LIST * self.lists + _VALUE * self.values
