"""A schema checks itself when it is built, and its domains know their cells, their labels and their values."""

from decimal import Decimal

import pytest

from hdmm.errors import SchemaError, WorkloadError
from hdmm.schema import Bins, Boolean, Integers, Listed, Schema

PERSON = Schema(sex=["F", "M"], age=range(115), hispanic=[False, True], income=Bins([0, 10_000, 50_000]))


def test_attributes_keep_their_order_and_sizes() -> None:
    assert (PERSON.names, PERSON.sizes) == (("sex", "age", "hispanic", "income"), (2, 115, 2, 2))


def test_the_cells_of_a_schema_are_the_product_of_its_sizes() -> None:
    assert PERSON.cells == 2 * 115 * 2 * 2


def test_the_cells_of_a_schema_are_exact_however_many_they_are() -> None:
    assert Schema({f"a{i}": range(10) for i in range(40)}).cells == 10**40


def test_the_cells_other_and_missing_add_to_the_size() -> None:
    assert Schema(a=Listed(["x"], other=True, missing=True), b=Integers(0, 4, missing=True)).sizes == (3, 6)


def test_a_name_that_is_no_identifier_goes_into_the_mapping() -> None:
    assert Schema({"education-num": range(17)}, sex=["F", "M"]).names == ("education-num", "sex")


def test_the_position_of_an_attribute_is_its_axis() -> None:
    assert [PERSON.axis(name) for name in PERSON] == [0, 1, 2, 3]


def test_an_unknown_attribute_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(WorkloadError, match="attribute 'agee' is not in the schema; did you mean 'age'"):
        PERSON.axis("agee")


def test_an_unknown_attribute_like_no_other_is_refused_with_the_known_names() -> None:
    with pytest.raises(WorkloadError, match="'zzz' is not in the schema; known: 'sex', 'age', 'hispanic', 'income'"):
        PERSON.axis("zzz")


def test_schemas_with_the_same_attributes_are_equal_and_hash_alike() -> None:
    one, two = Schema(sex=["F", "M"], age=range(5)), Schema(sex=Listed(["F", "M"]), age=Integers(0, 4))
    assert (one, hash(one)) == (two, hash(two))


def test_schemas_whose_attributes_stand_in_another_order_are_not_equal() -> None:
    assert Schema(sex=["F", "M"], age=range(5)) != Schema(age=range(5), sex=["F", "M"])


SHORTHANDS = {
    "a list of texts": (["F", "M"], Listed(["F", "M"])),
    "a tuple of texts": (("F", "M"), Listed(["F", "M"])),
    "a list of integers": ([3, 1, 2], Listed(["3", "1", "2"])),
    "a list of 0 and 1": ([0, 1], Listed(["0", "1"])),
    "a range": (range(115), Integers(0, 114)),
    "a range from below zero": (range(-3, 3), Integers(-3, 2)),
    "both booleans": ([False, True], Boolean()),
    "a domain": (Bins([0, 1]), Bins(["0", "1"])),
}


@pytest.mark.parametrize(("given", "domain"), SHORTHANDS.values(), ids=SHORTHANDS)
def test_a_shorthand_means_a_domain(given, domain) -> None:
    assert Schema(a=given)["a"] == domain


BAD_ATTRIBUTES = {
    "no values": ([], "an attribute needs at least one value; list them"),
    "a value twice": (["F", "M", "F"], "value 'F' is listed twice; list each value once"),
    "an integer and its text": ([1, "1"], "value '1' is listed twice"),
    "values equal after trimming": (["F", " F "], "value 'F' is listed twice"),
    "an empty value": (["F", "  "], "a value is not empty and stays on one line"),
    "a line break in a value": (["F\nM"], "a value is not empty and stays on one line"),
    "a NUL byte in a value": (["F\0"], "a value is not empty and stays on one line"),
    "a text that no file can hold": (["\ud800"], r"value '\\ud800'"),
    "floats": ([0.5, 1.5], "listed values are texts or integers; use Bins for other numbers"),
    "none": ([None], "listed values are texts or integers"),
    "one boolean": ([True], r"write booleans as \[False, True\]"),
    "booleans the wrong way round": ([True, False], r"write booleans as \[False, True\]"),
    "a boolean among texts": (["F", True], r"write booleans as \[False, True\]"),
    "an empty range": (range(5, 5), "expected a non-empty range with step 1"),
    "a range in steps": (range(0, 10, 2), "expected a non-empty range with step 1"),
    "a range downwards": (range(10, 0, -1), "expected a non-empty range with step 1"),
    "a text": ("FM", "expected a list of values, a range of integers, or Listed, Integers, Bins, Boolean"),
    "a number": (5, "expected a list of values"),
    "a set, which has no order": ({"F", "M"}, "expected a list of values"),
    "a kind instead of a domain": (Boolean, "expected a list of values"),
}


@pytest.mark.parametrize(("given", "message"), BAD_ATTRIBUTES.values(), ids=BAD_ATTRIBUTES)
def test_an_attribute_without_a_usable_domain_is_refused_by_name(given, message: str) -> None:
    with pytest.raises(SchemaError, match=f"attribute 'a': .*{message}"):
        Schema(a=given)


BAD_NAMES = ["", " age", "age ", "a\nb", "a\rb", "a\0b", 'a"b', 5, None]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_cannot_head_a_column_is_refused(name) -> None:
    with pytest.raises(SchemaError, match="a name is a column's header: text on one line, without quotes"):
        Schema({name: range(5)})


@pytest.mark.parametrize("name", ["answer", "stderr", "low", "high", "estimator"])
def test_a_name_that_answer_tables_use_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match=f"attribute '{name}': the name is taken by a column of answer tables"):
        Schema({name: range(5)})


def test_a_name_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"attribute '\\ud800'"):
        Schema({"\ud800": range(5)})


def test_a_schema_without_attributes_is_refused() -> None:
    with pytest.raises(SchemaError, match="a schema needs at least one attribute"):
        Schema()


def test_an_attribute_in_the_mapping_and_as_an_argument_is_refused() -> None:
    with pytest.raises(SchemaError, match="attribute 'age' is declared twice"):
        Schema({"age": range(5)}, age=range(6))


BAD_DOMAINS = {
    "no listed values": (lambda: Listed([]), "an attribute needs at least one value"),
    "listed and other": (lambda: Listed(["x", "other"], other=True), "'other' is both listed and the name of an extra"),
    "listed and missing": (lambda: Listed(["missing"], missing=True), "'missing' is both listed and the name of an"),
    "min above max": (lambda: Integers(5, 4), "min=5, max=4: the domain is empty; min must not exceed max"),
    "min not an integer": (lambda: Integers(0.5, 4), "min=0.5: expected an integer"),  # type: ignore[arg-type]
    "max a text": (lambda: Integers(0, "4"), "max='4': expected an integer"),  # type: ignore[arg-type]
    "max a boolean": (lambda: Integers(0, True), "max=True: expected an integer"),
    "max beyond exact counting": (lambda: Integers(0, 1 << 60), "expected an integer"),
    "no edges": (lambda: Bins([]), "bins need at least two edges"),
    "one edge": (lambda: Bins([0]), "bins need at least two edges"),
    "decreasing edges": (lambda: Bins([0, 2, 1]), "edges 2, 1: edges must increase"),
    "an edge twice": (lambda: Bins([0, 1, "1.0"]), "edges 1, 1: edges must increase"),
    "an edge that is NaN": (lambda: Bins([0, float("nan")]), "edge nan: expected a finite number; use other=True"),
    "an edge that is a NaN text": (lambda: Bins([0, "sNaN"]), "edge 'sNaN': expected a finite number"),
    "an infinite edge": (lambda: Bins([0, float("inf")]), "edge inf: expected a finite number; use other=True"),
    "an infinite first edge": (lambda: Bins(["-Infinity", 0]), "edge '-Infinity': expected a finite number"),
    "an edge that is text": (lambda: Bins([0, "abc"]), "edge 'abc': expected a decimal number"),
    "an edge that is a boolean": (lambda: Bins([0, True]), "edge True: expected a decimal number"),
    "an empty edge": (lambda: Bins([0, ""]), "edge '': expected a decimal number"),
    "13 decimals": (lambda: Bins([0, "0.0000000000001"]), "at most 12 decimals and 18 digits in all"),
    "29 decimals": (lambda: Bins([0, "1." + "0" * 28 + "1", 2]), "at most 12 decimals and 18 digits in all"),
    "30 nines": (lambda: Bins([0, "0." + "9" * 30]), "at most 12 decimals and 18 digits in all"),
    "19 digits": (lambda: Bins([0, 10**18]), "at most 12 decimals and 18 digits in all"),
    "a huge exponent": (lambda: Bins([0, "1e400"]), "at most 12 decimals and 18 digits in all"),
    "a tiny exponent": (lambda: Bins([0, "1e-400"]), "at most 12 decimals and 18 digits in all"),
}


@pytest.mark.parametrize(("build", "message"), BAD_DOMAINS.values(), ids=BAD_DOMAINS)
def test_a_domain_that_cannot_be_is_refused_when_it_is_built(build, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        build()


def test_the_widest_edges_are_taken_exactly() -> None:
    assert Bins(["-999999.999999999999", "999999.999999999999"]).edges == (
        Decimal("-999999.999999999999"),
        Decimal("999999.999999999999"),
    )


def test_edges_equal_in_value_make_equal_bins() -> None:
    assert Bins([0, 0.1, 1e5]) == Bins(["-0", "0.10", Decimal(100_000)])


def test_bins_closed_above_differ_from_open_ones() -> None:
    assert Bins([0, 1], closed=True) != Bins([0, 1])


LABELS = {
    "listed": (Listed(["F", "M"]), ["F", "M"]),
    "listed integers": (Listed([2, 1]), ["2", "1"]),
    "listed, other": (Listed(["F", "M"], other=True), ["F", "M", "other"]),
    "listed, other and missing": (Listed(["F"], other=True, missing=True), ["F", "other", "missing"]),
    "integers": (Integers(-1, 1), [-1, 0, 1]),
    "integers, missing": (Integers(8, 9, missing=True), ["8", "9", "missing"]),
    "boolean": (Boolean(), [False, True]),
    "boolean, other": (Boolean(other=True), ["False", "True", "other"]),
    "bins": (Bins([0, 0.5, 10_000]), ["[0, 0.5)", "[0.5, 10000)"]),
    "bins, large edges": (Bins([0, 1e7]), ["[0, 10000000)"]),
    "closed bins": (Bins([0, 1, 2], closed=True), ["[0, 1)", "[1, 2]"]),
    "closed bins, other": (Bins([0, 1], closed=True, other=True), ["[0, 1]", "other"]),
}


@pytest.mark.parametrize(("domain", "labels"), LABELS.values(), ids=LABELS)
def test_every_cell_has_its_label(domain, labels) -> None:
    found = domain.labels()
    assert (found, [type(label) for label in found]) == (labels, [type(label) for label in labels])


CODES = {
    "listed": (Listed(["CA", "NY"]), "NY", 1),
    "listed, trimmed": (Listed(["CA", "NY"]), " NY ", 1),
    "listed integer": (Listed([5, 7]), 7, 1),
    "integer": (Integers(-3, 3), -2, 1),
    "integer as text": (Integers(-3, 3), "+02", 5),
    "boolean": (Boolean(), True, 1),
    "boolean as text": (Boolean(), "No", 0),
    "bin": (Bins([0, 10, 20]), "[10, 20)", 1),
}


@pytest.mark.parametrize(("domain", "value", "code"), CODES.values(), ids=CODES)
def test_a_declared_value_has_its_code(domain, value, code: int) -> None:
    assert domain.code(value) == code


UNKNOWN = {
    "listed": (Listed(["California", "Texas"]), "Califonia", "value 'Califonia' is not in the domain; did you mean"),
    "the cell other": (Listed(["CA"], other=True), "other", "value 'other' is not in the domain"),
    "the cell missing": (Listed(["CA"], missing=True), "", "value '' is not in the domain"),
    "another case": (Listed(["CA"]), "ca", "value 'ca' is not in the domain"),
    "integer": (Integers(0, 9), 10, "value '10' is not in the domain"),
    "integer with a point": (Integers(0, 9), "5.0", "value '5.0' is not in the domain"),
    "boolean": (Boolean(), "maybe", "value 'maybe' is not in the domain"),
    "a number in a bin": (Bins([0, 10]), 5, r"value '5' is not in the domain; known: '\[0, 10\)'"),
}


@pytest.mark.parametrize(("domain", "value", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_value_that_is_not_declared_has_no_code(domain, value, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        domain.code(value)


SPANS = {
    "listed": (Listed(["a", "b", "c"]), ("a", "b"), (0, 1)),
    "integers": (Integers(10, 20), (12, 15), (2, 5)),
    "one integer": (Integers(10, 20), (12, 12), (2, 2)),
    "boolean": (Boolean(), (False, True), (0, 1)),
    "bins": (Bins([0, 1.5, 3, 4]), ("1.50", 4), (1, 2)),
}


@pytest.mark.parametrize(("domain", "ends", "codes"), SPANS.values(), ids=SPANS)
def test_a_range_has_a_first_and_a_last_code(domain, ends, codes) -> None:
    assert domain.span(*ends) == codes


BAD_SPANS = {
    "listed backwards": (Listed(["a", "b"]), ("b", "a"), r"range \(b, a\) is empty: its low end must come before"),
    "integers backwards": (Integers(0, 9), (5, 4), r"range \(5, 4\) is empty"),
    "beyond the domain": (Integers(0, 9), (5, 10), "value '10' is not in the domain"),
    "within a bin": (Bins([0, 10, 20]), (0, 15), "range end 15 cuts through a bin; use one of the edges 0, 10, 20"),
    "an empty range of bins": (Bins([0, 10, 20]), (10, 10), r"range \(10, 10\) is empty"),
    "text in bins": (Bins([0, 10, 20]), ("abc", 10), "'abc' is not a number"),
}


@pytest.mark.parametrize(("domain", "ends", "message"), BAD_SPANS.values(), ids=BAD_SPANS)
def test_a_range_that_cannot_be_is_refused(domain, ends, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        domain.span(*ends)
