"""Drafts as YAML that is read back as it was meant."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.draft import Draft, PrivacyUnit, propose_noise, propose_questions
from hdmm.proposal.flow import flow
from hdmm.proposal.render import render
from hdmm.spec.yaml import load_yaml

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def read(tmp_path: Path, text: str):
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load_yaml(path)[0]


@given(st.lists(texts, min_size=1), st.dictionaries(texts, texts))
def test_every_text_is_read_back(tmp_path_factory, items, mapping):
    data = {"list": items, "mapping": mapping}
    assert read(tmp_path_factory.mktemp("yaml"), flow(data) + "\n") == data


@pytest.mark.parametrize(
    "text", ["null", "NULL", "~", "true", "no", "007", "1_000", "a: b", "# x", "- a", "'q'", '"', "é"]
)
def test_texts_that_yaml_could_mistake_are_read_back(tmp_path, text):
    assert read(tmp_path, flow({"x": [text]})) == {"x": [text]}


def draft(*attributes: Attribute, left_out: tuple[LeftOut, ...] = (), unit: PrivacyUnit | None = None) -> Draft:
    questions = propose_questions(attributes)
    noise = propose_noise(attributes, questions)
    return Draft([*attributes, *left_out], questions, noise, unit or PrivacyUnit(), ["Made in a test."])


@given(st.dictionaries(texts, st.lists(texts, min_size=1), min_size=1, max_size=3), texts)
def test_a_draft_holds_its_domains_whatever_they_hold(tmp_path_factory, columns, reason):
    long = {"values": ["v" * 30 + str(at) for at in range(30)], "levels": {"l": {"g": ["a"], "h": ["b"]}}}
    attributes = [Attribute(name, {"values": values, **long}, 40) for name, values in columns.items()]
    text = render(draft(*attributes, left_out=(LeftOut(reason, reason),)))
    schema = read(tmp_path_factory.mktemp("yaml"), text)["schema"]
    assert {name: dict(attribute.domain) for name, attribute in zip(columns, attributes, strict=True)} == schema


def test_no_line_is_too_long():
    values = [f"value {at}" for at in range(400)]
    text = render(draft(Attribute("x", {"values": values, "labels": dict.fromkeys(values, "a label")}, 400)))
    assert max(map(len, text.splitlines())) <= 120


def test_a_column_that_is_left_out_is_a_comment_that_says_how_to_use_it():
    text = render(draft(Attribute("x", {"boolean": True}, 2), left_out=(LeftOut("note", "it holds free text"),)))
    assert "# note: it holds free text." in text
    assert "#   note: {values: [a, b], other: true}" in text


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        (PrivacyUnit(), "unit: {rows: 1}"),
        (PrivacyUnit(3, "patient"), "unit: {rows: 3, id: patient}"),
        (PrivacyUnit(2), "unit: {rows: 2}"),
    ],
)
def test_the_unit_is_stated(unit, line):
    assert f"  {line}\n" in render(draft(Attribute("x", {"boolean": True}, 2), unit=unit))


def attribute(cells: int, name: str = "x", *, ordered: bool = False) -> Attribute:
    return Attribute(name, {"bins": list(range(cells + 1))}, cells, ordered)


def entries(*attributes: Attribute):
    return [question.entry for question in propose_questions(attributes)]


def test_small_tables_of_two_are_all_asked_for():
    assert entries(attribute(5, "a"), attribute(7, "b")) == [{"name": "tables", "marginals": {"up_to": 2}}]


def test_large_tables_of_two_are_not():
    assert entries(attribute(50, "a"), attribute(70, "b"))[0]["marginals"] == {"up_to": 2, "max_cells": 2000}


def test_every_attribute_has_a_table_however_large():
    assert entries(attribute(5000, "a"), attribute(7, "b"))[0]["marginals"]["max_cells"] == 5000


def test_with_many_attributes_pairs_are_not_asked_for():
    assert entries(*(attribute(2, f"a{at}") for at in range(80)))[0]["marginals"] == {"up_to": 1}


def test_ranges_of_ordered_attributes_are_asked_for():
    assert {"name": "age up to", "product": {"age": "prefix"}} in entries(attribute(50, "age", ordered=True))


def test_levels_are_asked_for():
    county = Attribute("county", {"values": ["a", "b"], "levels": {"state": {"x": ["a", "b"]}}}, 2)
    assert {"name": "county by state", "product": {"county": {"level": "state"}}} in entries(county)


@pytest.mark.parametrize(("count", "noise"), [(3, "laplace"), (8, "gaussian")])
def test_many_tables_get_gaussian_noise(count, noise):
    attributes = [attribute(3, f"a{at}") for at in range(count)]
    assert propose_noise(attributes, propose_questions(attributes)) == noise
