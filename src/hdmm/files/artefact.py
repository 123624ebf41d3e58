"""Files that hdmm writes and reads back: JSON that begins with its format, size and checksum. Never pickle.

NaN, infinities, duplicate keys, unknown formats and files that are damaged, cut short or oversized are refused. A file
is first checked piece by piece, so that JSON that would take too much memory is refused before it is parsed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from math import isfinite, prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hdmm.errors import ArtefactError, FaultError, TooLargeError
from hdmm.files import scratch
from hdmm.files.atomic import already_there, check_new, open_regular, sync_directory
from hdmm.files.structure import Structure
from hdmm.memory.limit import memory_limit, more_memory
from hdmm.numbers import NumberError, integer, real, shown
from hdmm.syntax import either
from hdmm.text import bytes_text, count_text

Integers = NDArray[np.int64]

FORMAT = 1
"""The format that this version writes and reads."""
LARGEST = 1 << 30
"""Most bytes of a file."""
_MAX_HEADER = 1024
"""Most bytes of a header."""
_OPEN = b', "content":\n'
"""What stands between the header and the content."""
_CLOSE = b"\n}\n"
"""What follows the content."""
_SHORT_NUMBER = 40
"""Numbers of at most this many characters are parsed without further checks."""
_PIECE = 1 << 20
"""Bytes that are in memory while a file is only checked."""
_FREE_MEMORY = 1 << 26
"""Bytes that reading a file may always take, whatever the limit."""
_FREE_VALUES = 1 << 21
"""Values of JSON that a plan may always have, however short it is."""
_MOST = {"plan": (1 << 20, 1 << 20, 1 << 23), "release": (1 << 20, 8, 1 << 22)}
"""Most objects, lists and values of a file's JSON. A plan has, for each of at most 2**18 products, two objects and
their attributes, and for each block an object, two lists and the attributes again. A release has one object per file.
"""
# The whole header of the one npy form that is written: nothing in a header is ever interpreted.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<(?P<kind>[if])8', 'fortran_order': False, 'shape': \((?P<shape>[0-9]{1,12},|"
    rb"[0-9]{1,12}, [0-9]{1,12})\), \} *\n",
    re.DOTALL,
)


def encode(kind: str, content: Any) -> bytes:
    """The bytes of an artefact; equal content gives equal bytes."""
    payload = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    structure = Structure()
    for start in range(0, len(payload), _PIECE):
        structure.add(payload[start : start + _PIECE])
    try:
        _check_structure(kind, structure, f"this {kind}")
    except ArtefactError as error:  # it could not be read back
        raise TooLargeError(str(error)) from None
    header = {"hdmm": kind, "format": FORMAT, "bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return json.dumps(header).removesuffix("}").encode() + _OPEN + payload + _CLOSE


def decode(kind: str, data: bytes, name: str) -> Any:
    """The content of an artefact, checked; ``name`` is for messages."""
    return _read(kind, io.BytesIO(data), len(data), name)


def read(kind: str, path: Path, digest: str | None = None) -> Any:
    """Read and check an artefact; if a SHA-256 digest is given, the whole file must have it."""
    try:
        with open_regular(path) as (file, size):
            if size > LARGEST:
                raise ArtefactError(f"{path}: {size} bytes are more than a {kind} file may have ({LARGEST})")
            return _read(kind, file, size, str(path), digest)
    except FileNotFoundError:
        raise ArtefactError(f"{path}: there is no such file; check the path of the {kind}") from None
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be read: {error.strerror}; give the path of a {kind} file") from None


def _read(kind: str, file: BinaryIO, size: int, name: str, digest: str | None = None) -> Any:
    """Read the header, then the payload: once to check it and once to parse it."""
    head, opened, _ = file.read(_MAX_HEADER + len(_OPEN)).partition(_OPEN)
    header = _check_header(kind, _json(head + b"}", name) if opened and len(head) <= _MAX_HEADER else None, name)
    start = len(head) + len(_OPEN)
    length = size - start - len(_CLOSE)
    damaged = ArtefactError(f"{name}: is damaged or cut short: its checksum does not match; make the file again")
    if length < 0 or length != header["bytes"]:
        raise damaged
    whole, payload, structure = hashlib.sha256(head + _OPEN), hashlib.sha256(), Structure()
    file.seek(start)
    for piece in _pieces(file, length):
        whole.update(piece)
        payload.update(piece)
        structure.add(piece)
        _check_structure(kind, structure, name)
    closing = file.read(len(_CLOSE))
    whole.update(closing)
    if closing != _CLOSE or payload.hexdigest() != header["sha256"] or digest not in (None, whole.hexdigest()):
        raise damaged
    file.seek(start)
    content = file.read(length)
    if hashlib.sha256(content).hexdigest() != header["sha256"]:  # it was changed while it was read
        raise damaged
    return _json(content, name)


def _remedy(kind: str, name: str) -> str:
    """What to give in place of a file that hdmm did not write."""
    if kind == "plan" and name.endswith((".yaml", ".yml")):
        return either(
            python="a spec is loaded with hdmm.Spec.load, and hdmm.select makes a plan of its workload",
            command=f"if it is a spec, make a plan of it first: hdmm plan {shlex.quote(name)}",
        )
    if kind == "plan":
        return either(
            python="make one with hdmm.select and plan.save",
            command="give the plan, before any data; make one with hdmm plan",
        )
    return either(python="make one with hdmm.release", command=f"make one with hdmm {kind}")


def _check_header(kind: str, header: Any, name: str) -> dict[str, Any]:
    """The header of a file; refuse anything but a file of this kind and format."""
    if not isinstance(header, dict) or "hdmm" not in header:
        raise ArtefactError(f"{name}: is not an hdmm {kind} file; {_remedy(kind, name)}")
    if header["hdmm"] != kind:
        other = shown(header["hdmm"]).strip("'")
        raise ArtefactError(f"{name}: is an hdmm {other} file, expected a {kind}")
    if header.get("format") != FORMAT:
        other = shown(header.get("format")).strip("'")
        raise ArtefactError(f"{name}: has format {other}, this version reads {FORMAT}; update hdmm or plan again")
    if set(header) != {"hdmm", "format", "bytes", "sha256"}:
        raise ArtefactError(f"{name}: its header is damaged; make the file again")
    return header


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length and (piece := file.read(min(length, _PIECE))):
        length -= len(piece)
        yield piece


def _check_structure(kind: str, structure: Structure, name: str) -> None:
    """Refuse JSON that no file of this kind holds, or that would not fit into memory."""
    objects, lists, values = _MOST["release" if kind == "release" else "plan"]  # checkpoints hold plans
    if kind == "release":  # nearly every object is a file with its checksum: about 100 bytes
        objects, values = min(objects, structure.bytes // 96 + 64), min(values, structure.bytes // 24 + 64)
    else:  # beside tables of numbers, a value is an attribute or a word
        values = min(values, structure.bytes // 12 + _FREE_VALUES)
    for count, most, word in (
        (structure.objects, objects, "objects"),
        (structure.lists, lists, "lists"),
        (structure.values, values, "values"),
    ):
        if count > most:
            raise ArtefactError(
                f"{name}: has more than {count_text(most)} {word} of JSON, which no {kind} needs; ask for fewer "
                "products, values or ranges"
            )
    if structure.memory > max(memory_limit(), _FREE_MEMORY):
        raise TooLargeError(
            f"{name}: takes about {bytes_text(structure.memory)} to read; the limit is {bytes_text(memory_limit())}: "
            f"plan for fewer products{more_memory()}"
        )


def write(path: Path, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file whole or not at all; by default it must not exist yet."""
    if not overwrite:
        check_new(path)
    try:
        sync_directory(path.absolute().parent)  # fails before anything is written if nothing can be made durable
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
    """Integers or floats in npy form."""
    buffer = io.BytesIO()
    write_array(buffer, array)
    return buffer.getvalue()


def write_array(file: io.BufferedIOBase, array: NDArray[Any]) -> None:
    """Write integers or floats in npy form, some at a time."""
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    np.lib.format.write_array(file, np.ascontiguousarray(array, kind), version=(1, 0), allow_pickle=False)


def decode_array(data: bytes, name: str) -> Integers:
    """Integers from npy form; anything else is refused, and no memory is allocated because a header asks for it."""
    array = decode_numbers(data, name)
    if array.dtype.kind != "i":
        raise ArtefactError(f"{name}: does not hold an array of integers")
    return array


def decode_numbers(data: bytes, name: str) -> NDArray[Any]:
    """Integers or floats from npy form."""
    header = _NPY.match(data)
    shape = tuple(int(size) for size in header["shape"].split(b",") if size.strip()) if header else ()
    if header is None or prod(shape) * 8 != len(data) - header.end():
        raise ArtefactError(f"{name}: does not hold an array of integers or floats in npy form")
    kind = f"{header['kind'].decode()}8"
    return np.frombuffer(data, f"<{kind}", offset=header.end()).reshape(shape).astype(kind)


def _json(data: bytes, name: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(items)
        if len(entries) != len(items):
            raise ArtefactError(f"{name}: a key stands twice in its JSON")
        return entries

    def number(text: str) -> float:
        value = float(text) if len(text) <= _SHORT_NUMBER else float(real(text))
        if not isfinite(value):
            raise ArtefactError(f"{name}: {text} is not a number that an artefact may hold")
        return value

    def whole(text: str) -> int:
        return int(text) if len(text) <= _SHORT_NUMBER else integer(text)

    try:
        return json.loads(data, object_pairs_hook=pairs, parse_float=number, parse_int=whole, parse_constant=number)
    except NumberError as error:
        raise ArtefactError(f"{name}: {error}; make the file again") from None
    except (ValueError, RecursionError):
        raise ArtefactError(f"{name}: is not valid JSON") from None
