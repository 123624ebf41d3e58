"""Files that hdmm writes and reads back: JSON that begins with its format, size and checksum. Never pickle.

NaN, infinities, duplicate keys, unknown formats and files that are damaged, cut short or oversized are refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from contextlib import suppress
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdmm import scratch
from hdmm.errors import ArtefactError, FaultError
from hdmm.files import already_there, check_new, sync_directory

Integers = NDArray[np.int64]

FORMAT = 1
LARGEST = 1 << 30
_HEADER = 1024
_OPEN, _CLOSE = b', "content":\n', b"\n}\n"
# The one form that is written, whole, so that nothing in a header is ever interpreted.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<(?P<kind>[if])8', 'fortran_order': False, 'shape': \((?P<shape>[0-9]{1,12},|"
    rb"[0-9]{1,12}, [0-9]{1,12})\), \} *\n",
    re.DOTALL,
)


def encode(kind: str, content: Any) -> bytes:
    """The bytes of an artefact; equal content gives equal bytes."""
    payload = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    header = {"hdmm": kind, "format": FORMAT, "bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return json.dumps(header).removesuffix("}").encode() + _OPEN + payload + _CLOSE


def decode(kind: str, data: bytes, name: str) -> Any:
    """The content of an artefact, checked; ``name`` is for messages."""
    head, opened, payload = data.partition(_OPEN)
    header = _json(head + b"}", name) if opened and len(head) <= _HEADER else None
    if not isinstance(header, dict) or "hdmm" not in header:
        raise ArtefactError(f"{name}: is not an hdmm {kind} file; make one with hdmm {kind}")
    if header["hdmm"] != kind:
        raise ArtefactError(f"{name}: is an hdmm {header['hdmm']} file, expected a {kind}")
    if header.get("format") != FORMAT:
        raise ArtefactError(
            f"{name}: has format {header.get('format')}, this version reads {FORMAT}; update hdmm or plan again"
        )
    if set(header) != {"hdmm", "format", "bytes", "sha256"}:
        raise ArtefactError(f"{name}: its header is damaged; make the file again")
    payload, closed = payload.removesuffix(_CLOSE), payload.endswith(_CLOSE)
    if not closed or len(payload) != header["bytes"] or hashlib.sha256(payload).hexdigest() != header["sha256"]:
        raise ArtefactError(f"{name}: is damaged or cut short: its checksum does not match; make the file again")
    return _json(payload, name)


def read(kind: str, path: Path) -> Any:
    """Read and check an artefact; its size is checked first."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ArtefactError(f"{path}: {size} bytes are more than a {kind} file may have ({LARGEST})")
        data = path.read_bytes()
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be read: {error.strerror}") from None
    return decode(kind, data, str(path))


def write(path: Path, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file so that it is there whole or not at all; by default it must not exist yet."""
    if not overwrite:
        check_new(path)
    try:
        sync_directory(path.absolute().parent)  # what cannot be made durable is refused before it is there
        with scratch.directory(beside=path.absolute().parent) as private:
            new = private / "new"
            with open(new, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                os.replace(new, path)
            else:
                os.link(new, path)  # unlike rename, refuses to overwrite
            with suppress(OSError):
                sync_directory(path.absolute().parent)
    except FileExistsError:
        raise already_there(path) from None
    except OSError as error:
        raise FaultError(f"{path}: cannot be written: {error.strerror}") from None


def encode_array(array: NDArray[Any]) -> bytes:
    """Integers, or floating-point numbers, in npy form."""
    buffer = io.BytesIO()
    write_array(buffer, array)
    return buffer.getvalue()


def write_array(file: io.BufferedIOBase, array: NDArray[Any]) -> None:
    """Write integers, or floating-point numbers, in npy form, some at a time."""
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    np.lib.format.write_array(file, np.ascontiguousarray(array, kind), version=(1, 0), allow_pickle=False)


def decode_array(data: bytes, name: str) -> Integers:
    """Integers from npy form; anything else is refused, and nothing is allocated on the word of its header."""
    array = decode_numbers(data, name)
    if array.dtype.kind != "i":
        raise ArtefactError(f"{name}: does not hold an array of integers")
    return array


def decode_numbers(data: bytes, name: str) -> NDArray[Any]:
    """Integers or floating-point numbers from npy form."""
    found = _NPY.match(data)
    if found is None:
        raise ArtefactError(f"{name}: does not hold an array of integers")
    shape = tuple(int(size) for size in found["shape"].split(b",") if size.strip())
    if prod(shape) * 8 != len(data) - found.end():
        raise ArtefactError(f"{name}: does not hold an array of integers")
    kind = f"<{found['kind'].decode()}8"
    return np.frombuffer(data, kind, offset=found.end()).reshape(shape).astype(kind[1:])


def _json(data: bytes, name: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ArtefactError(f"{name}: a key stands twice in its JSON")
        return found

    def number(text: str) -> float:
        if not isfinite(float(text)):
            raise ArtefactError(f"{name}: {text} is not a number that an artefact may hold")
        return float(text)

    try:
        return json.loads(data, object_pairs_hook=pairs, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError):
        raise ArtefactError(f"{name}: is not valid JSON") from None
