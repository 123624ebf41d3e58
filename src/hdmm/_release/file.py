"""Releases as directories: release.json with checksums, the plan, the measurements, and a file per table.

A release is written beside its final place, made durable, and then renamed: it is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from hdmm._artefact import (
    LARGEST,
    decode,
    decode_array,
    decode_numbers,
    encode,
    encode_array,
    read,
)
from hdmm._plan.file import parse, plan_bytes
from hdmm._release.release import Release
from hdmm.errors import ArtefactError, FaultError, InputError
from hdmm.files import check_new, sync_directory, umask
from hdmm.privacy.budget import Budget

if TYPE_CHECKING:
    import pyarrow as pa

_KIND = "release"
_MANIFEST = "release.json"
_PLAN = "plan.hdmm"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    path: str
    bytes: int
    sha256: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    budget: dict[str, str]
    noise: str
    scales: list[str]
    plan: _Stored
    measurements: list[_Stored]
    tables: dict[str, _Stored]


def save(release: Release, directory: Path, format: Literal["parquet", "csv"]) -> None:
    """Write a release to a new directory, whole or not at all."""
    if format not in ("parquet", "csv"):
        raise InputError(f"format={format!r}: expected 'parquet' or 'csv'")
    check_new(directory)
    directory = directory.absolute()
    try:
        sync_directory(directory.parent)  # what cannot be made durable is refused before it is there
        temporary = Path(tempfile.mkdtemp(prefix=".hdmm-", dir=directory.parent))
    except OSError as error:
        raise FaultError(f"{directory}: cannot be written: {error.strerror}") from None
    try:
        (temporary / "tables").mkdir()
        (temporary / "measurements").mkdir()
        plan = _put(temporary, _PLAN, plan_bytes(release.plan))
        measurements = [
            _put(temporary, f"measurements/{index:03d}.npy", encode_array(answers))
            for index, answers in enumerate(release.measurements)
        ]
        tables = {
            name: _put(temporary, f"tables/{index:03d}-{_slug(name)}.{format}", _bytes(table, format))
            for index, (name, table) in enumerate(release.tables(), 1)
        }
        noise = release.plan.calibrate(release.budget)
        budget = {name: str(value) for name, value in vars(release.budget).items() if value is not None}
        content = _File(
            budget=budget,
            noise=noise.kind,
            scales=[str(scale) for scale in noise.scales],
            plan=plan,
            measurements=measurements,
            tables=tables,
        )
        _put(temporary, _MANIFEST, encode(_KIND, content.model_dump()))
        for folder in (temporary / "tables", temporary / "measurements", temporary):
            sync_directory(folder)
        temporary.chmod(0o777 & ~umask())
        os.rename(temporary, directory)  # refuses a directory that holds anything
        with suppress(OSError):
            sync_directory(directory.parent)
    except OSError as error:
        raise FaultError(f"{directory}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def manifest_digest(directory: Path) -> str:
    """What identifies a release that is written: the checksum of its manifest, which holds those of all its files."""
    try:
        return hashlib.sha256((directory / _MANIFEST).read_bytes()).hexdigest()
    except OSError as error:
        raise ArtefactError(f"{directory}: is not a release that can be read: {error.strerror}") from None


def load(directory: Path) -> Release:
    """Read a release, checking every file that it is made of."""
    path = directory / _MANIFEST
    if not path.is_file():
        raise ArtefactError(f"{directory}: is not a release: it has no {_MANIFEST}")
    try:
        file = _File.model_validate(read(_KIND, path))
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ArtefactError(f"{path}: is not a release of this version: {where} is not as expected") from None
    plan = parse(decode("plan", _get(directory, file.plan), str(directory / _PLAN)), str(directory / _PLAN))
    try:
        budget = Budget(**{name: Fraction(value) for name, value in file.budget.items()})
        noise = plan.calibrate(budget)
    except (InputError, ValueError, ArithmeticError, TypeError):
        raise ArtefactError(f"{path}: it states no budget that its plan can have spent") from None
    if file.noise != noise.kind or file.scales != [str(scale) for scale in noise.scales]:
        raise ArtefactError(f"{path}: it states noise that its plan and budget do not give")
    blocks = plan.strategy.blocks
    if len(file.measurements) != len(blocks):
        raise ArtefactError(f"{directory}: its measurements do not fit its plan")
    measurements = []
    for stored, block in zip(file.measurements, blocks, strict=True):
        decode_block = decode_numbers if block.wide else decode_array
        array = decode_block(_get(directory, stored), f"{directory}: {stored.path}")
        if array.shape != (block.queries,) or not np.isfinite(array).all():
            raise ArtefactError(f"{directory}: its measurements do not fit its plan")
        measurements.append(array)
    for stored in file.tables.values():
        _get(directory, stored)
    return Release(plan, budget, tuple(measurements))


def _put(directory: Path, name: str, data: bytes) -> _Stored:
    with open(directory / name, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return _Stored(path=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _get(directory: Path, stored: _Stored) -> bytes:
    parts = PurePosixPath(stored.path).parts
    if not parts or not stored.path.isprintable() or parts[0] == "/" or ".." in parts or stored.bytes > LARGEST:
        raise ArtefactError(f"{directory}: names a file outside itself, or one that is too large")
    path = directory.joinpath(*parts)
    try:
        if path.stat().st_size != stored.bytes:
            raise ArtefactError(f"{path}: is damaged or cut short")
        data = path.read_bytes()
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise ArtefactError(f"{path}: is damaged: its checksum does not match")
    return data


def _bytes(table: pa.Table, format: Literal["parquet", "csv"]) -> bytes:
    sink = io.BytesIO()
    if format == "csv":
        from pyarrow import csv

        csv.write_csv(table, sink)
    else:
        from pyarrow import parquet

        parquet.write_table(table, sink)
    return sink.getvalue()


def _slug(name: str) -> str:
    """A product's name as part of a file name that every system takes."""
    return re.sub(r"[^a-z0-9]+", "-", name.replace("×", "x").lower()).strip("-")[:60] or "table"
