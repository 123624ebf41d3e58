"""Levels and merged attributes in specs: read from YAML, written back in a compact form, and nothing lost between."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdmm.errors import SpecError
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed, Merged, Schema
from hdmm.spec.spec import Spec
from hdmm.workload import Workload

PEOPLE = """\
schema:
  age: {min: 0, max: 114, levels: {age group: {child: [[0, 17]], adult: [[18, 64]], senior: [[65, 114]]}}}
  county:
    values: ["001", "003", "005"]
    other: true
    levels:
      state: {CA: ["001", 003], NY: ["005"]}
      coast: {west: [CA], east: [NY]}
  income: {bins: [0, 10, 20.5], levels: {half: {low: [[0, 10]], high: ["[10, 20.5)"]}}}
  hispanic: {boolean: true, missing: true, levels: {any: {all: [true, false]}}}
  race: {merged: {white: boolean, black: boolean, asian: {boolean: true}}}
  home: {merged: {rooms: {min: 1, max: 9, levels: {size: {small: [1, 2], large: [[3, 9]]}}}, kind: [house, flat]}}
workload:
  - {name: total}
"""
SCHEMA = Schema(
    age=Integers(0, 114, levels={"age group": {"child": range(18), "adult": range(18, 65), "senior": range(65, 115)}}),
    county=Listed(
        ["001", "003", "005"],
        other=True,
        levels={"state": {"CA": ["001", "003"], "NY": ["005"]}, "coast": {"west": ["001", "003"], "east": ["005"]}},
    ),
    income=Bins([0, 10, 20.5], levels={"half": {"low": [(0, 10)], "high": [(10, 20.5)]}}),
    hispanic=Boolean(missing=True, levels={"any": {"all": [False, True]}}),
    race=Merged(white=[False, True], black=[False, True], asian=[False, True]),
    home=Merged(
        rooms=Integers(1, 9, levels={"size": {"small": [(1, 2)], "large": [(3, 9)]}}),
        kind=["house", "flat"],
    ),
)


@pytest.fixture
def load(tmp_path: Path):
    def of(text: str) -> Spec:
        (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
        return Spec.load(tmp_path / "spec.yaml")

    return of


def spec_of(**attributes: object) -> Spec:
    schema = Schema(attributes)
    return Spec(schema, Workload(schema).add("total"))


def test_yaml_and_python_declare_the_same_levels_and_parts(load) -> None:
    assert load(PEOPLE).schema == SCHEMA


def test_levels_and_parts_survive_saving_and_loading(tmp_path: Path) -> None:
    spec = spec_of(**SCHEMA)
    spec.save(tmp_path / "spec.yaml")
    assert Spec.load(tmp_path / "spec.yaml") == spec


WRITTEN: dict[str, tuple[Domain, Any]] = {
    "runs of integers": (
        Integers(0, 9, levels={"l": {"x": [0, 1, 2, 5, 7, 8], "y": [3, 4, 6, 9]}}),
        {"min": 0, "max": 9, "levels": {"l": {"x": [[0, 2], 5, [7, 8]], "y": [[3, 4], 6, 9]}}},
    ),
    "runs of bins": (
        Bins([0, 1, 2.5, 4], missing=True, levels={"l": {"x": [(0, 2.5)], "y": [(2.5, 4)]}}),
        {
            "bins": ["0", "1", "2.5", "4"],
            "missing": True,
            "levels": {"l": {"x": [["0", "2.5"]], "y": [["2.5", "4"]]}},
        },
    ),
    "groups of earlier levels": (
        Listed(["a", "b"], levels={"l": {"x": ["a"], "y": ["b"]}, "m": {"z": ["x", "y"]}}),
        {"values": ["a", "b"], "levels": {"l": {"x": ["a"], "y": ["b"]}, "m": {"z": ["a", "b"]}}},
    ),
    "values that earlier groups are called like": (
        Listed(["a", "b"], levels={"l": {"a": ["b"], "c": ["a"]}, "m": {"z": [("a", "b")]}}),
        {"values": ["a", "b"], "levels": {"l": {"a": ["b"], "c": ["a"]}, "m": {"z": [["a", "a"], "b"]}}},
    ),
    "integers that earlier groups are called like": (
        Integers(0, 2, levels={"l": {0: [1], 1: [0, 2]}, "m": {"x": [(0, 0), 2], "y": [(1, 1)]}}),
        {"min": 0, "max": 2, "levels": {"l": {"0": [1], "1": [0, 2]}, "m": {"x": [[0, 0], 2], "y": [[1, 1]]}}},
    ),
    "truth values": (
        Boolean(levels={"l": {"False": [True], "x": [False]}, "m": {"all": [(False, True)]}}),
        {
            "boolean": True,
            "levels": {"l": {"False": ["True"], "x": ["False"]}, "m": {"all": [["False", "False"], "True"]}},
        },
    ),
    "parts": (
        Merged(a=Boolean(), b=Integers(0, 1, other=True, levels={"l": {"x": [(0, 1)]}})),
        {
            "merged": {
                "a": {"boolean": True},
                "b": {"min": 0, "max": 1, "other": True, "levels": {"l": {"x": [[0, 1]]}}},
            }
        },
    ),
}


@pytest.mark.parametrize(("domain", "data"), WRITTEN.values(), ids=WRITTEN)
def test_levels_are_written_in_a_compact_form(domain: Domain, data: Any) -> None:
    assert spec_of(attribute=domain).data()["schema"] == {"attribute": data}


@pytest.mark.parametrize("domain", [case[0] for case in WRITTEN.values()], ids=WRITTEN)
def test_what_is_written_reads_back_to_the_same_domain(tmp_path: Path, domain: Domain) -> None:
    spec = spec_of(attribute=domain)
    spec.save(tmp_path / "spec.yaml")
    assert Spec.read(spec.data()) == Spec.load(tmp_path / "spec.yaml") == spec


@st.composite
def grouped(draw: st.DrawFn, place: int) -> Domain:
    """A domain of one of the kinds, with levels that put its values into groups at random."""
    extra: Mapping[str, Any] = {"other": draw(st.booleans()), "missing": draw(st.booleans())}
    size = draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["listed", "integers", "bins", "boolean"]))
    names = ["1", "2", "-1", "no", "a", "True", "[0, 1)", "false", "x: y"]
    values = draw(st.permutations(names))[:size]
    bare: Domain = {
        "listed": Listed(values, **extra),
        "integers": Integers(-2, size - 3, **extra),
        "bins": Bins(range(size + 1), **extra),
        "boolean": Boolean(**extra),
    }[kind]
    levels: dict[str, dict[str, list[Any]]] = {}
    for number in range(draw(st.integers(0, 3))):
        labels = draw(st.permutations(names))[: draw(st.integers(1, 3))]
        groups: dict[str, list[Any]] = {}
        for code in range(bare.declared):
            value = bare.value(code)
            pair = (code, code + 1) if isinstance(bare, Bins) else (value, value)
            groups.setdefault(draw(st.sampled_from(labels)), []).append(pair)
        levels[f"level {place} {number}"] = groups
    if isinstance(bare, Listed):
        return Listed(bare.values, levels=levels, **extra)
    if isinstance(bare, Integers):
        return Integers(bare.min, bare.max, levels=levels, **extra)
    return Bins(bare.edges, levels=levels, **extra) if isinstance(bare, Bins) else Boolean(levels=levels, **extra)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(domains=st.tuples(grouped(0), grouped(1), grouped(2)))
def test_any_levels_survive_saving_and_loading(tmp_path: Path, domains: tuple[Domain, Domain, Domain]) -> None:
    one, two, three = domains
    values = [value for part in (one, two) if isinstance(part, Listed) for value in part.values]
    attributes = {"a": one, "b": two} if any("," in value for value in values) else {"x": Merged(a=one, b=two)}
    spec = spec_of(**attributes, c=three)
    spec.save(tmp_path / "spec.yaml")
    assert Spec.load(tmp_path / "spec.yaml") == Spec.read(spec.data()) == spec


def test_a_level_of_many_integers_takes_little_room(tmp_path: Path) -> None:
    states = {f"state {state}": range(60 * state, 60 * state + 60) for state in range(50)}
    spec_of(county=Integers(0, 2999, levels={"state": states})).save(tmp_path / "spec.yaml")
    assert (tmp_path / "spec.yaml").stat().st_size < 3000


def test_a_level_of_many_listed_values_takes_as_much_room_again_as_the_values(tmp_path: Path) -> None:
    counties = [f"{number:05}" for number in range(3000)]
    spec_of(county=counties).save(tmp_path / "plain.yaml")
    states = {f"state {state}": counties[60 * state :][:60] for state in range(50)}
    regions = {f"region {region}": [f"state {region + step}" for step in range(10)] for region in range(0, 50, 10)}
    spec_of(county=Listed(counties, levels={"state": states, "region": regions})).save(tmp_path / "levels.yaml")
    plain, levels = ((tmp_path / name).stat().st_size for name in ("plain.yaml", "levels.yaml"))
    assert levels < 4 * plain


MISTAKES = {
    "levels that are a list": (
        "{min: 0, max: 9, levels: [x]}",
        "schema.a.levels: expected a mapping",
    ),
    "groups that are a list": ("{min: 0, max: 9, levels: {l: [x]}}", "schema.a.levels.l: expected a mapping"),
    "members that are a text": ("{min: 0, max: 9, levels: {l: {x: 0}}}", "schema.a.levels.l.x: expected a list"),
    "a member that is a mapping": (
        "{min: 0, max: 9, levels: {l: {x: [0, {a: b}]}}}",
        "schema.a.levels.l.x[2]: expected a single value",
    ),
    "a range of lists": ("{min: 0, max: 9, levels: {l: {x: [[[0], 9]]}}}", "levels.l.x[1]: expected a single value"),
    "a range of three": (
        "{min: 0, max: 9, levels: {l: {x: [[0, 1, 9]]}}}",
        "schema.a: level 'l': group 'x': ['0', '1', '9']: a range is a pair (low, high), both ends included",
    ),
    "a value in two groups": (
        "{min: 0, max: 9, levels: {l: {x: [[0, 5]], y: [[5, 9]]}}}",
        "schema.a: level 'l': value 5 is in two groups, 'x' and 'y'; put every value into exactly one group",
    ),
    "a value in no group": ("{values: [p, q], levels: {l: {x: [p]}}}", "schema.a: level 'l': value 'q' is in no group"),
    "a level twice": ("{min: 0, max: 0, levels: {l: {x: [0]}, l: {x: [0]}}}", "the key 'l' stands twice"),
    "levels beside a list": ("{values: [p], level: {l: {x: [p]}}}", "unknown key 'level'; did you mean 'levels'?"),
    "a merged attribute with levels": ("{merged: {p: boolean}, levels: {}}", "schema.a.levels: unknown key 'levels'"),
    "a merged attribute with other": ("{merged: {p: boolean}, other: true}", "schema.a.other: unknown key 'other'"),
    "parts that are a list": ("{merged: [p, q]}", "schema.a.merged: expected a mapping"),
    "no parts": ("{merged: {}}", "schema.a: a merged attribute needs parts"),
    "a part that is none": (
        "{merged: {p: integer}}",
        "schema.a.merged.p: 'integer' does not say which values there are",
    ),
    "a part with a wrong domain": (
        "{merged: {p: {min: 1, max: 0}}}",
        "schema.a.merged.p: min: 1, max: 0: the domain is",
    ),
    "a part that is merged": ("{merged: {p: {merged: {q: boolean}}}}", "schema.a: part 'p': it is merged itself"),
    "merged and values": ("{merged: {p: boolean}, values: [x]}", "expected exactly one of values, min and max, bins"),
    "a part with the name of an attribute": (
        "{merged: {sex: [F, M], p: boolean}}",
        "schema: part 'sex' of attribute 'a' has the name of attribute 'sex'",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_levels_or_parts_is_shown_with_its_line(load, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(f"schema: {{sex: [F, M], a: {text}}}\nworkload: [{{name: total}}]\n")
    assert "spec.yaml, line 1: " in str(caught.value)
    assert message in str(caught.value)


def test_the_line_is_that_of_the_part(load) -> None:
    with pytest.raises(SpecError, match=r"line 5: schema\.race\.merged\.black\.max: 'x' is not an integer"):
        load("schema:\n  race:\n    merged:\n      white: boolean\n      black: {min: 0, max: x}\nworkload: []\n")
