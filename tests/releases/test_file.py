"""Release directories: whole or not at all, checked when they are read, and without a trace of the records."""

import hashlib
import io
import json
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hdmm
from hdmm import measure
from hdmm.errors import ArtefactError, FaultError
from hdmm.files import artefact as _artefact
from hdmm.releases.estimates import Estimates

SCHEMA = hdmm.Schema(sex=["F", "M"], age=range(4), state=hdmm.Listed(["CA", "NY"], other=True, missing=True))
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("by sex × age", sex=hdmm.Identity(), age=hdmm.Prefix())
    .add("States, of the young!", state=hdmm.Identity() | hdmm.Total(), age=hdmm.Where("age < 2"))
)
FAMILIES = {"kron": hdmm.baselines.Identity(), "direct": hdmm.baselines.Plain(), "marginal": hdmm.baselines.Marginals()}
GOOD = [b"F,1,CA", b"M,3,NY", b"F,0,TX", b"M,2,", b"F,1,CA"]
MARKER = b"Zx9QkWv4Jp"
OUTSIDE = [MARKER + b",1,CA", b"M," + MARKER + b",CA", b"X,99," + MARKER, b"F,1,CA," + MARKER, MARKER, b'"' + MARKER]


def data(tmp_path: Path, lines: list[bytes]) -> Path:
    path = tmp_path / "people.csv"
    path.write_bytes(b"sex,age,state\n" + b"".join(line + b"\n" for line in lines))
    return path


@cache
def planned(family: str) -> hdmm.Plan:
    return hdmm.select(WORKLOAD, operators=[FAMILIES[family]])


def released(tmp_path: Path, lines: list[bytes] = GOOD, family: str = "kron") -> hdmm.Release:
    return hdmm.release(planned(family), data(tmp_path, lines), hdmm.Budget("0.7"), ledger=None)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A release on disk."""
    released(tmp_path).save(tmp_path / "out")
    return tmp_path / "out"


def files(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, by its path."""
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }


def manifest(directory: Path) -> Any:
    return json.loads((directory / "release.json").read_bytes())["content"]


def rewrite(directory: Path, change) -> None:
    """Change the manifest and sign it again."""
    held = manifest(directory)
    change(held)
    (directory / "release.json").write_bytes(_artefact.encode("release", held))


def replace(directory: Path, entry, content: bytes) -> None:
    """Put other bytes into a file of a release, and tell the manifest."""

    def change(held: Any) -> None:
        stored = entry(held)
        (directory / stored["path"]).write_bytes(content)
        stored.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    rewrite(directory, change)


@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_release_is_loaded_with_the_tables_it_was_saved_with(tmp_path: Path, family: str, format: Any) -> None:
    release = released(tmp_path, family=family)
    release.save(tmp_path / "out", format=format)
    loaded = hdmm.Release.load(tmp_path / "out")
    assert [(name, table.to_pydict()) for name, table in loaded.tables()] == [
        (name, table.to_pydict()) for name, table in release.tables()
    ]


def test_a_release_is_loaded_with_its_budget_and_plan(tmp_path: Path, saved: Path) -> None:
    loaded = hdmm.Release.load(saved)
    assert (loaded.budget, loaded.plan.workload, loaded.plan.operator) == (hdmm.Budget("0.7"), WORKLOAD, "Identity")


def test_a_release_is_loaded_with_its_measurements(tmp_path: Path) -> None:
    release = released(tmp_path, family="direct")
    release.save(tmp_path / "out")
    loaded = hdmm.Release.load(tmp_path / "out").measurements
    assert [array.tolist() for array in loaded] == [array.tolist() for array in release.measurements]


def test_a_release_is_written_by_the_call_that_makes_it(tmp_path: Path) -> None:
    plan = planned("kron")
    made = hdmm.release(plan, data(tmp_path, GOOD), hdmm.Budget("0.7"), ledger=None, out=tmp_path / "out")
    loaded = hdmm.Release.load(tmp_path / "out").measurements
    assert [array.tolist() for array in loaded] == [array.tolist() for array in made.measurements]


def test_a_release_holds_its_manifest_plan_measurements_and_tables(saved: Path) -> None:
    assert list(files(saved)) == [
        "measurements/000.npy",
        "plan.hdmm",
        "release.json",
        "tables/001-by-sex-x-age.parquet",
        "tables/002-states-of-the-young.parquet",
    ]


def test_parquet_tables_are_those_of_the_release(tmp_path: Path, saved: Path) -> None:
    table = parquet.read_table(saved / "tables" / "001-by-sex-x-age.parquet")
    assert table.to_pydict() == hdmm.Release.load(saved).table("by sex × age").to_pydict()


def test_csv_tables_are_those_of_the_release(tmp_path: Path) -> None:
    release = released(tmp_path)
    release.save(tmp_path / "out", format="csv", digits="full")
    table = csv.read_csv(tmp_path / "out" / "tables" / "001-by-sex-x-age.csv")
    assert table.to_pydict() == release.table("by sex × age").to_pydict()


def test_the_total_has_no_label_in_a_table(tmp_path: Path) -> None:
    assert released(tmp_path).table("States, of the young!")["state"].to_pylist() == [
        "CA",
        "NY",
        "other",
        "missing",
        None,
    ]


def test_the_columns_of_a_table_are_its_attributes_in_schema_order_then_the_answer(tmp_path: Path) -> None:
    table = released(tmp_path).table("States, of the young!")
    assert table.column_names == ["age", "state", "answer", "stderr", "low", "high"]


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "discrete_laplace", lambda scale, count: np.zeros(count, np.int64))


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("family", ["kron", "direct", "marginal"])
def test_records_outside_the_domain_leave_no_trace(tmp_path: Path, family: str, format: Any) -> None:
    """Without noise the directories are the same, byte for byte: neither values nor the number of records are there."""
    plan = planned(family)
    outcomes = []
    for name, lines in {"clean": GOOD, "dirty": [*OUTSIDE, *GOOD, *[b"X,99,CA"] * 1000]}.items():
        made = hdmm.release(plan, data(tmp_path, lines), hdmm.Budget("0.7"), ledger=None)
        made.save(tmp_path / name, format=format)
        outcomes.append(files(tmp_path / name))
    assert outcomes[0] == outcomes[1]


@pytest.mark.usefixtures("without_noise")
def test_a_record_inside_the_domain_does_leave_a_trace(tmp_path: Path) -> None:
    plan = planned("kron")
    for name, lines in {"one": GOOD, "two": GOOD[1:]}.items():
        hdmm.release(plan, data(tmp_path, lines), hdmm.Budget("0.7"), ledger=None, out=tmp_path / name)
    assert files(tmp_path / "one") != files(tmp_path / "two")


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_no_raw_value_is_anywhere_in_the_directory(tmp_path: Path, format: Any) -> None:
    released(tmp_path, OUTSIDE * 50 + [b"F,1," + MARKER] * 50).save(tmp_path / "out", format=format)
    assert [name for name, content in files(tmp_path / "out").items() if MARKER in content] == []


def test_nothing_in_a_table_tells_about_the_data_but_the_answer(tmp_path: Path) -> None:
    dirty = released(tmp_path, OUTSIDE * 50)
    for name, table in released(tmp_path).tables():
        other = dirty.table(name)
        public = [column for column in table.column_names if column not in ("answer", "low", "high")]
        assert table.select(public).equals(other.select(public))


FILES = ["release.json", "plan.hdmm", "measurements/000.npy", "tables/002-states-of-the-young.parquet"]


@pytest.mark.parametrize("name", FILES)
def test_a_release_with_a_missing_file_is_refused(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(
        ArtefactError, match=f"has no {name}|{name}: (there is no such file|cannot be read: No such file)"
    ):
        hdmm.Release.load(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_release_with_a_changed_byte_in_any_file_is_refused(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for place in {0, 1, len(content) // 3, len(content) // 2, len(content) - 1}:
        changed = bytearray(content)
        changed[place] ^= 1
        (saved / name).write_bytes(changed)
        with pytest.raises(ArtefactError, match=name.rsplit("/", maxsplit=1)[-1]):
            hdmm.Release.load(saved)


def test_a_manifest_with_any_bit_flipped_is_refused(saved: Path) -> None:
    content = (saved / "release.json").read_bytes()
    survived = []
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        (saved / "release.json").write_bytes(changed)
        try:
            hdmm.Release.load(saved)
        except ArtefactError:
            continue
        survived.append(place)
    assert survived == []


@pytest.mark.parametrize("name", FILES)
def test_a_release_with_a_file_cut_short_is_refused(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for end in (0, 1, len(content) // 2, len(content) - 1):
        (saved / name).write_bytes(content[:end])
        with pytest.raises(ArtefactError, match=name.rsplit("/", maxsplit=1)[-1]):
            hdmm.Release.load(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_release_with_a_file_that_is_a_directory_is_refused(saved: Path, name: str) -> None:
    (saved / name).unlink()
    (saved / name).mkdir()
    with pytest.raises(ArtefactError, match=name.rsplit("/", maxsplit=1)[-1]):
        hdmm.Release.load(saved)


def test_a_directory_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"is not a release: it has no release\.json"):
        hdmm.Release.load(tmp_path)


def test_a_plan_is_no_release(saved: Path) -> None:
    shutil.copy(saved / "plan.hdmm", saved / "release.json")
    with pytest.raises(ArtefactError, match="is an hdmm plan file, expected a release"):
        hdmm.Release.load(saved)


PLACES = {
    "the plan": lambda held: held["plan"],
    "measurements": lambda held: held["measurements"][0],
    "a table": lambda held: held["tables"]["by sex × age"],
}
PATHS = [
    "../people.csv",
    "/etc/hostname",
    "tables/../../people.csv",
    "..",
    ".",
    "",
    "tables/..",
    "/",
    "a\0b",
    "x" * 5000,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: repr(path)[:30])
@pytest.mark.parametrize("place", PLACES)
def test_a_path_that_leads_out_of_the_directory_is_refused(saved: Path, place: str, path: str) -> None:
    def change(held: Any) -> None:
        target = saved / path if "\0" not in path else saved
        content = target.read_bytes() if len(path) < 300 and target.is_file() else b""
        PLACES[place](held).update(path=path, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    rewrite(saved, change)
    with pytest.raises(ArtefactError, match=r"names a file outside itself|cannot be read|damaged"):
        hdmm.Release.load(saved)


@pytest.mark.parametrize("path", ["../people.csv", "/etc/hostname", "tables/../../people.csv"])
@pytest.mark.parametrize("place", PLACES)
def test_a_file_outside_the_directory_is_not_even_opened(
    saved: Path, place: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(saved, lambda held: PLACES[place](held).update(path=path))
    opened: list[Path] = []
    start = os.open

    def noted(name: Path, *given: Any, **named: Any) -> Any:
        opened.append(Path(name))
        return start(name, *given, **named)

    monkeypatch.setattr(os, "open", noted)
    with pytest.raises(ArtefactError, match="names a file outside itself"):
        hdmm.Release.load(saved)
    assert saved / "release.json" in opened
    assert [name for name in opened if not name.resolve().is_relative_to(saved.resolve())] == []


@pytest.mark.parametrize("place", PLACES)
def test_an_oversized_file_is_refused_before_it_is_read(saved: Path, place: str) -> None:
    rewrite(saved, lambda held: PLACES[place](held).update(bytes=_artefact.LARGEST + 1))
    message = "cut short" if place == "a table" else "bytes; at most"  # tables may have any size
    with pytest.raises(ArtefactError, match=message):
        hdmm.Release.load(saved)


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), **options)
    return buffer.getvalue()


def npz(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, array)
    return buffer.getvalue()


def promised(shape: tuple[int, ...]) -> bytes:
    """An npy file that promises an array and ends."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def with_header(text: str) -> bytes:
    """An npy file of as many integers as are measured, whose header is not what it should be."""
    header = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8 * CELLS)


CELLS = SCHEMA.cells
ARRAYS: dict[str, tuple[bytes, str]] = {
    "one measurement too few": (npy(np.zeros(CELLS - 1, np.int64)), "its measurements do not fit its plan"),
    "one too many": (npy(np.zeros(CELLS + 1, np.int64)), "its measurements do not fit its plan"),
    "another shape": (npy(np.zeros((CELLS, 1), np.int64)), "its measurements do not fit its plan"),
    "floats": (npy(np.zeros(CELLS)), "does not hold an array of integers"),
    "NaN": (npy(np.full(CELLS, np.nan)), "does not hold an array of integers"),
    "32 bits": (npy(np.zeros(CELLS, np.int32)), "does not hold an array of integers"),
    "unsigned": (npy(np.zeros(CELLS, np.uint64)), "does not hold an array of integers"),
    "the other byte order": (npy(np.zeros(CELLS, ">i8")), "does not hold an array of integers"),
    "objects": (npy(np.zeros(CELLS, object), allow_pickle=True), "does not hold an array of integers"),
    "pickle": (pickle.dumps([0] * CELLS), "does not hold an array of integers"),
    "nothing": (b"", "does not hold an array of integers"),
    "an archive": (npz(np.zeros(CELLS, np.int64)), "does not hold an array of integers"),
    "the beginning of an archive": (b"PK\x03\x04" + bytes(60), "does not hold an array of integers"),
    "an array that is promised": (promised((CELLS,)), "does not hold an array of integers"),
    "an array and more": (npy(np.zeros(CELLS, np.int64)) + b"\0", "does not hold an array of integers"),
    "a header with an open bracket": (
        with_header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({CELLS},"),
        "does not hold an array of integers",
    ),
    "a header with negative sizes": (
        with_header(f"{{'descr': '<i8', 'fortran_order': False, 'shape': (-1, -{CELLS})}}"),
        "does not hold an array of integers",
    ),
    "more memory than there is": (promised((2**47,)), "does not hold an array of integers"),
}


@pytest.mark.parametrize(("content", "message"), ARRAYS.values(), ids=ARRAYS)
def test_measurements_that_are_not_those_of_the_plan_are_refused(saved: Path, content: bytes, message: str) -> None:
    replace(saved, PLACES["measurements"], content)
    with pytest.raises(ArtefactError, match=message):
        hdmm.Release.load(saved)


def set_to(**values: Any):
    return lambda held: held.update(values)


MANIFESTS: dict[str, tuple[Any, str]] = {
    "no budget": (lambda held: held.pop("budget"), "budget is not as expected"),
    "an unknown key": (set_to(rows=5), "rows is not as expected"),
    "a budget that is a number": (set_to(budget={"epsilon": 1}), "is not as expected"),
    "a smaller budget": (set_to(budget={"epsilon": "1/10"}), "it states noise that its plan and budget do not give"),
    "smaller noise": (set_to(scales=["1"]), "it states noise that its plan and budget do not give"),
    "other noise": (set_to(noise="gaussian"), "it states noise that its plan and budget do not give"),
    "no measurements": (set_to(measurements=[]), "its measurements do not fit its plan"),
    "measurements twice": (lambda held: held["measurements"].append(held["measurements"][0]), "do not fit its plan"),
    "an empty budget": (set_to(budget={}), "it states no budget that its plan can have spent"),
    "a budget of zero": (set_to(budget={"epsilon": "0"}), "it states no budget that its plan can have spent"),
    "a budget that is no number": (
        set_to(budget={"epsilon": "abc"}),
        "it states no budget that its plan can have spent",
    ),
    "a budget over zero": (set_to(budget={"epsilon": "1/0"}), "it states no budget that its plan can have spent"),
    "an unknown kind of budget": (set_to(budget={"sigma": "1"}), "it states no budget that its plan can have spent"),
    "a budget for other noise": (
        set_to(budget={"epsilon": "1", "delta": "1/1000"}),
        "it states no budget that its plan can have spent",
    ),
}


@pytest.mark.parametrize(("change", "message"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_does_not_hold_together_is_refused(saved: Path, change, message: str) -> None:
    rewrite(saved, change)
    with pytest.raises(ArtefactError, match=message):
        hdmm.Release.load(saved)


def test_another_plan_of_the_same_size_is_refused(tmp_path: Path, saved: Path) -> None:
    other = hdmm.select(WORKLOAD.add("total", weight=5), operators=[FAMILIES["direct"]])
    other.save(tmp_path / "other.plan")
    replace(saved, PLACES["the plan"], (tmp_path / "other.plan").read_bytes())
    with pytest.raises(ArtefactError, match="it states noise that its plan and budget do not give"):
        hdmm.Release.load(saved)


def test_an_existing_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtefactError, match="out: exists already and is never overwritten; choose another name"):
        released(tmp_path).save(tmp_path / "out")


def test_an_existing_release_is_left_as_it_is(tmp_path: Path, saved: Path) -> None:
    before = files(saved)
    with pytest.raises(ArtefactError, match="exists already"):
        released(tmp_path).save(saved)
    assert files(saved) == before


def test_an_existing_directory_is_refused_before_the_data_is_counted(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "count", lambda *_, **__: pytest.fail("the data was counted"))
    with pytest.raises(ArtefactError, match="exists already"):
        hdmm.release(planned("kron"), data(tmp_path, GOOD), hdmm.Budget("1"), ledger=None, out=saved)


def test_a_missing_parent_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="its parent directory does not exist; create it first"):
        released(tmp_path).save(tmp_path / "nowhere" / "out")


def fsyncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int | None) -> int:
    """Save a release while one fsync fails; return how many there were."""
    calls: list[int] = []
    turn = Lock()

    def fsync(descriptor: int) -> None:
        with turn:
            calls.append(descriptor)
            number = len(calls)
        if number == fail_at:
            raise OSError(28, "No space left on device")

    release = released(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        release.save(tmp_path / "out")
    return len(calls)


def test_every_file_and_directory_is_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five files, two directories of files, the release itself, and the directory that it is in, before and after."""
    assert fsyncs(tmp_path, monkeypatch, None) == 10


def test_a_release_that_is_there_is_not_said_to_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsyncs(tmp_path, monkeypatch, 10)
    hdmm.Release.load(tmp_path / "out")


def test_of_many_writers_to_one_directory_one_wins_and_none_is_harmed(tmp_path: Path) -> None:
    release = released(tmp_path)

    def save(_: int) -> bool:
        try:
            release.save(tmp_path / "out")
        except (ArtefactError, FaultError):
            return False
        return True

    for _ in range(10):
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(save, range(4))) == 1
        hdmm.Release.load(tmp_path / "out")
        shutil.rmtree(tmp_path / "out")
    assert not list(tmp_path.glob(".hdmm-*"))


@pytest.mark.parametrize("name", ["n" * 250, "n" * 300])
def test_a_name_that_is_too_long_is_refused_or_written(tmp_path: Path, name: str) -> None:
    release = released(tmp_path)
    if len(name) > 255:
        with pytest.raises(ArtefactError, match="cannot be written"):
            release.save(tmp_path / name)
    else:
        release.save(tmp_path / name)
        hdmm.Release.load(tmp_path / name)


@pytest.mark.parametrize("call", range(1, 10))
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    with pytest.raises(FaultError, match="out: cannot be written: No space left on device"):
        fsyncs(tmp_path, monkeypatch, call)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_fault_while_a_table_is_made_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    release = released(tmp_path)
    monkeypatch.setattr(Estimates, "rows", fail)
    with pytest.raises(MemoryError):
        release.save(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_directory_that_appears_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = released(tmp_path)
    rename = os.rename

    def late(source: Any, target: Any) -> None:
        Path(target).mkdir()
        (Path(target) / "precious").write_text("precious")
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises((ArtefactError, FaultError), match="out: "):
        release.save(tmp_path / "out")
    assert list(files(tmp_path / "out")) == ["precious"]


def test_an_unknown_format_is_refused_before_the_data_is_counted(tmp_path: Path) -> None:
    plan = planned("kron")
    with pytest.raises(hdmm.errors.InputError, match="format='xlsx': expected 'parquet' or 'csv'"):
        hdmm.release(plan, data(tmp_path, GOOD), hdmm.Budget("1"), ledger=None, format="xlsx")  # type: ignore[arg-type]


def test_an_unknown_format_is_refused_when_a_release_is_saved(tmp_path: Path) -> None:
    with pytest.raises(hdmm.errors.InputError, match="format='xlsx': expected 'parquet' or 'csv'"):
        released(tmp_path).save(tmp_path / "out", format="xlsx")  # type: ignore[arg-type]


def test_tables_are_pyarrow_tables(tmp_path: Path) -> None:
    assert isinstance(released(tmp_path).table("by sex × age"), pa.Table)
