"""A level puts every value of an attribute into exactly one group, however its members are written."""

import numpy as np
import pytest

from hdmm.errors import SchemaError, WorkloadError
from hdmm.schema import Bins, Boolean, Domain, Integers, Level, Listed, Merged, Schema

AGES = Integers(0, 114, levels={"age group": {"child": [(0, 17)], "adult": [(18, 64)], "senior": [(65, 114)]}})
COUNTIES = Listed(
    ["001", "003", "005"],
    levels={"state": {"CA": ["001", "003"], "NY": ["005"]}, "coast": {"west": ["CA"], "east": ["NY"]}},
)
PLACES = Schema(age=AGES, county=COUNTIES)


def test_both_ends_of_a_range_are_in_the_group() -> None:
    codes = AGES.levels["age group"].codes
    assert [codes[age] for age in (0, 17, 18, 64, 65, 114)] == [0, 0, 1, 1, 2, 2]


def test_the_groups_of_a_level_are_a_domain_in_their_declared_order() -> None:
    assert AGES.levels["age group"].domain == Listed(["child", "adult", "senior"])


def test_levels_keep_their_order() -> None:
    assert list(COUNTIES.levels) == ["state", "coast"]


def test_a_domain_has_no_levels_unless_they_are_declared() -> None:
    domains = [Listed(["x"]), Integers(0, 1), Bins([0, 1]), Boolean()]
    assert [dict(domain.levels) for domain in domains] == [{}] * 4


@pytest.mark.parametrize(("other", "missing"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_cells_other_and_missing_go_into_those_of_the_level(other: bool, missing: bool) -> None:
    domain = Listed(["a", "b", "c"], other=other, missing=missing, levels={"half": {"x": ["a", "c"], "y": ["b"]}})
    level = domain.levels["half"]
    assert [level.domain.labels()[code] for code in level.codes] == ["x", "y", "x", *domain.labels()[3:]]


MEMBERS: dict[str, tuple[Domain, list[int]]] = {
    "values": (Integers(0, 4, levels={"l": {"even": [0, 2, 4], "odd": [3, 1]}}), [0, 1, 0, 1, 0]),
    "values as texts": (Integers(0, 2, levels={"l": {"x": ["+01", " 2 "], "y": ["0"]}}), [1, 0, 0]),
    "pairs": (Integers(0, 4, levels={"l": {"x": [(0, 1), (4, 4)], "y": [(2, 3)]}}), [0, 0, 1, 1, 0]),
    "pairs as lists": (Integers(0, 4, levels={"l": {"x": [[0, 1]], "y": [[2, 4]]}}), [0, 0, 1, 1, 1]),
    "pairs of texts": (Integers(0, 4, levels={"l": {"x": [("0", "1")], "y": [("2", "4")]}}), [0, 0, 1, 1, 1]),
    "ranges": (Integers(1, 5, levels={"l": {"x": range(1, 3), "y": [range(3, 5), 5]}}), [0, 0, 1, 1, 1]),
    "single values": (Integers(0, 1, levels={"l": {"x": 1, "y": 0}}), [1, 0]),
    "a value and a range": (Integers(0, 4, levels={"l": {"x": [3, (0, 1)], "y": [2, 4]}}), [0, 0, 1, 0, 1]),
    "a value twice in one group": (Integers(0, 2, levels={"l": {"x": [(0, 1), 1, 0], "y": [2]}}), [0, 0, 1]),
    "texts": (Listed(["a", "b", "c"], levels={"l": {"x": ["c", "a"], "y": "b"}}), [0, 1, 0]),
    "a range of texts": (Listed(["b", "a", "c"], levels={"l": {"x": [("b", "a")], "y": ["c"]}}), [0, 0, 1]),
    "listed integers": (Listed([5, 6, 9], levels={"l": {"x": range(5, 7), "y": 9}}), [0, 0, 1]),
    "groups that are integers": (Listed(["a", "b"], levels={"l": {2: ["a"], 1: ["b"]}}), [0, 1]),
    "edges": (Bins([0, 1, 2.5, 9], levels={"l": {"x": [(0, "2.50")], "y": [("2.5", 9)]}}), [0, 0, 1]),
    "a bin by its label": (Bins([0, 1, 2], levels={"l": {"x": "[1, 2)", "y": [(0, 1)]}}), [1, 0]),
    "truth values": (Boolean(levels={"l": {"x": [True], "y": False}}), [1, 0]),
    "one group of everything": (Boolean(levels={"l": {"x": [(False, True)]}}), [0, 0]),
}


@pytest.mark.parametrize(("domain", "codes"), MEMBERS.values(), ids=MEMBERS)
def test_members_are_written_in_many_ways(domain: Domain, codes: list[int]) -> None:
    assert domain.levels["l"].codes.tolist() == codes


def test_a_group_may_be_made_of_groups_of_any_earlier_level_and_of_values() -> None:
    domain = Integers(
        0,
        5,
        levels={
            "pair": {"first": [(0, 1)], "second": [(2, 3)], "third": [(4, 5)]},
            "half": {"low": ["first", 2], "high": ["third", 3]},
            "all": {"every": ["low", "second", "third"]},
        },
    )
    assert [level.codes.tolist() for level in domain.levels.values()] == [
        [0, 0, 1, 1, 2, 2],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]


def test_a_group_of_groups_leaves_out_the_cells_other_and_missing() -> None:
    levels = {"state": {"CA": ["a"], "NY": ["b"]}, "coast": {"east": ["NY"], "west": ["CA"]}}
    domain = Listed(["a", "b"], other=True, missing=True, levels=levels)
    assert domain.levels["coast"].codes.tolist() == [1, 0, 2, 3]


def test_a_value_that_an_earlier_group_is_called_like_can_be_written_as_a_pair() -> None:
    levels: dict[str, dict[str, object]] = {"l": {"a": ["b"], "b": ["a"]}, "m": {"x": [("a", "a")], "y": [("b", "b")]}}
    assert Listed(["a", "b"], levels=levels).levels["m"].codes.tolist() == [0, 1]


def test_the_codes_of_a_level_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        AGES.levels["age group"].codes[0] = 1


def test_levels_cannot_be_added_later() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        AGES.levels["x"] = AGES.levels["age group"]  # type: ignore[index]


HALVES = {"half": {"low": [0, 1], "high": [2, 3]}}


def test_domains_with_the_same_levels_are_equal_and_hash_alike() -> None:
    one, two = Integers(0, 3, levels=HALVES), Integers(0, 3, levels={"half": {"low": [(0, 1)], "high": range(2, 4)}})
    assert (one, hash(one)) == (two, hash(two))


DIFFERENT = {
    "no levels": {},
    "another name": {"halves": HALVES["half"]},
    "other groups": {"half": {"low": [0], "high": [1, 2, 3]}},
    "another label": {"half": {"low": [0, 1], "top": [2, 3]}},
    "groups in another order": {"half": {"high": [2, 3], "low": [0, 1]}},
    "one more": HALVES | {"all": {"every": [(0, 3)]}},
}


@pytest.mark.parametrize("levels", DIFFERENT.values(), ids=DIFFERENT)
def test_domains_with_different_levels_are_not_equal(levels) -> None:
    assert Integers(0, 3, levels=levels) != Integers(0, 3, levels=HALVES)


def test_levels_are_equal_only_if_every_cell_is_in_the_same_group() -> None:
    groups = Listed(["x", "y"])
    assert Level(groups, np.array([0, 1])) == Level(groups, np.array([0, 1])) != Level(groups, np.array([1, 0]))


def digits(**levels) -> Domain:
    return Integers(0, 9, levels=levels)


REFUSED = {
    "a value in two groups": (
        lambda: digits(half={"low": [(0, 5)], "high": [(5, 9)]}),
        "level 'half': value 5 is in two groups, 'low' and 'high'; put every value into exactly one group",
    ),
    "values in two groups": (
        lambda: digits(half={"low": [(0, 6)], "high": [(5, 9)]}),
        "level 'half': values 5, 6 are in two groups, 'low' and 'high'",
    ),
    "many values in two groups": (
        lambda: digits(half={"low": [(0, 9)], "high": [(2, 9)]}),
        "values 2, 3, 4, … (8 in all) are in two groups",
    ),
    "a value that shares two groups with different ones": (
        lambda: digits(third={"a": [(0, 4)], "b": [(5, 9)], "c": [9, 0]}),
        "level 'third': value 9 is in two groups, 'b' and 'c'",
    ),
    "a value in no group": (
        lambda: digits(half={"low": [(0, 4)], "high": [(6, 9)]}),
        "level 'half': value 5 is in no group; put every value into exactly one, a range as a pair (low, high)",
    ),
    "two values where a range was meant": (
        lambda: digits(half={"low": [0, 4], "high": [5, 9]}),
        "level 'half': values 1, 2, 3, … (6 in all) are in no group",
    ),
    "a bin in no group": (
        lambda: Bins([0, 1, 2], levels={"l": {"x": [(0, 1)]}}),
        "level 'l': value '[1, 2)' is in no group",
    ),
    "a value in two groups through an earlier level": (
        lambda: digits(half={"low": [(0, 4)], "high": [(5, 9)]}, x={"a": ["low"], "b": ["high", 0]}),
        "level 'x': value 0 is in two groups, 'a' and 'b'",
    ),
    "a tuple, which may mean a range or two values": (
        lambda: digits(half={"low": (0, 4), "high": (5, 9)}),
        "level 'half': group 'low': (0, 4): expected a list of members: [(0, 17)] is a range, [0, 17] are two values",
    ),
    "a set": (lambda: digits(l={"x": {0, 1}}), "expected a list of members"),
    "a range of three": (lambda: digits(l={"x": [(0, 4, 9)]}), "(0, 4, 9): a range is a pair (low, high)"),
    "a range backwards": (lambda: digits(l={"x": [(9, 0)]}), "level 'l': group 'x': range (9, 0) is empty"),
    "a range beyond the domain": (
        lambda: digits(l={"x": [(0, 10)]}),
        "level 'l': group 'x': value '10' is not in the domain, which holds the integers 0 to 9",
    ),
    "a range in steps": (lambda: digits(l={"x": range(0, 9, 2)}), "expected a non-empty range with step 1"),
    "an empty range": (lambda: digits(l={"x": range(0)}), "expected a non-empty range with step 1"),
    "a range across values that are not listed": (
        lambda: Listed([1, 7, 3], levels={"l": {"x": range(1, 4)}}),
        "range(1, 4): these numbers are not neighbouring values of the attribute; list them",
    ),
    "a range that cuts through a bin": (
        lambda: Bins([0, 5, 9], levels={"l": {"x": [(0, 4)], "y": [(4, 9)]}}),
        "level 'l': group 'x': range end 4 cuts through a bin; use one of the edges 0, 5, 9",
    ),
    "an unknown value": (
        lambda: Listed(["Bronx", "Kings"], levels={"l": {"x": ["Bronks"]}}),
        "level 'l': group 'x': 'Bronks' is neither a value nor a group of an earlier level; did you mean 'Bronx'?",
    ),
    "an unknown group": (
        lambda: Listed(["a", "b"], levels={"state": {"Texas": ["a", "b"]}, "x": {"all": ["Texs"]}}),
        "'Texs' is neither a value nor a group of an earlier level; did you mean 'Texas'?",
    ),
    "a group of a later level": (
        lambda: digits(x={"all": ["low", "high"]}, half={"low": [(0, 4)], "high": [(5, 9)]}),
        "level 'x': group 'all': 'low' is neither a value nor a group of an earlier level",
    ),
    "a group of the same level": (
        lambda: digits(half={"low": [(0, 4)], "high": ["low", (5, 9)]}),
        "level 'half': group 'high': 'low' is neither a value nor a group of an earlier level",
    ),
    "a text that is a value and a group": (
        lambda: Listed(["a", "b"], levels={"l": {"a": ["b"], "c": ["a"]}, "m": {"x": ["a", "b"]}}),
        "level 'm': group 'x': 'a' is ambiguous: a value and a group of 'l'; rename one, or list the values as pairs",
    ),
    "a number that is a value and a group in another spelling": (
        lambda: digits(l={"01": [(0, 9)]}, m={"x": ["01"]}),
        "'01' is ambiguous: a value and a group of 'l'",
    ),
    "a text that is a group of two levels": (
        lambda: digits(l={"x": [(0, 9)]}, m={"x": [(0, 9)]}, n={"y": ["x"]}),
        "'x' is ambiguous: a group of 'l' and a group of 'm'",
    ),
    "a group without members": (lambda: digits(l={"x": [(0, 9)], "y": []}), "group 'y': it has no members; list them"),
    "a group twice": (lambda: digits(l={1: [(0, 4)], "1": [(5, 9)]}), "level 'l': value '1' is listed twice"),
    "a group called like the cell other": (
        lambda: Listed(["a"], other=True, levels={"l": {"other": ["a"]}}),
        "level 'l': value 'other' is both listed and the name of an extra cell; rename one",
    ),
    "a group without a name": (lambda: digits(l={"": [(0, 9)]}), "level 'l': value '' cannot be listed"),
    "no groups": (lambda: digits(l={}), "level 'l': {}: expected groups with their members, for example {'child'"),
    "a list of groups": (lambda: digits(l=[[0, 9]]), "level 'l': [[0, 9]]: expected groups with their members"),
    "a list of levels": (
        lambda: Integers(0, 1, levels=["l"]),  # type: ignore[arg-type]
        "levels=['l']: expected a mapping from the names of the levels to their groups",
    ),
    "a name with a quote": (lambda: digits(**{'a"b': {"x": [(0, 9)]}}), "level 'a\"b': a name is a column's header"),
    "a name with blanks around it": (lambda: digits(**{" a": {"x": [(0, 9)]}}), "level ' a': a name is a column's"),
    "levels of a domain that is too large to list": (
        lambda: Integers(0, 1 << 40, levels={"l": {"x": [(0, 1 << 40)]}}),
        "levels: the attribute has 1,099,511,627,777 cells, and levels go up to 16,777,216; use bins",
    ),
}


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_a_level_that_leaves_a_group_in_doubt_is_refused(build, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        build()
    assert message in str(caught.value)


LEVEL = {"state": {"all": ["x"]}}
CLASHES = {
    "an attribute": (
        lambda: Schema(county=Listed(["x"], levels=LEVEL), state=["CA"]),
        "level 'state' of attribute 'county' has the name of attribute 'state'; attributes, their parts and their",
    ),
    "its own attribute": (
        lambda: Schema(state=Listed(["x"], levels=LEVEL)),
        "level 'state' of attribute 'state' has the name of attribute 'state'",
    ),
    "a level of another attribute": (
        lambda: Schema(home=Listed(["x"], levels=LEVEL), work=Listed(["x"], levels=LEVEL)),
        "level 'state' of attribute 'work' has the name of level 'state' of attribute 'home'",
    ),
    "a part": (
        lambda: Schema(home=Listed(["x"], levels=LEVEL), place=Merged(state=["CA"], town=["LA"])),
        "part 'state' of attribute 'place' has the name of level 'state' of attribute 'home'",
    ),
    "a level of a part": (
        lambda: Schema(place=Merged(town=Listed(["x"], levels=LEVEL)), state=["CA"]),
        "level 'state' of attribute 'place' has the name of attribute 'state'",
    ),
}


@pytest.mark.parametrize(("build", "message"), CLASHES.values(), ids=CLASHES)
def test_a_level_needs_a_name_of_its_own(build, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        build()
    assert message in str(caught.value)


def test_a_level_may_have_the_name_of_a_column_of_answers() -> None:
    assert Schema(a=Integers(0, 1, levels={"low": {"x": [(0, 1)]}})).resolve("low") == ("a", "low")


RESOLVED = {
    "age": ("age", None),
    "AGE": ("age", None),
    "age group": ("age", "age group"),
    "Coast": ("county", "coast"),
}


@pytest.mark.parametrize(("name", "meant"), RESOLVED.items())
def test_a_name_means_an_attribute_or_a_level_in_any_case(name: str, meant) -> None:
    assert PLACES.resolve(name) == meant


def test_the_exact_name_wins_over_the_same_in_another_case() -> None:
    schema = Schema(State=["a"], county=Listed(["x"], levels=LEVEL))
    assert (schema.resolve("State"), schema.resolve("state")) == (("State", None), ("county", "state"))


def test_a_name_that_fits_two_only_in_another_case_is_refused() -> None:
    with pytest.raises(WorkloadError, match="attribute 'STATE' is not in the schema"):
        Schema(State=["a"], county=Listed(["x"], levels=LEVEL)).resolve("STATE")


@pytest.mark.parametrize(("name", "hint"), [("coats", "did you mean 'coast'"), ("agee", "did you mean 'age'")])
def test_an_unknown_name_is_refused_with_the_nearest_attribute_or_level(name: str, hint: str) -> None:
    with pytest.raises(WorkloadError, match=f"attribute '{name}' is not in the schema; {hint}"):
        PLACES.resolve(name)
