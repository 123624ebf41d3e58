"""Conditions that are huge, odd, wrong or about nobody are decided exactly, or refused in a sentence."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import hdmm
from hdmm.errors import TooLargeError, WorkloadError
from hdmm.plans import footprint as memory
from hdmm.schema import Bins, Boolean, Integers, Listed, Merged, Schema
from hdmm.workload import Custom, Identity, Level, Permuted, Predicates, Prefix, Total, Values, Where, Workload

SCHEMA = Schema(
    sex=["F", "M"],
    age=Integers(0, 9, levels={"age group": {"child": [(0, 4)], "adult": [(5, 9)]}}),
    state=Listed(["CA", "NY"], other=True, missing=True),
    income=Bins([0, 10, 50], missing=True),
    race=Merged(white=[False, True], black=[False, True]),
)
W = Workload(SCHEMA)
OPERATORS = [hdmm.baselines.Identity(), hdmm.baselines.Plain(), hdmm.baselines.Marginals()]
each_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)


def cells(where: str, schema: Schema = SCHEMA) -> set[tuple]:
    """The combinations of labels, on the attributes that matter, for which a condition holds."""
    (found,) = Workload(schema).add("q", where=where).encoded.products
    names = [schema.names[axis] for axis in found.axes]
    holds = found.matrix({axis: schema.sizes[axis] for axis in found.axes}).dense()[0]
    labels = product(*(schema[name].labels() for name in names))
    return {label for label, held in zip(labels, holds.tolist(), strict=True) if held}


def test_a_list_of_thousands_is_one_mask():
    schema = Schema(code=range(3000), sex=["F", "M"])
    where = f"code IN ({', '.join(str(code) for code in range(0, 3000, 2))}) OR sex = 'F'"
    (found,) = Workload(schema).add("q", where=where).encoded.products
    assert found.condition is not None
    assert len(found.condition.boxes) == 2
    held = found.condition.dense(schema.sizes).reshape(schema.sizes)
    np.testing.assert_array_equal(held[:, 1], np.arange(3000) % 2 == 0)
    assert held[:, 0].all()


@pytest.mark.parametrize("joined", ["OR", "AND"])
def test_a_chain_of_a_thousand_is_read_like_a_short_one(joined):
    parts = ["age = 3", "sex = 'F'"] * 500
    assert cells(f" {joined} ".join(parts)) == cells(f"age = 3 {joined} sex = 'F'")


def test_nesting_alternates_as_written():
    where = "age = 0"
    for step in range(12):
        where = f"NOT ({where} OR sex = 'F')" if step % 2 else f"NOT ({where} AND age < 9)"
    expected = set()
    for age, sex in product(range(10), "FM"):
        held = age == 0
        for step in range(12):
            held = not (held or sex == "F") if step % 2 else not (held and age < 9)
        if held:
            expected.add((sex, age))
    assert cells(where) == expected


@pytest.mark.parametrize("depth", [300, 5000])
@pytest.mark.parametrize(
    "read", [lambda c: W.add("q", where=c), lambda c: W.add_sql("q", f"SELECT COUNT(*) FROM t WHERE {c}")]
)
def test_nesting_beyond_any_use_is_refused(depth, read):
    with pytest.raises(WorkloadError):
        read("NOT (" * depth + "sex = 'F' OR age = 1" + ")" * depth)


@pytest.mark.parametrize(
    "where",
    [
        "TRUE",
        "NOT FALSE",
        "age = 1 OR TRUE",
        "age = 1 OR NOT age = 1",
        "sex = 'F' OR sex = 'M'",
        "NOT (age = 1 AND FALSE)",
        "sex = 'F' OR NOT (sex = 'F' AND age = 3)",
        "age >= 0 OR state IS NULL",
    ],
)
def test_what_always_holds_changes_nothing(where):
    (found,) = W.add("q", state=Identity(), where=where).encoded.products
    assert (found.axes, found.condition) == ((2,), None)


@pytest.mark.parametrize(
    "where",
    [
        "FALSE",
        "NOT TRUE",
        "age = 1 AND FALSE",
        "age = 1 AND NOT age = 1",
        "sex = 'F' AND age = 1 AND sex = 'M'",
        "NOT (sex = 'F' OR NOT (sex = 'F' AND age = 3))",
        "age > 9 AND white",
        "age BETWEEN 7 AND 3",
    ],
)
def test_what_can_never_hold_counts_nobody(where):
    (product,) = W.add("q", where=where).encoded.products
    assert product.empty
    assert product.queries == 1


@pytest.mark.parametrize("where", ["FALSE", "sex = 'F' AND FALSE", "(age = 1 OR white) AND NOT (age = 1 OR white)"])
def test_sql_that_can_never_hold_counts_nobody(where):
    (product,) = W.add_sql("q", f"SELECT age, COUNT(*) FROM t WHERE {where} GROUP BY age").encoded.products
    assert product.empty
    assert product.queries == W.schema["age"].size


OTHERS = {
    "what differs from a value": ("state <> 'CA' AND sex = 'F'", {("F", "NY"), ("F", "other")}),
    "what does not equal it": ("NOT state = 'CA' AND sex = 'F'", {("F", "NY"), ("F", "other")}),
    "neither of two": ("NOT (state = 'CA' OR sex = 'M')", {("F", "NY"), ("F", "other")}),
    "what is true whatever is missing": (
        "state = 'CA' OR sex = 'F'",
        {("F", "CA"), ("F", "NY"), ("F", "other"), ("F", "missing"), ("M", "CA")},
    ),
    "what is false whatever is missing": (
        "NOT (state = 'CA' AND sex = 'F')",
        {("F", "NY"), ("F", "other"), ("M", "CA"), ("M", "NY"), ("M", "other"), ("M", "missing")},
    ),
    "NOT IN": ("state NOT IN ('CA', 'NY') AND sex = 'M'", {("M", "other")}),
    "NOT IN a list with NULL": ("state NOT IN ('CA', NULL) AND sex = 'M'", set()),
    "an order": ("state >= 'CA' AND sex = 'M'", {("M", "CA"), ("M", "NY")}),
    "NOT BETWEEN": ("NOT state BETWEEN 'CA' AND 'CA' AND sex = 'M'", {("M", "NY")}),
    "NOT LIKE": ("state NOT LIKE 'C%' AND sex = 'M'", {("M", "NY")}),
    "missing": ("state IS NULL AND sex = 'M'", {("M", "missing")}),
    "not missing": (
        "NOT (state IS NULL OR sex = 'M')",
        {("F", "CA"), ("F", "NY"), ("F", "other")},
    ),
    "not true": ("(state = 'CA') IS NOT TRUE AND sex = 'M'", {("M", "NY"), ("M", "other"), ("M", "missing")}),
    "unknown": ("(state = 'CA' AND sex = 'M') IS UNKNOWN", {("M", "missing")}),
    "bins": ("NOT (income >= 10 OR sex = 'F')", {("M", "[0, 10)")}),
    "twice": ("NOT (NOT (state = 'CA' AND sex = 'F'))", {("F", "CA")}),
}


@pytest.mark.parametrize(("where", "expected"), OTHERS.values(), ids=OTHERS)
def test_cells_without_a_declared_value_follow_the_logic_of_sql(where, expected):
    assert cells(where) == expected


def test_the_negation_of_a_condition_is_that_of_sql():
    state = SCHEMA["state"]
    for condition in ("state = 'CA'", "state >= 'NY'", "state IS NULL"):
        negated = Where(f"NOT {condition}").matrix("state", state).dense()
        np.testing.assert_array_equal((~Where(condition)).matrix("state", state).dense(), negated)
        np.testing.assert_array_equal(
            (~~Where(condition)).matrix("state", state).dense(), Where(condition).matrix("state", state).dense()
        )


def test_the_negation_of_a_union_negates_each_part_in_its_way():
    rows = (~(Where("state = 'CA'") | Values(["CA"]))).matrix("state", SCHEMA["state"]).dense()
    assert rows.tolist() == [[0, 1, 1, 0], [0, 1, 1, 1]]


REFUSED = {
    "an attribute that is nearly known": ("sexx = 'F' OR age = 1", "'sexx' is not in the schema; did you mean 'sex'?"),
    "a level that is nearly known": ("\"age grop\" = 'child' OR white", "did you mean 'age group'?"),
    "a part that is nearly known": ("whit OR age = 1", "did you mean 'white'?"),
    "a name like no other": ("zzz = 1 OR age = 1", "known: 'sex', 'age', 'state', 'income', 'race'"),
    "a value that is nearly known": ("state = 'CAA' OR white", "value 'CAA' is not in the domain; did you mean 'CA'?"),
    "a group that is nearly known": ("\"age group\" = 'chld' OR white", "did you mean 'child'?"),
    "a cut through a bin": ("sex = 'F' OR income > 10", "'> 10' cuts through a bin; bins can be cut only at 0, 10, 50"),
    "a range that cuts a bin": ("NOT (sex = 'F' OR income BETWEEN 0 AND 5)", "'<= 5' cuts through a bin"),
    "an order of combinations": ("race > 'white' OR age = 1", "'>' does not order combinations"),
    "missing where nothing is missing": ("sex IS NULL OR age = 1", "'sex' has no cell for missing values"),
    "missing on a level where nothing is": ("\"age group\" IS NULL OR white", "has no cell for missing values"),
    "a number alone": ("white OR age", "'age' is not a condition: it is not boolean"),
    "a level alone": ('white OR "age group"', "'\"age group\"' is not a condition: it is not boolean"),
    "two attributes compared": ("sex = state OR age = 1", "'sex' and 'state' are attributes of their own, and this"),
    "conditions compared": ("(sex = 'F') = (age = 1)", "'sex' and 'age' are attributes of their own, and this looks"),
    "a value of two attributes": ("CASE WHEN sex = 'F' THEN age ELSE 5 END > 3", "'sex' and 'age' are attributes of"),
    "a sub-query": ("sex = 'F' OR age IN (SELECT 1)", "sub-queries are not supported"),
    "a count": ("sex = 'F' OR COUNT(*) > 1", "only counts are answered, and a condition is about single records"),
    "two conditions": ("sex = 'F'; age = 1", "is not one condition"),
    "brackets that close too early": ("sex = 'F') OR (age = 1", "is not valid SQL"),
    "a name without its quotes": ("age group = 'child' OR white", "is not valid SQL"),
    "nothing": ("", "is not valid SQL"),
    "blanks": ("  \t", "is not valid SQL"),
    "a comment": ("-- everybody", "is not valid SQL"),
}  # fmt: skip


@pytest.mark.parametrize(("where", "message"), REFUSED.values(), ids=REFUSED)
def test_what_no_record_can_decide_is_refused_with_the_product(where, message):
    with pytest.raises(WorkloadError) as caught:
        W.add("q", where=where)
    assert str(caught.value).startswith("product 'q': condition ")
    assert message in str(caught.value)


@pytest.mark.parametrize("where", [5, True, Where("age = 1"), ["age = 1"]])
def test_a_condition_is_text(where):
    with pytest.raises(WorkloadError, match="expected an SQL condition as text"):
        W.add("q", where=where)


QUOTED = Schema(
    {"home-state": range(2), "where": range(2), "weight": range(2), "or": range(2), "it's": range(2), "a.b": range(2)}
)


@pytest.mark.parametrize("name", QUOTED)
def test_any_name_is_written_in_double_quotes(name):
    other = "weight" if name != "weight" else "or"
    workload = Workload(QUOTED).add("q", {name: Identity()}, where=f'"{name}" = 1 OR "{other}" = 1')
    sql = f'SELECT "{name}", COUNT(*) FROM t WHERE "{name}" = 1 OR "{other}" = 1 GROUP BY "{name}"'
    assert Workload(QUOTED).add_sql("q", sql).products == workload.products
    assert workload.encoded.products[0].axes == tuple(sorted((QUOTED.axis(name), QUOTED.axis(other))))


@pytest.mark.parametrize("name", ["where", "weight"])
def test_an_attribute_named_like_an_argument_goes_into_the_mapping(name):
    workload = Workload(QUOTED).add("q", {name: Identity()}, weight=2, where='"where" = 1 OR "or" = 1')
    assert workload.products[0].predicates == {name: Identity()}
    with pytest.raises(WorkloadError, match=f"product 'q', {name}="):
        Workload(QUOTED).add("q", **{name: Identity()})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["where", "weight"])
def test_an_attribute_named_like_a_key_of_the_spec_is_a_key_of_its_product(name, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(f"""\
schema: {{{name}: [x, y], age: {{min: 0, max: 2}}}}
workload:
  - {{name: q, product: {{{name}: identity}}, weight: 3, where: "\\"{name}\\" = 'x' OR age = 1"}}
""")
    (found,) = hdmm.Spec.load(path).workload.products
    assert (found.predicates, found.where) == ({name: Identity()}, f"\"{name}\" = 'x' OR age = 1")
    assert found.weight == 3


WIDE = Schema({f"x{place}": range(3) for place in range(24)})


def test_a_condition_of_too_many_terms_is_refused_with_what_to_do():
    pairs = " OR ".join(f"(x{2 * place} = 1 AND x{2 * place + 1} = 1)" for place in range(6))
    with pytest.raises(TooLargeError, match="it takes 63 products; the limit is 32; ask for its parts as products"):
        Workload(WIDE).add("q", where=pairs)


def test_a_condition_of_too_many_combinations_is_refused_at_once():
    """Each attribute is told apart into three classes: 3^13 are more than a million."""
    where = " OR ".join(f"x{place} = {value}" for place in range(13) for value in (0, 1))
    with pytest.raises(TooLargeError, match="it distinguishes 1594323 combinations of values; the limit is 1048576"):
        Workload(WIDE).add("q", where=where)


def test_a_disjunction_of_many_attributes_is_two_terms():
    where = " OR ".join(f"x{place} = 1" for place in range(20))
    (found,) = Workload(WIDE).add("q", where=where).encoded.products
    assert found.condition is not None
    assert len(found.condition.boxes) == 2


LARGE = Schema({f"x{place}": range(10) for place in range(20)})
LARGE_WORKLOAD = Workload(LARGE).add("either", x5=Identity(), where="x3 = 1 OR x17 >= 5").add(
    "one by one", {f"x{place}": Identity() for place in (0, 19)}
).add("total") + hdmm.marginals(LARGE, k=1)


def test_a_domain_too_large_to_enumerate_is_planned_without_a_full_vector():
    """A vector over its 10^20 cells could not be allocated."""
    plan = hdmm.select(LARGE_WORKLOAD, operators=[hdmm.baselines.Identity(), hdmm.baselines.Marginals()])
    assert plan.operator == "Marginals"
    assert np.isfinite(plan.errors(hdmm.Budget(epsilon="1"))["rmse"].to_numpy()).all()


def test_a_domain_too_large_to_enumerate_is_released(tmp_path):
    rng = np.random.default_rng(3)
    records = rng.integers(0, 10, (200, 20))
    rows = "\n".join(",".join(map(str, row)) for row in records.tolist())
    (tmp_path / "people.csv").write_text(f"{','.join(LARGE)}\n{rows}\n")
    plan = hdmm.select(LARGE_WORKLOAD, operators=[hdmm.baselines.Marginals()])
    made = hdmm.release(plan, tmp_path / "people.csv", hdmm.Budget(epsilon="450"), ledger=None)
    held = (records[:, 3] == 1) | (records[:, 17] >= 5)
    truth = np.bincount(records[held, 5], minlength=10)
    stderr = made.table("either")["stderr"].to_numpy()
    assert (abs(made.table("either")["answer"].to_numpy() - truth) <= 12 * stderr + 1e-9).all()


def test_the_gram_matrix_of_a_domain_too_large_to_enumerate_has_its_trace():
    """The trace adds up, for each of the ten groups, the cells that satisfy the condition."""
    (found,) = Workload(LARGE).add("q", x5=Identity(), where="x3 = 1 OR x17 >= 5").encoded.products
    trace = sum(term.coefficient * np.prod([term.factors[axis].trace() for axis in found.axes]) for term in found.terms)
    assert trace == pytest.approx(10 * (100 - 9 * 5))


WHERES = [
    "sex = 'F' OR age >= 3",
    "NOT (state = 'CA' AND \"age group\" = 'child')",
    "sex = 'F' OR\n  state IS NULL -- or nowhere",
    "TRUE",
    "white OR state IN ('CA', 'NY') OR income < 10",
    "sex <> 'F'OR 3>age",
]


@pytest.mark.parametrize("where", WHERES)
def test_a_condition_survives_saving_and_loading(where, tmp_path):
    workload = W.add("q", age=Identity(), where=where, weight="1/3").add("p", where=where)
    spec = hdmm.Spec(SCHEMA, workload)
    spec.save(tmp_path / "spec.yaml")
    assert hdmm.Spec.load(tmp_path / "spec.yaml") == hdmm.Spec.read(spec.data()) == spec
    assert [found.where for found in hdmm.Spec.load(tmp_path / "spec.yaml").workload.products] == [where, where]


@pytest.mark.parametrize(
    ("entry", "line", "message"),
    [
        ("{name: q, where: sexx = 1 OR age = 1}", 3, "did you mean 'sex'?"),
        ("{name: q, where: [age = 1]}", 3, "workload[1].where: expected a single value"),
        ("{name: q, sql: SELECT COUNT(*) FROM t, where: age = 1}", 3, "where does not go with sql"),
        ("{name: q, were: age = 1}", 3, "unknown key 'were'; did you mean 'where'?"),
        ("{name: q, product: {where: age = 1}}", 3, "unknown word 'age = 1'"),
    ],
)
def test_a_mistake_in_a_condition_is_shown_with_its_line(entry, line, message, tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(f"schema: {{sex: [F, M], age: {{min: 0, max: 9}}}}\nworkload:\n  - {entry}\n")
    with pytest.raises(hdmm.errors.SpecError) as caught:
        hdmm.Spec.load(path)
    assert f"line {line}: " in str(caught.value)
    assert message in str(caught.value)


def test_marginals_of_a_spec_count_under_its_condition(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("""\
schema: {sex: [F, M], age: {min: 0, max: 9}}
workload:
  - {name: q, marginals: {up_to: 1}, where: "sex = 'F' OR age < 3"}
""")
    workload = hdmm.Spec.load(path).workload
    assert [found.name for found in workload.products] == ["q: total", "q: sex", "q: age"]
    held = np.ones((2, 10), int)
    held[1, 3:] = 0
    tables = [workload.encoded.of(found).apply(np.ones(20, int)) for found in workload.encoded.products]
    assert [table.tolist() for table in tables] == [[13], [10, 3], held.sum(axis=0).tolist()]


PLANNED = (
    W.add("either", race=Level("white"), where="sex = 'F' OR age >= 7")
    .add("neither", state=Identity(), where="NOT (sex = 'F' OR state = 'CA' OR white)", weight=2)
    .add("exactly one", age=Prefix(), where="(white AND NOT income >= 10) OR (NOT white AND income >= 10)")
    .add("plain", sex=Identity() | Total(), age=Where("\"age group\" = 'adult'"))
)


@each_operator
def test_a_plan_with_conditions_survives_saving_and_loading(operator, tmp_path):
    plan = hdmm.select(PLANNED, operators=[operator])
    plan.save(tmp_path / "people.plan")
    again = hdmm.Plan.load(tmp_path / "people.plan")
    assert again.workload == plan.workload
    budget = hdmm.Budget(epsilon="1")
    assert again.errors(budget).equals(plan.errors(budget))
    measured = tuple(np.arange(block.queries) % 17 for block in plan.mechanism.blocks)
    for (name, table), (also, expected) in zip(
        hdmm.Release(again, budget, measured).tables(), hdmm.Release(plan, budget, measured).tables(), strict=True
    ):
        assert name == also
        assert table.equals(expected)


PEOPLE: list[tuple[tuple[str, int, str, str, str, str], int]] = [
    (("F", 1, "CA", "5", "t", "f"), 11),
    (("F", 8, "XX", "20", "f", "f"), 22),
    (("M", 8, "", "", "t", "t"), 33),
    (("M", 2, "NY", "5", "f", "t"), 44),
    (("M", 6, "CA", "10", "t", "f"), 55),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    lines = [",".join(map(str, record)) for record, count in PEOPLE for _ in range(count)]
    np.random.default_rng(0).shuffle(lines)
    path.write_text("\n".join(["sex,age,state,income,white,black", *lines]) + "\n")
    return path


@each_operator
def test_planted_counts_come_back(operator, people):
    """At ε = 200 a noise of ±1 has a probability below 1e-10."""
    plan = hdmm.select(PLANNED, operators=[operator])
    made = hdmm.release(plan, people, hdmm.Budget(epsilon="200"), ledger=None)
    answers = {name: np.rint(table["answer"].to_numpy()).astype(int).tolist() for name, table in made.tables()}
    assert made.table("either")["white"].to_pylist() == [False, True]
    assert answers["either"] == [22, 11 + 33]
    assert made.table("neither")["state"].to_pylist() == ["CA", "NY", "other", "missing"]
    assert answers["neither"] == [0, 44, 0, 0]
    assert answers["exactly one"] == [0, 11, 11, 11, 11, 11, 11, 11, 11 + 22, 11 + 22]
    assert made.table("plain")["sex"].to_pylist() == ["F", "M", None]
    assert answers["plain"] == [22, 88, 110]


@each_operator
def test_a_disjunctive_product_alone_gives_its_planted_counts(operator, people):
    workload = W.add("q", sex=Identity(), where="age >= 7 OR black")
    made = hdmm.release(hdmm.select(workload, operators=[operator]), people, hdmm.Budget(epsilon="200"), ledger=None)
    assert made.table("q")["answer"].to_pylist() == pytest.approx([22, 33 + 44])


def test_the_largest_budgets_have_margins():
    plan = hdmm.select(W.add("q", sex=Identity()), operators=[hdmm.baselines.Identity()])
    assert plan.accuracy("q", hdmm.Budget(epsilon="400")).margin.max() == 0


@each_operator
def test_what_cannot_be_answered_is_refused_before_it_is_measured(operator, monkeypatch):
    """A table may have more cells than a condition may be written out over."""
    monkeypatch.setattr(memory, "DENSE_LIMIT", 10)
    with pytest.raises(TooLargeError, match="its condition is about 20 cells of the attributes of the product"):
        hdmm.select(W.add("q", where="sex = 'F' OR age >= 7"), operators=[operator])


ORDERED = Integers(0, 3, levels={"half": {"low": [0, 1], "high": [2, 3]}})


@pytest.mark.parametrize("inner", [Where("a = 1"), Identity("a >= 2"), ~Level("half"), Total() | Where("a = 1")])
def test_conditions_and_levels_have_no_order_to_change(inner: Predicates):
    with pytest.raises(WorkloadError, match="conditions and levels do not follow an order"):
        Workload(Schema(a=ORDERED)).add("q", a=Permuted(inner, order=[3, 2, 1, 0]))


@pytest.mark.parametrize("inner", [Values([3]), Identity(), Total()], ids=["values", "identity", "total"])
def test_predicates_in_another_order_count_what_their_labels_say(inner: Predicates):
    permuted = Permuted(inner, order=[3, 2, 1, 0])
    expected = {
        str(label): row
        for label, row in zip(inner.labels("a", ORDERED), inner.matrix("a", ORDERED).dense().tolist(), strict=True)
    }
    found = {
        str(label): row
        for label, row in zip(
            permuted.labels("a", ORDERED), permuted.matrix("a", ORDERED).dense().tolist(), strict=True
        )
    }
    assert found == expected


def test_a_product_of_reals_under_a_condition_counts_only_where_it_holds():
    schema = Schema(a=range(3), b=Boolean())
    workload = Workload(schema).add("q", a=Custom([[0.5, -1, 2], [1, 1, 1]]), where="a = 0 OR b")
    expected = np.array([[0.5, 0.5, 0, -1, 0, 2], [1, 1, 0, 1, 0, 1]])
    np.testing.assert_array_equal(workload.encoded.matrix().dense(), expected)
    np.testing.assert_allclose(workload.encoded.gram().dense(), expected.T @ expected)


def test_levels_are_public():
    assert hdmm.Level is Level


def test_the_norm_of_several_conditions_on_a_domain_too_large_to_enumerate():
    encoded = Workload(LARGE).add("p", where="x0 = 1 OR x1 = 1").add("q", where="x2 = 1 OR x3 = 1").encoded
    assert encoded.matrix().norm_power(1) == 2


@pytest.mark.parametrize("entry", [5e-324, 1e-160, -1e-17])
def test_numbers_whose_squares_would_vanish_are_refused(entry):
    with pytest.raises(WorkloadError, match="scale the table"):
        Custom([[entry, 0]])


def test_a_small_number_is_not_taken_for_one():
    workload = Workload(Schema(a=range(2))).add("p", a=Custom([[1e-5, 0]])).add("q", a=Where("a = 1"))
    np.testing.assert_allclose(workload.encoded.compact.gram().dense(), np.diag([1e-10, 1]), rtol=1e-9)
