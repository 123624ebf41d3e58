"""Encodings of text files. A line is decoded by itself, so that no byte changes how another line is read.

Text becomes UTF-8 before lines and fields are found in it. A byte that an encoding does not define becomes one that
UTF-8 does not either: the field that holds it has no value, and nothing else changes.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import BinaryIO, final

from hdmm.data.lines import LONGEST_LINE
from hdmm.errors import DataError, nearest
from hdmm.syntax import given

_BYTE_BY_BYTE = (
    *("ascii", "latin-1", "cp1252", "cp437", "cp850", "cp852", "cp858", "cp866", "koi8-r", "koi8-u", "mac-roman"),
    *(f"iso8859-{number}" for number in (*range(2, 12), *range(13, 17))),
    *(f"cp{number}" for number in (874, 1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)),
)
"""Encodings with one byte for each character, the first 128 of them as in ASCII."""
_LINE_BY_LINE = ("shift_jis", "cp932", "euc_jp", "gb2312", "gbk", "gb18030", "big5", "cp950", "euc_kr", "cp949")
"""Encodings with several bytes for some characters, none of which is a line feed."""
_UNIT_BY_UNIT = ("utf-16", "utf-16-le", "utf-16-be")
"""Encodings in which a line feed has two bytes."""
_PLAIN = ("utf-8", "utf-8-sig")
_NAMES = ("utf-8", "latin-1", "windows-1252", "utf-16", "iso-8859-15", *_BYTE_BY_BYTE, *_LINE_BY_LINE)
"""Names that a message may suggest."""

_BLOCK_BYTES = 1 << 20
_HELD_BYTES = 2 * LONGEST_LINE
"""A longer line is decoded in parts: in UTF-8, which takes at least half as many bytes, it is too long for a record."""
_UNDEFINED = "hdmm.undefined"


def read_encoding(name: object) -> str | None:
    """The encoding that a user names, as Python calls it; None for UTF-8, which needs no decoding."""
    try:
        canonical = codecs.lookup(name).name if isinstance(name, str) else ""
    except (LookupError, ValueError):
        canonical = ""
    known = {codecs.lookup(encoding).name for encoding in (*_BYTE_BY_BYTE, *_LINE_BY_LINE, *_UNIT_BY_UNIT)}
    if canonical in _PLAIN:
        return None
    if canonical not in known:
        near = nearest(name.lower() if isinstance(name, str) else "", _NAMES)
        raise DataError(f"{given('encoding', repr(name))}: is not an encoding that text files are read in{near}")
    return canonical


def decoded(file: BinaryIO, encoding: str) -> BinaryIO:
    """The text of a file in UTF-8."""
    return io.BufferedReader(_Decoded(file, encoding), _BLOCK_BYTES)


@final
class _Decoded(io.RawIOBase):
    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._blocks = _blocks(file, encoding)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        """Fill a buffer; 0 at the end of the file."""
        target = memoryview(buffer)  # type: ignore[arg-type]
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _blocks(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """The text in UTF-8, a part at a time, however long its lines are."""
    if encoding in {codecs.lookup(name).name for name in _LINE_BY_LINE}:
        held = b""
        while part := file.read(_BLOCK_BYTES):
            cut = part.rfind(b"\n") + 1 or len(part) * (len(held) > _HELD_BYTES)
            if cut:
                yield b"\n".join(_utf8(line.decode(encoding, _UNDEFINED)) for line in (held + part[:cut]).split(b"\n"))
                held = b""
            held += part[cut:]
        yield _utf8(held.decode(encoding, _UNDEFINED))
        return
    decoder = codecs.getincrementaldecoder(encoding)(_UNDEFINED)
    while part := file.read(_BLOCK_BYTES):
        yield _utf8(decoder.decode(part))
    yield _utf8(decoder.decode(b"", True))


def _utf8(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _undefined(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(_UNDEFINED, _undefined)
