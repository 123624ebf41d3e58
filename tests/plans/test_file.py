"""Plan files: what is saved is what is loaded, and what is damaged, dangerous or untrue is refused."""

import base64
import hashlib
import io
import json
import os
import pickle
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdmm
from hdmm import matrix
from hdmm.errors import ArtefactError, FaultError, InputError
from hdmm.files import artefact as _artefact
from hdmm.plans import Goal, Mechanism
from hdmm.strategy import Block, Strategy

SCHEMA = hdmm.Schema({"education-num": range(4)}, sex=["F", "M"], age=hdmm.Listed(["young", "old"], other=True))
WORKLOAD = (
    hdmm.Workload(SCHEMA)
    .add("by sex and age", sex=hdmm.Identity(), age=hdmm.Prefix(), weight="1/3")
    .add("few years", {"education-num": hdmm.Where('"education-num" < 2')}, sex=hdmm.Identity() | hdmm.Total())
    .add("total")
)
FAMILIES = {"kron": hdmm.baselines.Identity(), "direct": hdmm.baselines.Plain(), "marginal": hdmm.baselines.Marginals()}
BUDGETS = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}


def plan_of(family: str, noise: Any = "laplace") -> hdmm.Plan:
    return hdmm.select(WORKLOAD, noise, operators=[FAMILIES[family]])


def with_strategy(strategy: Any, workload: hdmm.Workload = WORKLOAD) -> hdmm.Plan:
    return hdmm.Plan(workload, Mechanism(strategy, "laplace", hdmm.Unit()), Goal(), "by hand")


def content(path: Path) -> Any:
    """The JSON that a plan file holds behind its header."""
    return json.loads(path.read_bytes())["content"]


def sign(payload: bytes, **changes: Any) -> bytes:
    """A file whose checksum is right, whatever it holds."""
    header = {"hdmm": "plan", "format": 1, "bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    head = json.dumps(header | changes).removesuffix("}").encode()
    return head + b', "content":\n' + payload + b"\n}\n"


def described(plan: hdmm.Plan) -> Any:
    """Everything that a plan is made of, in a form that compares."""
    blocks = [
        (block.axes, block.weight, [factor.dense().tolist() for factor in block.factors])
        for block in plan.mechanism.blocks
    ]
    parts = (plan.workload, plan.noise, plan.unit, plan.operator, plan.search)
    return parts, plan.mechanism.strategy.family, plan.mechanism.strategy.sizes, blocks


@pytest.fixture
def saved(tmp_path: Path):
    """Save a plan and return its path."""

    def save(plan: hdmm.Plan, name: str = "people.plan") -> Path:
        plan.save(tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def tampered(tmp_path: Path, saved):
    """Change the content of a plan file, or its JSON text, and sign it again."""

    def tamper(plan: hdmm.Plan, change=None, text=None) -> Path:
        held = content(saved(plan))
        if change is not None:
            change(held)
        payload = json.dumps(held)
        (tmp_path / "tampered.plan").write_bytes(sign((text(payload) if text else payload).encode()))
        return tmp_path / "tampered.plan"

    return tamper


@pytest.mark.parametrize("noise", BUDGETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_is_loaded_as_it_was_saved(saved, family: str, noise: str) -> None:
    plan = plan_of(family, noise)
    assert described(hdmm.Plan.load(saved(plan))) == described(plan)


@pytest.mark.parametrize("noise", BUDGETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_plan_predicts_the_same_errors(saved, family: str, noise: str) -> None:
    plan, budget = plan_of(family, noise), BUDGETS[noise]
    assert hdmm.Plan.load(saved(plan)).errors(budget).equals(plan.errors(budget))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_plan_is_saved_as_the_same_bytes(saved, family: str) -> None:
    first = saved(plan_of(family))
    assert saved(hdmm.Plan.load(first), "again.plan").read_bytes() == first.read_bytes()


def test_a_factor_of_integers_is_loaded_as_it_was_saved(saved) -> None:
    axes = (0, 1, 2)
    rows = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [2, -1, 0]])
    factors = (matrix.Identity(4), matrix.Identity(2), matrix.Dense(rows))
    plan = with_strategy(Strategy(SCHEMA.sizes, (Block(axes, factors),), "kron"))
    assert described(hdmm.Plan.load(saved(plan))) == described(plan)


def test_weights_of_marginals_are_loaded_exactly(saved) -> None:
    weights = {(0, 1, 2): Fraction(1, 3), (1,): Fraction(10**30 + 1, 7), (): Fraction(2)}
    blocks = [
        Block(axes, tuple(matrix.Identity(SCHEMA.sizes[axis]) for axis in axes), weight)
        for axes, weight in weights.items()
    ]
    plan = with_strategy(Strategy(SCHEMA.sizes, tuple(blocks), "marginal"))
    loaded = hdmm.Plan.load(saved(plan))
    assert {block.axes: block.weight for block in loaded.mechanism.blocks} == weights


def zip_file() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan", bytes(10**6))
    return buffer.getvalue()


STRANGERS = {
    "nothing": b"",
    "a line break": b"\n",
    "text": b"a plan",
    "pickle": pickle.dumps({"hdmm": "plan"}),
    "a zip file": zip_file(),
    "a list": b'["hdmm"]\n{}',
    "another object": b'{"kind": "plan"}\n{}',
    "a long first line": b'{"hdmm": "plan", "x": "' + b"x" * 5000 + b'"}\n{}',
    "bytes that are no text": bytes(range(128, 256)),
    "a spec": b"schema: {sex: [F, M]}\n",
}


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS)
def test_what_is_no_plan_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.plan").write_bytes(data)
    with pytest.raises(ArtefactError, match=r"x\.plan: is not an hdmm plan file"):
        hdmm.Plan.load(tmp_path / "x.plan")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"nowhere\.plan: there is no such file"):
        hdmm.Plan.load(tmp_path / "nowhere.plan")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="cannot be read: Is a directory"):
        hdmm.Plan.load(tmp_path)


SMALL = hdmm.select(
    hdmm.Workload(hdmm.Schema(a=["x", "y"])).add("q", a=hdmm.Identity()), operators=[hdmm.baselines.Identity()]
)


def loads(path: Path, data: bytes) -> bool:
    """Whether a plan is read from these bytes; anything but a refusal fails the test."""
    path.write_bytes(data)
    try:
        hdmm.Plan.load(path)
    except ArtefactError:
        return False
    return True


def test_a_plan_that_is_cut_short_anywhere_is_refused(saved) -> None:
    path = saved(SMALL)
    data = path.read_bytes()
    assert [cut for cut in range(len(data)) if loads(path, data[:cut])] == []


def test_a_plan_with_any_byte_changed_is_refused(saved) -> None:
    """In each byte one bit is flipped, in turn, and the one that tells capital letters from small ones."""
    path = saved(SMALL)
    data = path.read_bytes()
    survived = []
    for place in range(len(data)):
        for bit in (place % 8, 5):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            if loads(path, bytes(changed)):
                survived.append((place, bit))
    assert survived == []


@pytest.mark.parametrize("more", [b"\n", b" ", b"{}", b"\0"])
def test_a_plan_with_something_behind_it_is_refused(saved, more: bytes) -> None:
    path = saved(SMALL)
    path.write_bytes(path.read_bytes() + more)
    with pytest.raises(ArtefactError, match="is damaged or cut short: its checksum does not match"):
        hdmm.Plan.load(path)


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "a release": ({"hdmm": "release"}, "is an hdmm release file, expected a plan"),
    "the next format": ({"format": 2}, "has format 2, this version reads 1; update hdmm or plan again"),
    "no format": ({"format": None}, "has format None, this version reads 1"),
    "a format that is text": ({"format": "1"}, "has format 1, this version reads 1"),
    "an unknown key": ({"signed": True}, "its header is damaged; make the file again"),
    "a wrong size": ({"bytes": 1}, "is damaged or cut short: its checksum does not match"),
    "a wrong checksum": ({"sha256": "0" * 64}, "is damaged or cut short: its checksum does not match"),
    "no checksum": ({"sha256": None}, "is damaged or cut short: its checksum does not match"),
}


@pytest.mark.parametrize(("changes", "message"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_is_not_as_it_must_be_is_refused(saved, changes: dict[str, Any], message: str) -> None:
    path = saved(SMALL)
    path.write_bytes(sign(path.read_bytes().split(b"\n", 1)[1].removesuffix(b"\n}\n"), **changes))
    with pytest.raises(ArtefactError, match=message):
        hdmm.Plan.load(path)


def test_a_key_twice_in_the_header_is_refused(saved) -> None:
    path = saved(SMALL)
    path.write_bytes(path.read_bytes().replace(b'{"hdmm": "plan"', b'{"hdmm": "plan", "hdmm": "plan"', 1))
    with pytest.raises(ArtefactError, match="a key stands twice in its JSON"):
        hdmm.Plan.load(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(tampered, number: str) -> None:
    path = tampered(SMALL, text=lambda text: text.replace('"rmse": ', f'"rmse": {number}, "old": '))
    with pytest.raises(ArtefactError, match=f"{number} is not a number that an artefact may hold"):
        hdmm.Plan.load(path)


@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_reads_as_infinity_is_refused(tampered, number: str) -> None:
    def change(held: Any) -> None:
        held["candidates"][0]["rmse"] = "RMSE"

    path = tampered(SMALL, change, lambda text: text.replace('"RMSE"', number))
    with pytest.raises(ArtefactError, match=r"is not a number that an artefact may hold|is not as expected"):
        hdmm.Plan.load(path)


def test_a_key_twice_in_the_content_is_refused(tampered) -> None:
    path = tampered(SMALL, text=lambda text: text.replace('"sensitivity": ', '"sensitivity": "0", "sensitivity": '))
    with pytest.raises(ArtefactError, match="a key stands twice in its JSON"):
        hdmm.Plan.load(path)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{} {}", "{'a': 1}"])
def test_content_that_is_no_json_is_refused(tampered, text: str) -> None:
    with pytest.raises(ArtefactError, match="is not valid JSON"):
        hdmm.Plan.load(tampered(SMALL, text=lambda _: text))


@pytest.mark.parametrize("depth", [100, 450, 900, 100_000])
def test_content_that_is_nested_deeply_is_read_or_refused(tampered, depth: int) -> None:
    def nest(text: str) -> str:
        return text.replace('"identity"}}]', '{"not": ' * 2 * depth + '"identity"' + "}" * 2 * depth + "}}]", 1)

    path = tampered(SMALL, text=nest)
    try:
        hdmm.Plan.load(path)
    except ArtefactError:
        return


SHAPES: dict[str, tuple[Any, str]] = {
    "no strategy": (lambda held: held.pop("strategy"), "is not a plan of this version: strategy is not as expected"),
    "no sensitivity": (lambda held: held.pop("sensitivity"), "sensitivity is not as expected"),
    "a sensitivity that is a number": (lambda held: held.update(sensitivity=1), "sensitivity is not as expected"),
    "an unknown key": (lambda held: held.update(seed=1), "seed is not as expected"),
    "an unknown family": (lambda held: held["strategy"].update(family="pickle"), "strategy is not as expected"),
    "an unknown key in the strategy": (lambda held: held["strategy"].update(pickle="x"), "pickle is not as expected"),
    "a spec that is a list": (lambda held: held.update(spec=[]), "spec is not as expected"),
    "a candidate that is a text": (lambda held: held.update(candidates=["x"]), "candidates.0 is not as expected"),
    "an RMSE that is a text": (lambda held: held["candidates"][0].update(rmse="1"), "candidates.0.rmse is not as"),
}


@pytest.mark.parametrize(("change", "message"), SHAPES.values(), ids=SHAPES)
def test_content_of_another_shape_is_refused(tampered, change, message: str) -> None:
    with pytest.raises(ArtefactError, match=message):
        hdmm.Plan.load(tampered(SMALL, change))


@pytest.mark.parametrize("held", [None, [], "plan", 5, {}])
def test_content_that_is_no_plan_is_refused(tampered, held: Any) -> None:
    with pytest.raises(ArtefactError, match="is not a plan of this version"):
        hdmm.Plan.load(tampered(SMALL, text=lambda _: json.dumps(held)))


SPECS: dict[str, tuple[Any, str]] = {
    "no schema": (lambda spec: spec.pop("schema"), "the key 'schema' is missing"),
    "no products": (lambda spec: spec.update(workload=[]), "the workload is empty"),
    "an unknown attribute": (lambda spec: spec["workload"][0].update(product={"b": "identity"}), "'b' is not in the"),
    "an unknown word": (lambda spec: spec["workload"][0].update(product={"a": "pickle"}), "unknown word 'pickle'"),
    "a weight of zero": (lambda spec: spec["workload"][0].update(weight="0"), "expected a positive number"),
    "no rows": (lambda spec: spec["privacy"]["unit"].update(rows=0), "expected an integer from 1"),
    "more rows": (
        lambda spec: spec["privacy"]["unit"].update(rows=5),
        "states a sensitivity that its strategy does not",
    ),
    "a unit of other neighbours": (
        lambda spec: spec["privacy"]["unit"].update(neighbours="replace-one"),
        "states a sensitivity that its strategy does not",
    ),
    "people told apart by an attribute": (
        lambda spec: spec["privacy"]["unit"].update(id="a"),
        "id='a': is a column of the schema",
    ),
    "another noise": (lambda spec: spec["privacy"].update(noise="none"), "unknown word 'none'"),
}


@pytest.mark.parametrize(("change", "message"), SPECS.values(), ids=SPECS)
def test_a_plan_whose_spec_is_not_usable_is_refused(tampered, change, message: str) -> None:
    with pytest.raises(ArtefactError, match=rf"tampered\.plan: .*{message}"):
        hdmm.Plan.load(tampered(SMALL, lambda held: change(held["spec"])))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("stated", ["0", "1/2", "1000", "", "-1"])
def test_a_sensitivity_that_the_strategy_does_not_have_is_refused(tampered, family: str, stated: str) -> None:
    path = tampered(plan_of(family), lambda held: held.update(sensitivity=stated))
    with pytest.raises(ArtefactError, match="it states a sensitivity that its strategy does not have; plan again"):
        hdmm.Plan.load(path)


def test_a_larger_strategy_under_the_old_sensitivity_is_refused(tampered) -> None:
    def change(held: Any) -> None:
        held["strategy"]["blocks"][0]["weight"] = "1/10"

    with pytest.raises(ArtefactError, match="it states a sensitivity that its strategy does not have; plan again"):
        hdmm.Plan.load(tampered(plan_of("marginal"), change))


def npy(array: Any, **options: Any) -> str:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), **options)
    return base64.b64encode(buffer.getvalue()).decode()


def set_factor(text: str, sensitivity: str = "1"):
    def change(held: Any) -> None:
        held["strategy"]["factors"]["factor 1"] = text
        held["strategy"]["blocks"][0]["factors"] = ["factor 1"]
        held["sensitivity"] = sensitivity

    return change


def test_a_factor_that_can_answer_the_workload_is_loaded(tampered) -> None:
    path = tampered(SMALL, set_factor(npy([[1, 1], [1, -1]]), "2"))
    assert hdmm.Plan.load(path).mechanism.calibrate(hdmm.Budget("1")).scales == (Fraction(2),)


def marginals_of(*sets: list[str]) -> list[dict[str, Any]]:
    return [{"attributes": names, "factors": ["identity"] * len(names), "weight": "1"} for names in sets]


def sex_by(rows: Any):
    """A plan's one block with another factor for sex, its second attribute."""

    def change(held: Any) -> None:
        held["strategy"]["factors"]["factor 1"] = npy(rows)
        held["strategy"]["blocks"][0]["factors"][held["strategy"]["blocks"][0]["attributes"].index("sex")] = "factor 1"

    return change


def without_sex(held: Any) -> None:
    block = held["strategy"]["blocks"][0]
    place = block["attributes"].index("sex")
    del block["attributes"][place], block["factors"][place]


UNSUPPORTED: dict[str, tuple[str, Any]] = {
    "a factor of too little rank": ("kron", sex_by([[1, 1]])),
    "a factor that leaves a value out": ("kron", sex_by([[1, 0]])),
    "an attribute without a factor": ("kron", without_sex),
    "a marginal too few": ("marginal", lambda held: held["strategy"]["blocks"].pop(0)),
    "marginals of single attributes": (
        "marginal",
        lambda held: held["strategy"].update(blocks=marginals_of(["sex"], ["age"], ["education-num"])),
    ),
}


@pytest.mark.parametrize(("family", "change"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_a_strategy_that_cannot_answer_its_workload_is_refused(tampered, family: str, change) -> None:
    with pytest.raises(ArtefactError, match="its strategy cannot answer its workload; plan again"):
        hdmm.Plan.load(tampered(plan_of(family), change))


def npz() -> str:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.eye(2, dtype=np.int64))
    return base64.b64encode(buffer.getvalue()).decode()


def header_only(shape: tuple[int, ...]) -> str:
    """An npy file that promises an array and ends."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return base64.b64encode(buffer.getvalue()).decode()


def with_header(text: str) -> str:
    """An npy file of four integers whose header is not what it should be."""
    header = text.encode().ljust(117) + b"\n"
    return base64.b64encode(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(32)).decode()


FACTORS = {
    "an array of objects": npy(np.array([[1, {}], [0, 1]], object), allow_pickle=True),
    "pickle": base64.b64encode(pickle.dumps([[1, 0], [0, 1]])).decode(),
    "an archive of arrays": npz(),
    "the beginning of a zip file": base64.b64encode(b"PK\x03\x04" + bytes(60)).decode(),
    "nothing": "",
    "no base64": "not base64!",
    "base64 of text": base64.b64encode(b"identity").decode(),
    "an array cut short": npy(np.eye(2, dtype=np.int64))[:-16],
    "an array that is promised": header_only((2, 2)),
    "more memory than there is": header_only((2**45, 2)),
    "more memory than can be numbered": header_only((2**62, 2)),
    "a header with an open bracket": with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2"),
    "a header with nothing but brackets": with_header("(" * 110),
    "a header with a key of bytes": with_header("{'descr': '<i8', 'fortran_order': False, b'shape': (2, 2)}"),
    "a header with a key that is a list": with_header("{[]: 1}"),
    "a header with a type that is none": with_header("{'descr': '<,8', 'fortran_order': False, 'shape': (2, 2)}"),
    "a header with numbers of Python 2": with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (2L, 2L)}"),
    "a header with negative sizes": with_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-2, -2)}"),
    "a header of minus signs": with_header("-" * 5000 + "1"),
    "fractions": npy([[0.5, 0.0], [0.0, 0.5]]),
    "NaN": npy([[np.nan, 0.0], [0.0, 1.0]]),
    "booleans": npy([[True, False], [False, True]]),
    "texts": npy([["1", "0"], ["0", "1"]]),
    "32 bits": npy(np.eye(2, dtype=np.int32)),
    "the other byte order": npy(np.eye(2).astype(">i8")),
    "a vector": npy([1, 0]),
    "three dimensions": npy([[[1, 0], [0, 1]]]),
    "too many cells": npy(np.eye(3, dtype=np.int64)),
    "no queries": npy(np.zeros((0, 2), np.int64)),
}


@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
def test_a_factor_that_is_no_matrix_of_integers_is_refused(tampered, factor: str) -> None:
    with pytest.raises(ArtefactError, match=r"tampered\.plan: "):
        hdmm.Plan.load(tampered(SMALL, set_factor(factor)))


def test_an_array_of_objects_is_not_unpickled(tampered) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os._exit, (3,)

    factor = base64.b64encode(pickle.dumps(Trap())).decode()
    with pytest.raises(ArtefactError, match="does not hold an array of integers"):
        hdmm.Plan.load(tampered(SMALL, set_factor(factor)))


@pytest.mark.parametrize("entry", [-(2**63), -(2**62), 2**62], ids=["least", "half of it", "large"])
def test_a_factor_whose_sensitivity_overflows_does_not_pass_for_a_small_one(tampered, entry: int) -> None:
    """The column's sum modulo 2⁶⁴ is 1, while one record changes the first answers by 2⁶² or more."""
    one_cell = hdmm.Workload(hdmm.Schema(a=["x"])).add("q", a=hdmm.Identity())
    plan = hdmm.select(one_cell, operators=[hdmm.baselines.Identity()])
    rows = [[entry]] * (2**64 // abs(entry)) + [[1]]
    with pytest.raises(InputError, match=r"tampered\.plan: "):
        hdmm.Plan.load(tampered(plan, set_factor(npy(np.array(rows, np.int64)), "1")))


WEIGHTS = ["0", "-1", "1/0", "nan", "inf", "", "abc", "0x1", "1e999999"]


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_marginal_whose_weight_is_no_positive_number_is_refused(tampered, weight: str) -> None:
    def change(held: Any) -> None:
        held["strategy"]["blocks"][0]["weight"] = weight

    with pytest.raises(ArtefactError, match=r"tampered\.plan: "):
        hdmm.Plan.load(tampered(plan_of("marginal"), change))


BLOCKS: dict[str, tuple[Any, str]] = {
    "a marginal twice": (marginals_of(["sex"], ["sex"]), "its strategy is not usable: its blocks are not distinct"),
    "no marginals": ([], "its strategy is not usable"),
    "an unknown attribute": (marginals_of(["sxe"]), "'sxe' is not in the schema; did you mean 'sex'"),
    "an attribute twice": (marginals_of(["sex", "sex"]), "its strategy is not usable"),
    "attributes in the wrong order": (marginals_of(["age", "sex"]), "its strategy is not usable"),
    "a weight that is a number": ([{"attributes": [], "factors": [], "weight": 1}], "is not as expected"),
    "a block without a weight": ([{"attributes": ["sex"], "factors": ["identity"]}], "is not as expected"),
    "a factor too few": ([{"attributes": ["sex"], "factors": [], "weight": "1"}], "its strategy is not usable"),
    "an unknown factor": ([{"attributes": ["sex"], "factors": ["x"], "weight": "1"}], "its strategy is not usable"),
    "a block that is a list": ([[["sex"], "1"]], "is not as expected"),
}


@pytest.mark.parametrize(("blocks", "message"), BLOCKS.values(), ids=BLOCKS)
def test_marginals_that_do_not_fit_the_schema_are_refused(tampered, blocks: Any, message: str) -> None:
    with pytest.raises(ArtefactError, match=message):
        hdmm.Plan.load(tampered(plan_of("marginal"), lambda held: held["strategy"].update(blocks=blocks)))


def test_a_direct_strategy_of_fractions_is_refused(tampered) -> None:
    def change(held: Any) -> None:
        held["spec"]["workload"][0]["product"] = {"a": {"custom": [[0.5, 1]]}}
        held["strategy"] = {"family": "direct"}

    with pytest.raises(ArtefactError, match="its strategy is not usable: its queries are not integers"):
        hdmm.Plan.load(tampered(SMALL, change))


DIRECT = {
    "no blocks": ([], "it has no blocks"),
    "an unknown product": ([{"product": "none", "weight": "1"}], "product 'none' is not in the workload"),
    "a product too few": ([{"product": "by age", "weight": "1"}], "its strategy cannot answer its workload"),
    "another weight": (
        [{"product": "by age", "weight": "2"}, {"product": "by sex", "weight": "1"}],
        "a sensitivity that its strategy does not have",
    ),
    "a weight of zero": ([{"product": "by age", "weight": "0"}], "a block's weight is positive"),
    "a weight that is no fraction": ([{"product": "by age", "weight": "1e9"}], "a weight is not a fraction"),
    "a weight over zero": ([{"product": "by age", "weight": "1/0"}], "its strategy is not usable"),
}


def both_measured(**given: Any) -> hdmm.Plan:
    workload = hdmm.Workload(hdmm.Schema(sex=["F", "M"], age=range(4)))
    workload = workload.add("by age", age=hdmm.Prefix()).add("by sex", sex=hdmm.Identity())
    return hdmm.select(workload, operators=[hdmm.baselines.Plain()], **given)


@pytest.mark.parametrize(("blocks", "message"), DIRECT.values(), ids=DIRECT)
def test_products_measured_as_they_are_must_be_the_workloads_own(tampered, blocks: Any, message: str) -> None:
    with pytest.raises(ArtefactError, match=message):
        hdmm.Plan.load(tampered(both_measured(), lambda held: held["strategy"].update(blocks=blocks)))


def test_a_direct_strategy_without_blocks_has_the_weights_of_its_workload(tampered) -> None:
    plan = both_measured()
    older = hdmm.Plan.load(tampered(plan, lambda held: held["strategy"].pop("blocks")))
    assert [block.weight for block in older.mechanism.blocks] == [block.weight for block in plan.mechanism.blocks]


def test_an_older_direct_strategy_that_had_other_weights_is_refused(tampered) -> None:
    plan = both_measured(objective="max")
    with pytest.raises(ArtefactError, match="a sensitivity that its strategy does not have; plan again"):
        hdmm.Plan.load(tampered(plan, lambda held: held["strategy"].pop("blocks")))


@pytest.mark.parametrize("largest", [10**12, 10**17])
def test_a_plan_that_would_not_fit_into_memory_is_refused(tampered, largest: int) -> None:
    def change(held: Any) -> None:
        held["spec"]["schema"]["a"] = {"min": 0, "max": largest}
        held["spec"]["workload"][0]["product"] = {"a": {"where": "a >= 5"}}

    with pytest.raises(InputError, match=r"values fit: declare bins"):
        hdmm.Plan.load(tampered(SMALL, change))


def test_an_oversized_file_is_refused_before_it_is_read(saved, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(SMALL)
    monkeypatch.setattr(_artefact, "LARGEST", path.stat().st_size - 1)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("the file was read"))
    with pytest.raises(ArtefactError, match=r"people\.plan: \d+ bytes are more than a plan file may have"):
        hdmm.Plan.load(path)


def test_a_file_of_exactly_the_largest_size_is_read(saved, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(SMALL)
    monkeypatch.setattr(_artefact, "LARGEST", path.stat().st_size)
    assert described(hdmm.Plan.load(path)) == described(SMALL)


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x.plan").write_text("precious")
    with pytest.raises(ArtefactError, match=r"x\.plan: exists already and is never overwritten; choose another name"):
        SMALL.save(tmp_path / "x.plan")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.plan", "precious")]


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_artefact, "check_new", lambda _: None)
    (tmp_path / "x.plan").write_text("precious")
    with pytest.raises(ArtefactError, match="exists already"):
        SMALL.save(tmp_path / "x.plan")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.plan", "precious")]


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "x.plan").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtefactError, match="exists already"):
        SMALL.save(tmp_path / "x.plan")
    assert not (tmp_path / "elsewhere").exists()


def test_a_missing_parent_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="its parent directory does not exist; create it first"):
        SMALL.save(tmp_path / "nowhere" / "x.plan")


def failing(call: int):
    """An fsync that fails when it is called for that time."""
    calls = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == call:
            raise OSError(28, "No space left on device")

    return fsync


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(1))
    with pytest.raises(FaultError, match=r"x\.plan: cannot be written: No space left on device"):
        SMALL.save(tmp_path / "x.plan")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_durable_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(2))
    with pytest.raises(FaultError, match="No space left on device"):
        SMALL.save(tmp_path / "x.plan")


def test_saving_leaves_one_file(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "x.plan")
    assert [file.name for file in tmp_path.iterdir()] == ["x.plan"]


def symmetric() -> hdmm.Plan:
    return hdmm.select(WORKLOAD, "gaussian", operators=[hdmm.operators.Symmetric()])


def _block(held: Any, key: str, change: Any) -> None:
    """Change one entry of the first block that has attributes."""
    block = next(block for block in held["strategy"]["blocks"] if block["attributes"])
    block[key] = change(block[key]) if callable(change) else change


ORBITS = {
    "kinds that are missing": lambda held: held["strategy"].update(kinds={}),
    "kinds of too few cells": lambda held: held["strategy"]["kinds"].update(age=npy([0, 1])),
    "kinds that are fractions": lambda held: held["strategy"]["kinds"].update(
        age=npy(np.zeros(SCHEMA.sizes[SCHEMA.axis("age")]))
    ),
    "a kind without cells": lambda held: held["strategy"]["kinds"].update(
        age=npy(np.full(SCHEMA.sizes[SCHEMA.axis("age")], 1))
    ),
    "a kind beyond all": lambda held: held["strategy"]["kinds"].update(
        age=npy(np.full(SCHEMA.sizes[SCHEMA.axis("age")], 2**60))
    ),
    "differences within no kind": lambda held: _block(held, "within", lambda within: [99] * len(within)),
    "differences within a negative kind": lambda held: _block(held, "within", lambda within: [-1] * len(within)),
    "too few parts": lambda held: _block(held, "within", []),
    "no queries": lambda held: _block(held, "queries", None),
    "queries of fractions": lambda held: _block(held, "queries", npy([[0.5]])),
    "queries of another width": lambda held: _block(held, "queries", npy([[1] * 77])),
    "an unknown attribute": lambda held: _block(held, "attributes", ["sxe"]),
    "no blocks": lambda held: held["strategy"].update(blocks=[]),
    "a block twice": lambda held: held["strategy"]["blocks"].append(held["strategy"]["blocks"][0]),
    "a block less": lambda held: held["strategy"]["blocks"].pop(),
    "a weight of nothing": lambda held: _block(held, "weight", "0"),
}


@pytest.mark.parametrize("change", ORBITS.values(), ids=ORBITS)
def test_queries_over_kinds_that_do_not_fit_are_refused(tampered, change: Any) -> None:
    with pytest.raises(ArtefactError, match=r"tampered\.plan: "):
        hdmm.Plan.load(tampered(symmetric(), change))


def test_queries_over_kinds_are_loaded_as_they_were_saved(saved) -> None:
    plan = symmetric()
    assert described(hdmm.Plan.load(saved(plan))) == described(plan)
