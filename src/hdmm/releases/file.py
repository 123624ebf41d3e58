"""Releases as directories: release.json with checksums, the plan, the measurements, and a file per table.

A release is written beside its final place, made durable, and then renamed: it is there whole or not at all. Tables are
computed, written and checked some rows at a time: only the answers to one product must fit in memory.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from hdmm.errors import ArtefactError, FaultError, InputError
from hdmm.files import scratch
from hdmm.files.artefact import LARGEST, decode_array, decode_numbers, encode, read, write_array
from hdmm.files.atomic import OversizedError, check_new, read_regular, sync_directory
from hdmm.files.model import Model
from hdmm.plans import Plan
from hdmm.plans.file import budget_data, parse, plan_bytes, read_budget
from hdmm.plans.footprint import unlisted
from hdmm.privacy.budget import Budget
from hdmm.progress import OnProgress, stage
from hdmm.releases.estimates import Estimates
from hdmm.releases.options import TableOptions
from hdmm.releases.present import Digits, check_digits
from hdmm.releases.stored import HEADER, Stored, check, check_size, get, locate, put, sync_file
from hdmm.releases.write import Format, check_format, write_table

_KIND = "release"
_MANIFEST = "release.json"
_PLAN = "plan.hdmm"
_MAX_EXTRA_BYTES = 1 << 12
"""A file of measurements that is longer by this much is still read, so that the error can name the mismatch."""
_SYNC_THREADS = 8
"""Files that are made durable at a time: a disk is much quicker with several than with one after the other."""


class _File(Model):
    budget: dict[str, str]
    noise: str
    scales: list[str]
    plan: Stored
    measurements: list[Stored]
    tables: dict[str, Stored]


def save(
    estimates: Estimates,
    directory: Path,
    format: Format,
    digits: Digits = "meaningful",
    on_progress: OnProgress | None = None,
) -> None:
    """Write a release to a new directory, whole or not at all."""
    check_format(format)
    check_digits(digits)
    _whole(directory, lambda folder: _fill(folder, estimates, format, digits, on_progress))


def save_tables(
    estimates: Estimates,
    directory: Path,
    options: TableOptions,
    format: Format,
    digits: Digits = "meaningful",
    on_progress: OnProgress | None = None,
) -> None:
    """Write every table, with these options, to a new directory, whole or not at all."""
    check_format(format)
    check_digits(digits)
    _whole(directory, lambda folder: _tables(folder, estimates, options, format, digits, on_progress))


def _whole(directory: Path, fill: Callable[[Path], object]) -> None:
    """Fill a new directory beside its place, make it durable, and then rename it."""
    check_new(directory)
    directory = directory.absolute()
    try:
        sync_directory(directory.parent)  # refuse early what cannot be made durable
        with scratch.directory(beside=directory.parent) as private:
            new = private / "new"
            new.mkdir()
            fill(new)
            with ThreadPoolExecutor(_SYNC_THREADS) as pool:
                list(pool.map(sync_file, [path for path in new.rglob("*") if path.is_file()]))
            for folder in (*(path for path in new.iterdir() if path.is_dir()), new):
                sync_directory(folder)
            os.rename(new, directory)  # refuses a directory that holds anything
            with suppress(OSError):
                sync_directory(directory.parent)
    except OSError as error:
        raise FaultError(f"{directory}: cannot be written: {error.strerror or error}") from None


def _fill(
    directory: Path, estimates: Estimates, format: Format, digits: Digits, on_progress: OnProgress | None
) -> None:
    """Write all files of a release, the manifest last."""
    (directory / "tables").mkdir()
    (directory / "measurements").mkdir()
    plan = put(directory, _PLAN, lambda file: file.write(plan_bytes(estimates.plan)))
    measurements = [
        put(directory, f"measurements/{index:03d}.npy", partial(write_array, array=array))
        for index, array in enumerate(estimates.measurements)
    ]
    written = _tables(directory / "tables", estimates, estimates.usual, format, digits, on_progress)
    tables = {name: stored.model_copy(update={"path": f"tables/{stored.path}"}) for name, stored in written.items()}
    noise = estimates.noise
    content = _File(
        budget=budget_data(estimates.budget),
        noise=noise.kind,
        scales=[str(scale) for scale in noise.scales],
        plan=plan,
        measurements=measurements,
        tables=tables,
    )
    put(directory, _MANIFEST, lambda file: file.write(encode(_KIND, content.model_dump())))


def _tables(
    directory: Path,
    estimates: Estimates,
    options: TableOptions,
    format: Format,
    digits: Digits,
    on_progress: OnProgress | None,
) -> dict[str, Stored]:
    """Write every table to a file of its own, some rows at a time."""
    workload = estimates.plan.workload
    places = [place for place, encoded in enumerate(workload.encoded.products) if unlisted(encoded) is None]
    written, all_rows = 0, sum(workload.encoded.products[place].queries for place in places)
    report = stage(on_progress, "writing tables")

    def advance(rows: int) -> None:
        nonlocal written
        written += rows
        report(written / all_rows)

    tables = {}
    for place in places:
        product = workload.products[place]
        rows = estimates.rows(product, workload.encoded.products[place], options)
        write = partial(write_table, rows=rows, format=format, on_rows=advance, digits=digits)
        tables[product.name] = put(directory, f"{place + 1:03d}-{_slug(product.name)}.{format}", write)
    return tables


def manifest_digest(directory: Path) -> str:
    """Identifies a written release: the checksum of its manifest, which holds those of all its files."""
    try:
        return hashlib.sha256(read_regular(directory / _MANIFEST, LARGEST)).hexdigest()
    except OversizedError as error:
        raise ArtefactError(f"{directory}: its {_MANIFEST} has {error.size} bytes, more than {LARGEST}") from None
    except OSError as error:
        raise ArtefactError(f"{directory}: is not a release that can be read: {error.strerror}") from None


def load(directory: Path) -> tuple[Plan, Budget, tuple[NDArray[Any], ...]]:
    """Read the plan, the budget and the measurements of a release, and check each of its files."""
    path = directory / _MANIFEST
    if not directory.exists():
        raise ArtefactError(f"{directory}: there is no such directory; give the one that hdmm release wrote")
    if not directory.is_dir():
        raise ArtefactError(f"{directory}: is a file, not a release; give the directory that hdmm release wrote")
    if not path.exists():
        raise ArtefactError(f"{directory}: is not a release: it has no {_MANIFEST}; give what hdmm release wrote")
    try:
        file = _File.model_validate(read(_KIND, path))
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ArtefactError(f"{path}: is not a release of this version: {where} is not as expected") from None
    plan_path = locate(directory, file.plan)
    check_size(directory, file.plan, LARGEST)
    plan = parse(read("plan", plan_path, file.plan.sha256), str(plan_path))
    try:
        budget = read_budget(file.budget)
        noise = plan.mechanism.calibrate(budget)
    except (InputError, ValueError, ArithmeticError, TypeError):
        raise ArtefactError(f"{path}: it states no budget that its plan can have spent") from None
    if file.noise != noise.kind or file.scales != [str(scale) for scale in noise.scales]:
        raise ArtefactError(f"{path}: it states noise that its plan and budget do not give")
    blocks = plan.mechanism.blocks
    if len(file.measurements) != len(blocks):
        raise ArtefactError(f"{directory}: its measurements do not fit its plan")
    measurements = []
    for stored, block in zip(file.measurements, blocks, strict=True):
        decode_block = decode_numbers if block.wide else decode_array
        most = HEADER + 8 * block.queries + _MAX_EXTRA_BYTES
        array = decode_block(get(directory, stored, most), f"{directory}: {stored.path}")
        if array.shape != (block.queries,) or not np.isfinite(array).all():
            raise ArtefactError(f"{directory}: its measurements do not fit its plan")
        measurements.append(array)
    for stored in file.tables.values():
        check(directory, stored)
    return plan, budget, tuple(measurements)


def _slug(name: str) -> str:
    """A product's name as part of a file name that every system accepts."""
    return re.sub(r"[^a-z0-9]+", "-", name.replace("×", "x").lower()).strip("-")[:60] or "table"
