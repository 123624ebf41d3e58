"""Options of attributes: what they mean, what contradicts itself, and that specs and plans keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import hdmm
from hdmm.errors import SchemaError, SpecError, WorkloadError
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed, Merged, Schema

SEX = Listed(["1", "2"], labels={"1": "Male", "2": "Female"}, aliases={"1": ["m"]}, missing=["9"])


def codes(domain: Domain, *texts: str) -> list[int]:
    return domain.encode([text.encode() for text in texts]).tolist()


def test_missing_texts_are_counted_as_empty_fields_are() -> None:
    for domain in (Listed(["a"], missing=["NA", "."]), Boolean(missing=["NA", "."]), Bins([0, 1], missing=["NA", "."])):
        last = domain.size - 1
        assert codes(domain, "", " NA ", ".", "na", "N A") == [last, last, last, -1, -1]


def test_a_missing_text_is_missing_even_if_other_values_are_counted() -> None:
    assert codes(Listed(["a"], other=True, missing=["NA"]), "a", "b", "NA", "") == [0, 1, 2, 2]


def test_a_missing_number_is_missing_however_it_is_written() -> None:
    texts = ("-9", "-09", "-9.0", "-90e-1", "-9.5", "9")
    assert codes(Integers(0, 1, missing=["-9"]), *texts) == [2, 2, 2, 2, -1, -1]
    assert codes(Bins([0, 1], missing=["-9"]), *texts) == [1, 1, 1, 1, -1, -1]
    assert codes(Listed(["0"], missing=["-9"]), *texts) == [1, -1, -1, -1, -1, -1]


def test_a_missing_number_includes_the_floats_nearest_to_it() -> None:
    assert codes(Bins([0, 1], missing=["9.9"]), f"{9.9:.60f}", "9.9", "9.90000000000000001") == [1, 1, -1]


def test_decimals_admit_whole_values_however_they_are_written() -> None:
    texts = ("45.0", "45.", "4.5e1", "45", "45.5", "450e-1", ".0", "45.0000000000000000000000000001", "4.5e-1", "1e999")
    assert codes(Integers(0, 99, decimals=True), *texts) == [45, 45, 45, 45, -1, 45, 0, -1, -1, -1]
    assert codes(Integers(0, 99), *texts) == [-1, -1, -1, 45, -1, -1, -1, -1, -1, -1]


def test_case_is_ignored_by_the_rules_of_unicode() -> None:
    domain = Listed(["Straße", "M"], ignore_case=True, aliases={"M": ["MÄNNLICH"]}, missing=["Na"])
    assert codes(domain, "STRASSE", "m", "männlich", "na", "mannlich") == [0, 1, 1, 2, -1]
    assert domain.encode([b"m\xff", b"\xff", "Ｍ".encode()]).tolist() == [-1, -1, -1]
    assert domain.find("strasse") == 0


def test_numbers_are_read_as_they_are_declared() -> None:
    english = Integers(0, 99_999, thousands=",", currency="$")
    assert codes(english, "1,234", "1234", "$1,234", "1,234 $", "$ 1,234", "12,34", "1,2345") == [1234] * 5 + [-1, -1]
    german = Bins([0, 1000, 2000], thousands=".", point=",", currency="€")
    assert codes(german, "999,99 €", "1.999,99", "1.000", "1,5", "1.5", "€ 1.5", "€5€") == [0, 1, 1, 0, -1, -1, -1]
    assert codes(Integers(-5, 5000, thousands="."), "1.234", "1.23", "-5", "+1.234") == [1239, -1, 0, 1239]
    assert codes(Integers(-5, 9, currency="kr"), "-5 kr", "kr -5", "-kr5", "-kr-5", "5kr.", "kr") == [
        0,
        0,
        0,
        -1,
        -1,
        -1,
    ]
    assert codes(Integers(0, 9999, thousands="\u202f"), "1\u202f234", "1 234") == [1234, -1]


def test_values_in_questions_are_plain_numbers_however_records_write_them() -> None:
    domain = Integers(0, 2000, thousands=".", levels={"size": {"small": [(0, 999)], "large": [(1000, 2000)]}})
    assert domain.code("1234") == 1234
    with pytest.raises(WorkloadError):
        domain.code("1.234")


REFUSED: dict[str, tuple[Any, str]] = {
    "a missing value": (lambda: Listed(["NA"], missing=["NA"]), "missing='NA': is also the value 'NA'"),
    "a missing alias": (
        lambda: Listed(["a"], aliases={"a": ["x"]}, missing=["x"]),
        "missing='x': is also the value 'a'",
    ),
    "a missing case": (
        lambda: Listed(["na"], ignore_case=True, missing=["NA"]),
        "missing='NA': is also the value 'na'",
    ),
    "a missing integer": (lambda: Integers(0, 99, missing=["99"]), "missing='99': is also the value 99"),
    "a missing decimal": (
        lambda: Integers(0, 99, decimals=True, missing=["9.0"]),
        "missing='9.0': is also the value 9",
    ),
    "a missing bin": (lambda: Bins([0, 9], missing=["5.5"]), r"missing='5.5': is also the value '\[0, 9\)'"),
    "a missing truth": (lambda: Boolean(missing=["No"]), "missing='No': is also the value False"),
    "missing nothing": (lambda: Boolean(missing=[]), "missing=.*: expected true, or a list of texts"),
    "missing text": (lambda: Boolean(missing="NA"), "missing='NA': expected true, or a list of texts"),
    "missing twice": (lambda: Boolean(missing=["NA", " NA"]), "missing='NA': is listed twice"),
    "missing blank": (lambda: Boolean(missing=[" "]), "missing '': expected a text that is not empty"),
    "two cases": (lambda: Listed(["a", "A"], ignore_case=True), "values 'a' and 'A' are the same if case is ignored"),
    "an alias of two": (
        lambda: Listed(["a", "b"], aliases={"a": ["x"], "b": ["x"]}),
        "alias 'x' of 'b': means 'a' already",
    ),
    "an alias of two cases": (
        lambda: Listed(["a", "b"], ignore_case=True, aliases={"a": ["x"], "b": ["X"]}),
        "alias 'X' of 'b': means 'a' already",
    ),
    "an alias that is a value": (
        lambda: Listed(["a", "b"], aliases={"a": ["b"]}),
        "alias 'b' of 'a': is a listed value too",
    ),
    "an alias in another case": (
        lambda: Listed(["a", "b"], ignore_case=True, aliases={"a": ["B"]}),
        "alias 'B' of 'a': means 'b' already",
    ),
    "its own alias": (lambda: Listed(["a"], aliases={"a": ["a"]}), "alias 'a' of 'a': is a listed value too"),
    "an alias twice": (lambda: Listed(["a"], aliases={"a": ["x", "x"]}), "alias 'x' of 'a': is listed twice"),
    "an alias of nothing": (
        lambda: Listed(["Male"], aliases={"male": ["m"]}),
        "not a listed value; did you mean 'Male'",
    ),
    "aliases of nothing": (lambda: Listed(["a"], aliases={"a": []}), "aliases of 'a': expected a text or a list"),
    "no aliases": (lambda: Listed(["a"], aliases=["a"]), "aliases=.*: expected a mapping"),  # type: ignore[arg-type]
    "an alias of a cell": (lambda: Listed(["a"], aliases={"a": ["other"]}, other=True), "'other' is both listed and"),
    "a label of two": (lambda: Listed(["a", "b"], labels={"a": "x", "b": "x"}), "label 'x': is that of 'a' and of 'b'"),
    "a label that is a value": (
        lambda: Listed(["a", "b"], labels={"a": "b"}),
        "label 'b' of 'a': also means the value 'b'",
    ),
    "a label that is a number": (lambda: Integers(0, 5, labels={"1": "2"}), "label '2' of '1': also means the value 2"),
    "a label beyond": (lambda: Integers(0, 5, labels={"1": "7.5"}), "label '7.5' of 1: is another number"),
    "a label of a cell": (lambda: Listed(["a"], labels={"a": "missing"}, missing=True), "is the name of an extra cell"),
    "a label of nothing": (lambda: Integers(0, 5, labels={"9": "x"}), "label of '9': it is not a value"),
    "a blank label": (lambda: Listed(["a"], labels={"a": " "}), "label of 'a' '': expected a text that is not empty"),
    "a label twice": (lambda: Integers(0, 9, labels={"1": "x", "01": "y"}), "label of '01': is declared twice"),
    "a comma": (lambda: Merged(x=Integers(0, 5, labels={"1": "a, b"})), "label 'a, b' holds a comma"),
    "the same mark": (lambda: Bins([0, 1], thousands=",", point=","), r"thousands=',' and point=',', are the same"),
    "the default point": (
        lambda: Bins([0, 1], thousands="."),
        r"thousands='\.' and point='\.', the default, are the same",
    ),
    "a point of integers": (lambda: Integers(0, 1, point=","), "point=',': integers have no decimal point"),
    "a digit": (lambda: Integers(0, 1, thousands="0"), "thousands='0': expected one character"),
    "two marks": (lambda: Integers(0, 1, thousands=",,"), "thousands=',,': expected one character"),
    "a sign": (lambda: Integers(0, 1, thousands="-"), "thousands='-': expected one character"),
    "a long currency": (lambda: Integers(0, 1, currency="dollars US"), "currency='dollars US': expected up to 8 char"),
    "a number as currency": (lambda: Integers(0, 1, currency="$1"), r"currency='\$1': expected up to 8 characters"),
    "overlapping signs": (
        lambda: Bins([0, 1], thousands=",", currency="kr,"),
        "currency='kr,' and thousands=',' overlap",
    ),
    "a point in a currency": (lambda: Bins([0, 1], currency="kr."), r"currency='kr\.' and point='\.' overlap"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_contradiction_is_refused_and_named(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(SchemaError, match=message):
        make()


def test_an_alias_that_only_differs_in_case_may_be_declared_although_case_is_ignored() -> None:
    assert codes(Listed(["Male"], ignore_case=True, aliases={"Male": ["male", "m"]}), "MALE", "M") == [0, 0]


def test_tables_show_labels_and_questions_take_values_labels_and_aliases() -> None:
    schema = Schema(sex=SEX, age=Integers(0, 2, labels={"2": "2 or more"}))
    w = hdmm.Workload(schema).add("q", sex=hdmm.Identity(), age=hdmm.Prefix())
    assert SEX.labels() == ["Male", "Female", "missing"]
    assert SEX.records() == ["1", "2", "missing"]
    assert schema["age"].labels() == ["0", "1", "2 or more"]
    assert schema["age"].records() == [0, 1, 2]
    assert hdmm.Prefix().labels("age", schema["age"]) == ["<= 0", "<= 1", "<= 2 or more"]
    assert hdmm.AllRange().labels("sex", SEX) == ["Male", "Male..Female", "Female"]
    for text in ("1", "Male", "m"):
        assert hdmm.Where(f"sex = '{text}'").matrix("sex", SEX).dense().tolist() == [[1, 0, 0]]
        assert hdmm.Values([text]).labels("sex", SEX) == ["Male"]
    for literal in ("2", "'2 or more'", "1.5"):
        assert hdmm.Where(f"age >= {literal}").matrix("age", schema["age"]).dense().tolist() == [[0, 0, 1]]
    assert hdmm.Ranges([("1", "2 or more")]).labels("age", schema["age"]) == ["1..2 or more"]
    assert w.query_count == 9
    with pytest.raises(WorkloadError, match="did you mean 'Male'"):
        SEX.code("Maale")


def test_a_permuted_order_keeps_labels_and_spellings() -> None:
    permuted = hdmm.Permuted(hdmm.Prefix() | hdmm.Values(["m"]), order=["Female", "1"])
    assert permuted.labels("sex", SEX) == ["<= Female", "<= Male", "Male"]
    assert permuted.matrix("sex", SEX).dense().tolist() == [[0, 1, 0], [1, 1, 0], [1, 0, 0]]


def test_merged_attributes_show_the_labels_of_their_parts() -> None:
    merged = Merged(sex=SEX, age=range(2))
    assert merged.labels() == ["Male, 0", "Male, 1", "Female, 0", "Female, 1", "missing, 0", "missing, 1"]
    assert merged.records()[:2] == ["1, 0", "1, 1"]
    assert [merged.find(text) for text in ("Female, 1", "2, 1", "missing, 0", "m, 0")] == [3, 3, 4, -1]


def test_levels_may_name_labels_and_aliases() -> None:
    domain = Listed(["1", "2"], labels={"1": "Male"}, aliases={"2": ["f"]}, levels={"x": {"a": ["Male"], "b": ["f"]}})
    assert domain.levels["x"].codes.tolist() == [0, 1]


OPTIONS = Schema(
    a=Listed(["1", "2"], ignore_case=True, aliases={"1": ["m", "M."]}, labels={"1": "Male"}, missing=["NA", "-9"]),
    b=Integers(0, 9, decimals=True, thousands=" ", point=",", currency="kr", labels={"9": "9 or more"}, missing=["x"]),
    c=Bins([0, 1], closed=True, thousands="'", currency="$", other=True, missing=["-9"]),
    d=Boolean(missing=["NA"]),
    e=Merged(f=Integers(0, 3, missing=["NA"]), g=Listed(["x"], labels={"x": "y"})),
    h=Listed(["1"], missing=True),
)


def test_a_spec_and_a_plan_keep_all_options(tmp_path: Path) -> None:
    workload = hdmm.Workload(OPTIONS).add("q", a=hdmm.Identity())
    hdmm.Spec(OPTIONS, workload).save(tmp_path / "a.yaml")
    assert hdmm.Spec.load(tmp_path / "a.yaml").workload == workload
    hdmm.select(workload).save(tmp_path / "a.plan")
    loaded = hdmm.Plan.load(tmp_path / "a.plan").workload.schema
    assert loaded == OPTIONS
    assert hash(loaded) == hash(OPTIONS)


def test_every_option_makes_another_domain() -> None:
    variants: list[Domain] = [
        Listed(["1"]),
        Listed(["1"], missing=True),
        Listed(["1"], missing=["NA"]),
        Listed(["1"], missing=["NA", "x"]),
        Listed(["1"], ignore_case=True),
        Listed(["1"], aliases={"1": ["a"]}),
        Listed(["1"], labels={"1": "a"}),
        Integers(0, 1),
        Integers(0, 1, decimals=True),
        Integers(0, 1, thousands=","),
        Integers(0, 1, currency="$"),
        Integers(0, 1, labels={"1": "a"}),
        Integers(0, 1, decimals=True, point=","),
        Bins([0, 1]),
        Bins([0, 1], point=","),
    ]
    assert len(set(variants)) == len(variants)


YAML = """
schema:
  sex: {{{}}}
workload:
  - {{name: q, product: {{sex: identity}}}}
"""


@pytest.mark.parametrize(
    ("declared", "domain"),
    [
        ("values: [1, 2], missing: true", Listed(["1", "2"], missing=True)),
        ('values: [1, 2], missing: [NA, "-9", ., "NULL"]', Listed(["1", "2"], missing=["NA", "-9", ".", "NULL"])),
        ("values: [1, 2], labels: {1: Male, 2: Female}", Listed(["1", "2"], labels={"1": "Male", "2": "Female"})),
        ("values: [Male], aliases: {Male: [M, man]}", Listed(["Male"], aliases={"Male": ["M", "man"]})),
        ("values: [Male], aliases: {Male: M}", Listed(["Male"], aliases={"Male": ["M"]})),
        ("values: [Male], ignore_case: true", Listed(["Male"], ignore_case=True)),
        ("min: 0, max: 9, decimals: true, point: ','", Integers(0, 9, decimals=True, point=",")),
        ("min: 0, max: 9, thousands: ',', currency: $", Integers(0, 9, thousands=",", currency="$")),
        ("min: 0, max: 9, labels: {9: 9 or more}", Integers(0, 9, labels={"9": "9 or more"})),
        ("bins: [0, 1], thousands: ., point: ','", Bins([0, 1], thousands=".", point=",")),
        ("boolean: true, missing: [NA]", Boolean(missing=["NA"])),
        ("merged: {x: {boolean: true, missing: [NA]}}", Merged(x=Boolean(missing=["NA"]))),
    ],
)
def test_options_in_yaml_are_those_of_python(declared: str, domain: Domain, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML.format(declared))
    assert hdmm.Spec.load(tmp_path / "a.yaml").workload.schema["sex"] == domain


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("values: [a], missing: NA", "line 3: schema.sex.missing: 'NA' is neither true nor false"),
        ("values: [a], missing: [NULL]", 'line 3: a value is missing; if the text NULL is meant, write "NULL"'),
        ("values: [a], decimals: true", "unknown key 'decimals'"),
        ("min: 0, max: 1, ignore_case: true", "unknown key 'ignore_case'"),
        ("values: [a, b], aliases: {a: [x], b: [x]}", "line 3: schema.sex: alias 'x' of 'b': means 'a' already"),
        ("values: [a], labels: [a]", "schema.sex.labels: expected a mapping"),
        ("bins: [0, 1], labels: {0: a}", "unknown key 'labels'"),
    ],
)
def test_mistakes_in_yaml_are_reported_with_their_line(declared: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML.format(declared))
    with pytest.raises(SpecError, match=message):
        hdmm.Spec.load(tmp_path / "a.yaml")


def test_synthetic_records_write_values_that_are_read_back(tmp_path: Path) -> None:
    schema = Schema(sex=Listed(["1", "2"], labels={"1": "Male", "2": "Female"}), age=Integers(0, 2, labels={"2": "2+"}))
    (tmp_path / "a.csv").write_text("sex,age\n" + "1,2\n" * 30 + "2,0\n" * 20)
    plan = hdmm.select(hdmm.Workload(schema).add("q", sex=hdmm.Identity(), age=hdmm.Identity()))
    with patch("hdmm.measure.add_noise", lambda answers, kind, scale: answers):
        release = hdmm.release(plan, tmp_path / "a.csv", hdmm.Budget("1"), ledger=None)
        assert release.table("q")["sex"].to_pylist() == ["Male"] * 3 + ["Female"] * 3
        assert set(release.table("q")["age"].to_pylist()) == {"0", "1", "2+"}
        synthetic = release.synthesize(rows=50, seed=1)
        again = hdmm.release(plan, synthetic, hdmm.Budget("1"), ledger=None)
    assert again.table("q")["answer"].to_pylist() == release.table("q")["answer"].to_pylist()
