"""A merged attribute has a cell for every combination of its parts, and each part is one of its levels."""

import tracemalloc
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import SchemaError, WorkloadError
from hdmm.schema import OUTSIDE, Bins, Boolean, Integers, Listed, Merged, Schema

RACE = Merged(white=[False, True], black=[False, True], asian=[False, True])
PAIR = Merged(sex=["F", "M"], age=range(3))
MERGED = {
    "flags": (
        RACE,
        ["none", "asian", "black", "black+asian", "white", "white+asian", "white+black", "white+black+asian"],
    ),
    "values and integers": (PAIR, ["F, 0", "F, 1", "F, 2", "M, 0", "M, 1", "M, 2"]),
    "extra cells of the parts": (
        Merged(a=Listed(["x"], other=True, missing=True), b=Boolean(missing=True)),
        [f"{a}, {b}" for a in ("x", "other", "missing") for b in ("False", "True", "missing")],
    ),
    "bins": (
        Merged(a=Bins([0, 5, 9], other=True), b=Bins([0, 1], missing=True), c=["[x"]),
        [f"{a}, {b}, [x" for a in ("[0, 5)", "[5, 9)", "other") for b in ("[0, 1)", "missing")],
    ),
    "flags and more": (Merged({"a+b": [False, True]}, none=["1"]), ["False, 1", "True, 1"]),
    "one flag with a cell for missing": (Merged(a=Boolean(missing=True)), ["False", "True", "missing"]),
    "a single flag": (Merged(a=Boolean()), ["none", "a"]),
    "the sign for bad bytes": (Merged(a=["\N{REPLACEMENT CHARACTER}"], b=["y"]), ["\N{REPLACEMENT CHARACTER}, y"]),
    "values that look like extra cells": (
        Merged(a=["other", "missing"], b=["+", "none"]),
        ["other, +", "other, none", "missing, +", "missing, none"],
    ),
}


@pytest.mark.parametrize(("merged", "labels"), MERGED.values(), ids=MERGED)
def test_every_combination_has_its_label_the_last_part_changing_first(merged: Merged, labels: list[str]) -> None:
    assert merged.labels() == labels


@pytest.mark.parametrize("merged", [case[0] for case in MERGED.values()], ids=MERGED)
def test_the_size_is_the_product_of_the_sizes_of_the_parts(merged: Merged) -> None:
    cells = list(product(*(range(part.size) for part in merged.parts.values())))
    assert (merged.size, merged.declared) == (len(cells), len(cells))


@pytest.mark.parametrize(("merged", "labels"), MERGED.values(), ids=MERGED)
def test_a_label_has_the_code_of_its_cell(merged: Merged, labels: list[str]) -> None:
    assert [merged.code(label) for label in labels] == list(range(len(labels)))


NASTY = [
    *[b"", b"+", b"white+", b"+white", b"white++black", b"black+white", b"white+white", b"WHITE", b"white + black"],
    *[b"none+white", b"None", b"other", b"missing", b"F", b"F, ", b"F,0", b"F, 00", b"F, +1", b"F, 0, 1", b"F, 3"],
    *[b"F, 1.0", b"x, true", b"x, 1", b"X, True", b"[0, 5)", b"[0, 5), [0, 1)", b"[0, 5), [0, 1), [x, ", b"0, 5, [x"],
    *[b"\xff", b"whit\xff", b"\xff, y", b"F, \xff", b"F, \0", b"\xed\xa0\x80, 1", b"9" * 5000, b", ", b", " * 5000],
]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([label.encode() for _, labels in MERGED.values() for label in labels]),
        st.sampled_from(NASTY),
        st.lists(st.sampled_from(["white", "black", "asian", "none", ""]), max_size=4).map("+".join).map(str.encode),
        st.lists(st.sampled_from(["F", "x", "0", "01", "True", "[0", "5)", "other", "missing"]), max_size=5)
        .map(", ".join)
        .map(str.encode),
        st.binary(max_size=10),
    ),
    max_size=10,
)


@pytest.mark.parametrize(("merged", "labels"), MERGED.values(), ids=MERGED)
@given(texts=TEXTS)
def test_a_text_is_a_label_or_outside(merged: Merged, labels: list[str], texts: list[bytes]) -> None:
    codes = {label.encode(): code for code, label in enumerate(labels)}
    assert merged.encode(texts).tolist() == [codes.get(text.strip(b" \t\r"), OUTSIDE) for text in texts]


@pytest.mark.parametrize(("merged", "labels"), MERGED.values(), ids=MERGED)
def test_every_nasty_text_is_a_label_or_outside(merged: Merged, labels: list[str]) -> None:
    codes = {label.encode(): code for code, label in enumerate(labels)}
    assert merged.encode(NASTY).tolist() == [codes.get(text.strip(), OUTSIDE) for text in NASTY]


def test_labels_are_compared_for_equality() -> None:
    assert np.flatnonzero(PAIR.compare("=", "M, 1")).tolist() == [4]
    assert np.flatnonzero(PAIR.compare("<>", " M, 1 ")).tolist() == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_combinations_have_no_order_to_compare_by(operator) -> None:
    with pytest.raises(WorkloadError, match=f"'{operator}' does not order combinations; .*compare one of 'sex', 'age'"):
        PAIR.compare(operator, "M, 1")


def test_a_range_runs_between_two_labels() -> None:
    assert PAIR.span("F, 2", "M, 1") == (2, 4)


def test_an_unknown_label_is_refused_with_the_nearest() -> None:
    with pytest.raises(WorkloadError, match=r"value 'white\+blak' is not in the domain; did you mean 'white\+black'"):
        RACE.code("white+blak")


def test_in_a_large_domain_no_label_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Merged(sex=["F", "M"], number=range(1 << 20))
    made: list[int] = []

    def value(self: Integers, code: int) -> int:
        made.append(code)
        return self.min + code

    monkeypatch.setattr(Integers, "value", value)
    with pytest.raises(
        WorkloadError, match="value 'F' is not in the domain, whose values are written like 'M, 1048575'"
    ):
        large.code("F")
    assert len(made) <= 2


def test_each_part_is_a_level_with_its_own_domain() -> None:
    merged = Merged(a=Listed(["x", "y"], missing=True), b=range(2))
    assert list(merged.levels) == ["a", "b"]
    assert [merged.levels[name].domain for name in "ab"] == [Listed(["x", "y"], missing=True), Integers(0, 1)]
    assert [merged.levels[name].codes.tolist() for name in "ab"] == [[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]]


def test_a_part_in_the_middle_repeats_and_is_repeated() -> None:
    cells = list(product(range(2), range(3), range(4)))
    merged = Merged(a=range(2), b=range(3), c=range(4))
    assert merged.levels["b"].codes.tolist() == [b for _, b, _ in cells]


def test_levels_of_a_part_are_levels_of_the_whole() -> None:
    counties = Listed(["1", "2", "3"], other=True, levels={"state": {"CA": ["1", "3"], "NY": ["2"]}})
    merged = Merged(sex=["F", "M"], county=counties)
    assert list(merged.levels) == ["sex", "county", "state"]
    assert merged.levels["state"].domain == Listed(["CA", "NY"], other=True)
    assert merged.levels["state"].codes.tolist() == [0, 1, 0, 2] * 2


def test_the_codes_of_a_part_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RACE.levels["white"].codes[0] = 1


def test_a_name_that_is_no_part_is_no_level() -> None:
    assert "white" in RACE.levels
    assert "whit" not in RACE.levels
    with pytest.raises(KeyError):
        RACE.levels["whit"]


FLAGS = {f"f{number}": [False, True] for number in range(24)}


def test_the_largest_merged_attribute_takes_no_memory_until_a_level_is_asked_for() -> None:
    tracemalloc.start()
    largest = Merged(FLAGS)
    assert (hash(largest), "f3" in largest.levels, len(largest.levels)) == (hash(Merged(FLAGS)), True, 24)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (largest.size, peak < 1 << 20) == (1 << 24, True)


def test_a_merged_attribute_is_read_from_a_column_for_each_part() -> None:
    assert dict(PAIR.columns("person")) == {"sex": Listed(["F", "M"]), "age": Integers(0, 2)}


def test_any_other_attribute_is_read_from_its_own_column() -> None:
    assert dict(Integers(0, 2).columns("age")) == {"age": Integers(0, 2)}


def test_codes_of_the_parts_combine_to_the_code_of_the_cell() -> None:
    codes = [PAIR.levels[name].codes for name in PAIR.parts]
    assert PAIR.combine(codes).tolist() == list(range(6))


def test_a_combination_with_a_part_outside_is_outside() -> None:
    codes = [np.array([-1, 0, 1, -1]), np.array([2, -1, 2, -1])]
    assert PAIR.combine(codes).tolist() == [OUTSIDE, OUTSIDE, 5, OUTSIDE]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_narrow_codes_combine_without_overflow(dtype) -> None:
    merged = Merged(a=range(100), b=range(120), c=range(128))
    codes = [np.array([99, 0], dtype), np.array([119, 0], dtype), np.array([127, -1], dtype)]
    assert merged.combine(codes).tolist() == [100 * 120 * 128 - 1, OUTSIDE]


def test_codes_of_the_only_column_are_those_of_the_attribute() -> None:
    codes = np.array([2, -1, 0], np.int8)
    assert Integers(0, 2).combine([codes]) is codes


def test_merged_attributes_with_the_same_parts_are_equal_and_hash_alike() -> None:
    one, two = PAIR, Merged({"sex": Listed(["F", "M"])}, age=Integers(0, 2))
    assert (one, hash(one)) == (two, hash(two))


DIFFERENT = {
    "another name": Merged(gender=["F", "M"], age=range(3)),
    "another domain": Merged(sex=["F", "M"], age=range(4)),
    "another order": Merged(age=range(3), sex=["F", "M"]),
    "one part less": Merged(sex=["F", "M"]),
    "levels of a part": Merged(sex=["F", "M"], age=Integers(0, 2, levels={"l": {"x": [(0, 2)]}})),
    "no merged attribute": Integers(0, 5),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_merged_attributes_with_different_parts_are_not_equal(other) -> None:
    assert other != PAIR


def test_integers_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Integers, "value", lambda *_: pytest.fail("a label was made"))
    assert Merged(sex=["F", "M"], number=range(1 << 23)).size == 1 << 24


LEVEL = {"state": {"all": ["x"]}}
REFUSED = {
    "no parts": (Merged, "a merged attribute needs parts"),
    "a part twice": (lambda: Merged({"a": ["x"]}, a=["y"]), "part 'a' is declared twice; declare it once"),
    "a part without values": (lambda: Merged(a=[]), "part 'a': values=[]: an attribute needs at least one value"),
    "a part that is merged": (lambda: Merged(a=PAIR, b=["x"]), "part 'a': it is merged itself; name its parts here"),
    "a name with a quote": (lambda: Merged({'a"': ["x"]}), "part 'a\"': a name is a column's header"),
    "a name that is no text": (lambda: Merged(cast(Any, {5: ["x"]})), "part 5: a name is a column's header"),
    "a flag with a plus": (lambda: Merged({"a+b": Boolean(), "c": Boolean()}), "part 'a+b': labels join names by '+'"),
    "a flag called none": (lambda: Merged(a=Boolean(), none=Boolean()), "part 'none': labels join names by '+', and"),
    "a value with a comma": (
        lambda: Merged(a=["x", "y, z"], b=["w"]),
        "part 'a': value 'y, z' holds a comma, which separates parts; rename it",
    ),
    "too many combinations": (
        lambda: Merged(FLAGS, one_more=[False, True]),
        "merged: 33,554,432 combinations exceed the limit of 16,777,216; merge fewer parts",
    ),
    "a huge part": (lambda: Merged(a=range(1 << 40)), "merged: 1,099,511,627,776 combinations exceed the limit"),
    "a level with the name of a part": (
        lambda: Merged(county=Listed(["x"], levels=LEVEL), state=["CA"]),
        "level 'state' of part 'county': the name is taken",
    ),
    "two levels of the same name": (
        lambda: Merged(a=Listed(["x"], levels=LEVEL), b=Listed(["x"], levels=LEVEL)),
        "level 'state' of part 'b': the name is taken",
    ),
    "extra cells of the whole": (lambda: Merged(a=["x"], other=True), "part 'other': True: expected a list of values"),
}


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_parts_that_cannot_be_merged_are_refused(build, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        build()
    assert message in str(caught.value)


CLASHES = {
    "an attribute": (
        lambda: Schema(sex=["F"], person=PAIR),
        "part 'sex' of attribute 'person' has the name of attribute 'sex'; attributes, their parts and their levels",
    ),
    "its own attribute": (
        lambda: Schema(sex=PAIR),
        "part 'sex' of attribute 'sex' has the name of attribute 'sex'",
    ),
    "a part of another attribute": (
        lambda: Schema(one=PAIR, two=Merged(age=range(5))),
        "part 'age' of attribute 'two' has the name of part 'age' of attribute 'one'",
    ),
}


@pytest.mark.parametrize(("build", "message"), CLASHES.values(), ids=CLASHES)
def test_a_part_needs_a_name_of_its_own(build, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        build()
    assert message in str(caught.value)


def test_a_part_may_have_the_name_of_a_column_of_answers() -> None:
    assert Schema(bounds=Merged(low=["x"], high=["y"])).resolve("high") == ("bounds", "high")


def test_a_name_may_mean_a_part() -> None:
    schema = Schema(age=range(5), race=RACE)
    assert [schema.resolve(name) for name in ("race", "Black")] == [("race", None), ("race", "black")]
