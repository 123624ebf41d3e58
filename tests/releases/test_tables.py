"""Tables are written some rows at a time: the same files, whatever the size of the pieces, in little memory."""

import hashlib
import io
import itertools
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import hdmm
from hdmm.accuracy.predict import Accuracy
from hdmm.errors import ArtefactError, FaultError
from hdmm.plans import mechanism as planning
from hdmm.privacy.calibrate import calibrate
from hdmm.releases import stored
from hdmm.releases.options import USUAL
from hdmm.releases.rows import Rows
from hdmm.releases.write import write_table

SCHEMA = hdmm.Schema(
    {"sex": ["F", "M"], "age": range(5), "home.state": hdmm.Listed(["CA", "NY"], other=True), "student": [False, True]}
)
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("total")
    .add("mixed", {"sex": hdmm.Identity() | hdmm.Total(), "age": hdmm.Prefix(), "home.state": hdmm.Identity()})
    .add("students", {"student": hdmm.Identity(), "age": hdmm.Where("age < 2") | hdmm.Identity()})
    .add("ranges", age=hdmm.AllRange(), sex=hdmm.Total())
)
OPERATORS = {"whole": hdmm.baselines.Identity(), "fractional": hdmm.operators.Residual()}
BUDGET = hdmm.Budget(rho="0.5")


@pytest.fixture(params=OPERATORS)
def made(request: pytest.FixtureRequest) -> hdmm.Release:
    """A release whose answers are whole numbers, or are not."""
    plan = hdmm.select(WORKLOAD, "gaussian", operators=[OPERATORS[request.param]])
    rng = np.random.default_rng(4)
    return hdmm.Release(plan, BUDGET, tuple(rng.integers(-9, 99, block.queries) for block in plan.mechanism.blocks))


def written(rows: Rows, format: Any, size: int) -> bytes:
    sink = io.BytesIO()
    write_table(sink, rows, format, lambda more: None, size=size)
    return sink.getvalue()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_parquet_in_pieces_holds_the_table(made: hdmm.Release, size: int) -> None:
    for name, table in made.tables():
        content = written(made._rows(name, USUAL), "parquet", size)
        assert parquet.read_table(io.BytesIO(content)) == table
        groups = parquet.ParquetFile(io.BytesIO(content)).metadata
        assert max(groups.row_group(place).num_rows for place in range(groups.num_row_groups)) <= size


@pytest.mark.parametrize("size", [1, 3, 7])
def test_csv_in_pieces_has_the_same_bytes(made: hdmm.Release, size: int) -> None:
    for product in WORKLOAD.products:
        rows = made._rows(product.name, USUAL)
        assert written(rows, "csv", size) == written(rows, "csv", 1000)


def test_any_rows_are_those_of_the_whole_table(made: hdmm.Release) -> None:
    for name, table in made.tables():
        rows = made._rows(name, USUAL)
        for start, stop in itertools.combinations(range(0, table.num_rows + 1, 2), 2):
            assert pa.Table.from_batches([rows.some(start, stop)]) == table[start:stop]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_the_manifest_has_the_size_and_checksum_of_every_file(made: hdmm.Release, tmp_path: Path, format: Any) -> None:
    made.save(tmp_path / "out", format=format)
    content = hdmm.files.artefact.read("release", tmp_path / "out" / "release.json")
    entries = [content["plan"], *content["measurements"], *content["tables"].values()]
    paths = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {entry["path"] for entry in entries} == paths - {"release.json"}
    for entry in entries:
        data = (tmp_path / "out" / entry["path"]).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_release_saved_in_small_pieces_is_loaded(
    made: hdmm.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = write_table.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "size", 4)
    made.save(tmp_path / "out")
    (path,) = (tmp_path / "out" / "tables").glob("*mixed*")
    assert parquet.ParquetFile(path).metadata.num_row_groups == 12
    loaded = hdmm.Release.load(tmp_path / "out")
    for name, table in made.tables():
        assert loaded.table(name) == table


class Nowhere(io.BufferedIOBase):
    """A file that keeps nothing but the size."""

    size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self.size


def peak(run: Callable[[], object]) -> int:
    """The most memory that is in use at a time, by numpy and Python and by pyarrow, on top of what was before."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_table_of_a_million_answers_is_written_in_little_memory(format: Any) -> None:
    """In one piece the same table takes 60 MB and more, so the limit would be seen."""
    answers = np.random.default_rng(1).normal(size=1 << 20)
    labels = [{"a": pa.array(range(1 << 10))}, {"b": pa.array([f"<= {value}" for value in range(1 << 10)])}]
    rows = Rows(labels, answers, Accuracy((), np.array(2.0), np.array(4.0)), 1e-9)
    file = Nowhere()
    limit = 8e6
    assert peak(lambda: write_table(file, rows, format, lambda more: None, size=1 << 14)) < limit
    assert file.size > answers.nbytes
    assert peak(lambda: rows.some(0, len(answers))) > 5 * limit


def test_a_large_table_is_checked_in_little_memory(tmp_path: Path) -> None:
    content = bytes(1 << 24)
    (tmp_path / "table").write_bytes(content)
    entry = stored.Stored(path="table", bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    assert peak(lambda: stored.check(tmp_path, entry)) < len(content) / 4
    assert peak(lambda: stored.get(tmp_path, entry)) >= len(content)


def test_what_is_read_whole_has_a_limit_and_what_is_only_checked_has_none(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"12345678")
    entry = stored.Stored(path="table", bytes=8, sha256=hashlib.sha256(b"12345678").hexdigest())
    assert stored.get(tmp_path, entry, most=8) == b"12345678"
    with pytest.raises(ArtefactError, match="names a file of 8 bytes; at most 7 are expected"):
        stored.get(tmp_path, entry, most=7)
    stored.check(tmp_path, entry)


@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
def test_damage_anywhere_in_a_table_is_found_in_pieces_of_any_size(
    made: hdmm.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(stored, "_PIECE", piece)
    made.save(tmp_path / "out")
    (path,) = (tmp_path / "out" / "tables").glob("*mixed*")
    content = path.read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :] for at in (0, 99, 100, len(content) - 1)]
    for damaged in (*flipped, content[:-1], content + b"\0", b""):
        path.write_bytes(damaged)
        with pytest.raises(ArtefactError, match=f"{path.name}: is damaged"):
            hdmm.Release.load(tmp_path / "out")
    path.write_bytes(content)
    hdmm.Release.load(tmp_path / "out")


def test_what_repeats_is_almost_free_in_parquet() -> None:
    """Labels, a constant standard error and whole answers, in encodings that every reader knows."""
    answers = np.random.default_rng(2).normal(size=40_000)
    predicted = Accuracy((), np.array(2.0), np.array(4.0))
    labels = [{"a": pa.array(range(200))}, {"b": pa.array([f"<= {value}" for value in range(200)])}]
    rows = Rows(labels, answers, predicted, 0)
    sizes = {}
    for kind in (rows, Rows(rows.labels, np.rint(answers), predicted, 0)):
        group = parquet.ParquetFile(io.BytesIO(written(kind, "parquet", 1 << 18))).metadata.row_group(0)
        for place in range(group.num_columns):
            column = group.column(place)
            sizes[kind.whole, column.path_in_schema] = column.total_compressed_size
            assert set(column.encodings) <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert sizes[False, "stderr"] < 0.01 * len(answers)
    assert max(sizes[False, name] for name in ("a", "b")) < 0.1 * len(answers)
    assert sizes[False, "answer"] < 8.2 * len(answers)
    assert max(sizes[True, name] for name in ("answer", "low", "high")) < 0.5 * len(answers)


def test_the_noise_is_calibrated_once(made: hdmm.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def noted(*given):
        calls.append(given)
        return calibrate(*given)

    monkeypatch.setattr(planning, "calibrate", noted)
    made.save(tmp_path / "out")
    assert len(calls) <= 1
    assert made.plan.mechanism.calibrate(hdmm.Budget(rho="0.5")) is made.plan.mechanism.calibrate(BUDGET)
    smaller = made.plan.mechanism.calibrate(hdmm.Budget(rho="0.125"))
    assert smaller.scales[0] == pytest.approx(2 * made.plan.mechanism.calibrate(BUDGET).scales[0])


def test_writing_tells_its_progress(made: hdmm.Release, tmp_path: Path) -> None:
    told: list[hdmm.Progress] = []
    made.save(tmp_path / "out", on_progress=told.append)
    sizes = [table.num_rows for _, table in made.tables()]
    assert [progress.done for progress in told] == pytest.approx(np.cumsum(sizes) / sum(sizes))
    assert {progress.stage for progress in told} == {"writing tables"}


def test_a_release_tells_the_progress_of_every_stage(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,age,home.state,student\nF,1,CA,t\nM,4,TX,f\n")
    plan = hdmm.select(WORKLOAD, operators=[hdmm.baselines.Identity()])
    told: list[hdmm.Progress] = []
    hdmm.release(
        plan,
        tmp_path / "people.csv",
        hdmm.Budget("1"),
        ledger=None,
        out=tmp_path / "out",
        on_progress=told.append,
    )
    stages = ["counting records", "adding noise", "writing tables"]
    assert [stage for stage, _ in itertools.groupby(told, lambda one: one.stage)] == stages
    assert {one.stage: one.done for one in told} == dict.fromkeys(stages, 1.0)


def test_everything_is_durable_before_it_is_renamed(
    made: hdmm.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is renamed is complete and was synced, every file after the last byte was written to it."""
    synced: dict[int, int] = {}
    rename = os.rename

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        synced[found.st_ino] = found.st_mtime_ns

    def checked(source: Path, target: Path) -> None:
        for path in (source, *source.rglob("*")):
            assert synced.get(path.stat().st_ino) == path.stat().st_mtime_ns, path.name
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", checked)
    made.save(tmp_path / "out")
    hdmm.Release.load(tmp_path / "out")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_disk_that_is_full_while_a_table_is_written_leaves_nothing_behind(
    made: hdmm.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Any
) -> None:
    real = stored.Hashed.write
    calls = 0
    fail_at = None

    def write(self: stored.Hashed, data: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise OSError(28, "No space left on device")
        return real(self, data)

    monkeypatch.setattr(stored.Hashed, "write", write)
    made.save(tmp_path / "whole", format=format)
    writes, before = calls, set(tmp_path.iterdir())
    assert writes > 2 * len(WORKLOAD.products)
    for place in range(1, writes + 1):
        calls, fail_at = 0, place
        with pytest.raises(FaultError, match="out: cannot be written: No space left on device"):
            made.save(tmp_path / "out", format=format)
        assert set(tmp_path.iterdir()) == before
