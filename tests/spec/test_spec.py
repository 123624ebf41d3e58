"""Specs: YAML and Python build the same workload, nothing is lost on the way, and a mistake is shown with its line."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import hdmm
from hdmm.errors import InputError, SpecError
from hdmm.privacy.calibrate import NoiseKind
from hdmm.privacy.unit import Neighbours
from hdmm.schema import Bins, Boolean, Domain, Integers, Listed, Schema
from hdmm.spec.spec import Spec
from hdmm.workload import (
    AllRange,
    Custom,
    Identity,
    Permuted,
    Predicates,
    Prefix,
    Product,
    Ranges,
    Total,
    Values,
    Where,
    Width,
    Workload,
    marginals,
)

DESIGN = """\
schema:
  sex: [F, M]
  age: {min: 0, max: 114}                      # integers 0..114
  income: {bins: [0, 10000, 50000, 100000]}    # [0,10000) [10000,50000) [50000,100000)
  hispanic: boolean
  state: {values: [CA, NY, TX], other: true}   # anything else is counted in the cell "other"; without it, dropped
workload:
  - {name: by sex and age, product: {sex: identity, age: prefix}, weight: 2}
  - {name: adults, product: {sex: [identity, total], age: {where: "age >= 18"}}}
  - {name: pairs, marginals: {up_to: 2}}       # products named "pairs: sex × age"
privacy: {noise: gaussian, unit: {rows: 1, neighbours: add-remove}}
"""


@pytest.fixture
def load(tmp_path: Path):
    def of(text: str | bytes) -> Spec:
        path = tmp_path / "spec.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Spec.load(path)

    return of


def test_yaml_and_python_build_the_same_workload(load) -> None:
    person = Schema(
        sex=["F", "M"],
        age=range(115),
        income=Bins([0, 10_000, 50_000, 100_000]),
        hispanic=[False, True],
        state=Listed(["CA", "NY", "TX"], other=True),
    )
    workload = Workload(person)
    workload = workload.add("by sex and age", sex=Identity(), age=Prefix(), weight=2)
    workload = workload.add("adults", {"age": Where("age >= 18"), "sex": Identity() | Total()})
    pairs = [Product(f"pairs: {product.name}", product.predicates) for product in marginals(person, up_to=2).products]
    assert load(DESIGN) == Spec(person, workload + Workload(person, pairs), "gaussian", hdmm.Unit(1, "add-remove"))


def test_products_of_marginals_are_named_after_their_entry(load) -> None:
    assert load(DESIGN).workload.product("pairs: sex × age").predicates == {"sex": Identity(), "age": Identity()}


def test_without_a_privacy_section_noise_is_laplace_and_the_unit_one_row(load) -> None:
    spec = load("schema: {sex: [F, M]}\nworkload: [{name: t}]\n")
    assert (spec.noise, spec.unit) == ("laplace", hdmm.Unit(1, "add-remove"))


TEXTS = ["01", "1", "1.50", "No", "yes", "on", "True", "null", "~", "", "0x10", "1e3", "1_000", "2020-01-01", ".inf"]


def test_listed_values_keep_their_text(load) -> None:
    spec = load("schema: {a: [01, 1, 1.50, No, yes, on, True, 'null', \"~\", 0x10, 1e3, 1_000, 2020-01-01, .inf]}\n"
                "workload: [{name: t}]\n")  # fmt: skip
    assert spec.schema["a"] == Listed([text for text in TEXTS if text])


def test_listed_values_in_a_mapping_keep_their_text(load) -> None:
    spec = load("schema: {a: {values: [01, No, 1.50, 'null'], missing: true}}\nworkload: [{name: t}]\n")
    assert spec.schema["a"] == Listed(["01", "No", "1.50", "null"], missing=True)


def test_an_attribute_may_have_a_name_that_looks_like_a_number(load) -> None:
    spec = load("schema: {01: [F, M], no: boolean}\nworkload: [{name: t, product: {01: identity}}]\n")
    assert spec.schema.names == ("01", "no")


DOMAINS = {
    "list": ("[a, b]", Listed(["a", "b"])),
    "values": ("{values: [a, b], other: true, missing: true}", Listed(["a", "b"], other=True, missing=True)),
    "integers": ("{min: -3, max: 3, missing: true}", Integers(-3, 3, missing=True)),
    "bins": ("{bins: [0, 0.1, 1e3], closed: true, other: true}", Bins(["0", "0.1", "1000"], closed=True, other=True)),
    "boolean": ("boolean", Boolean()),
    "boolean with missing": ("{boolean: true, missing: true, other: false}", Boolean(missing=True)),
}


@pytest.mark.parametrize(("text", "domain"), DOMAINS.values(), ids=DOMAINS)
def test_each_kind_of_attribute_is_read(load, text: str, domain: Domain) -> None:
    assert load(f"schema: {{a: {text}}}\nworkload: [{{name: t}}]\n").schema["a"] == domain


PREDICATES: dict[str, tuple[str, Predicates]] = {
    "identity": ("identity", Identity()),
    "total": ("total", Total()),
    "prefix": ("prefix", Prefix()),
    "all ranges": ("all_range", AllRange()),
    "width": ("{width: 3}", Width(3)),
    "ranges": ("{ranges: [[0, 1], [02, 4]]}", Ranges([("0", "1"), ("02", "4")])),
    "values": ("{values: [3, 01]}", Values(["3", "01"])),
    "where": ('{where: "a >= 2 AND NOT a = 3"}', Where("a >= 2 AND NOT a = 3")),
    "custom": (
        "{custom: [[1, 0, -2, 0, 1], [0.5, 0.1, 0, 1e-7, 3]]}",
        Custom([[1, 0, -2, 0, 1], [0.5, 0.1, 0, 1e-7, 3]]),
    ),
    "not": ("{not: prefix}", ~Prefix()),
    "permuted": ("{permuted: prefix, order: [4, 3, 2, 1, 0]}", Permuted(Prefix(), [4, 3, 2, 1, 0])),
    "union": ("[identity, {width: 2}, total]", Identity() | Width(2) | Total()),
    "not of a union": ("{not: [identity, total]}", ~(Identity() | Total())),
    "permuted not": ("{permuted: {not: prefix}, order: [1, 0, 2, 3, 4]}", Permuted(~Prefix(), [1, 0, 2, 3, 4])),
}


@pytest.mark.parametrize(("text", "predicates"), PREDICATES.values(), ids=PREDICATES)
def test_each_predicate_set_is_read(load, text: str, predicates: Predicates) -> None:
    spec = load(f"schema: {{a: {{min: 0, max: 4}}}}\nworkload: [{{name: x, product: {{a: {text}}}}}]\n")
    assert spec.workload.products == (Product("x", {"a": predicates}),)


@pytest.mark.parametrize("predicates", [case[1] for case in PREDICATES.values()], ids=PREDICATES)
def test_each_predicate_set_survives_saving_and_loading(tmp_path: Path, predicates: Predicates) -> None:
    schema = Schema(a=range(5))
    spec = Spec(schema, Workload(schema).add("x", a=predicates))
    spec.save(tmp_path / "spec.yaml")
    assert Spec.load(tmp_path / "spec.yaml") == spec


@pytest.mark.parametrize("weight", [Fraction(1, 3), "0.1", 2, "1e-20", "123456789.123456789"])
def test_a_weight_survives_saving_and_loading(tmp_path: Path, weight) -> None:
    schema = Schema(a=range(5))
    Spec(schema, Workload(schema).add("x", weight=weight)).save(tmp_path / "spec.yaml")
    assert Spec.load(tmp_path / "spec.yaml").workload.products[0].weight == Fraction(weight)


@pytest.mark.parametrize(
    "text", [*(text for text in TEXTS if text), "a: b", "# x", "- x", "?x", "?-", "&x", "*x", "!x", "'", '"', "\\"]
)
def test_a_text_survives_saving_and_loading(tmp_path: Path, text: str) -> None:
    schema = Schema(a=[text])
    Spec(schema, Workload(schema).add("x", a=Values([text]))).save(tmp_path / "spec.yaml")
    assert Spec.load(tmp_path / "spec.yaml").schema["a"] == Listed([text])


def test_a_product_of_the_saved_form_of_the_design_stays_the_same(tmp_path: Path, load) -> None:
    spec = load(DESIGN)
    spec.save(tmp_path / "again.yaml")
    assert Spec.load(tmp_path / "again.yaml") == spec


LINES = st.one_of(
    st.text(min_size=1, max_size=12),
    st.sampled_from([text for text in TEXTS if text]),
    st.text(alphabet=" -:#,[]{}&*!|>'\"%@`\\?~=<.01eno\tN\x7f\x85\xa0\u2028\ufeff", min_size=1, max_size=8),
    st.lists(st.sampled_from(["word", "two", " ", "  ", "x:", "#"]), min_size=30, max_size=60).map(" ".join),
)


def built(build: Any, *args: Any, **options: Any) -> Any:
    """What is refused when it is built need not survive anything."""
    try:
        return build(*args, **options)
    except InputError:
        reject()


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    usable = LINES.map(str.strip).filter(lambda text: text and not set(text) & set('\n\r\0"'))
    domains: dict[str, Domain] = {}
    for name in draw(st.lists(usable, min_size=1, max_size=3, unique=True)):
        extra: dict[str, Any] = {"other": draw(st.booleans()), "missing": draw(st.booleans())}
        kind = draw(st.sampled_from(["listed", "integers", "bins", "boolean"]))
        if kind == "listed":
            domains[name] = built(Listed, draw(st.lists(usable, min_size=1, max_size=4, unique=True)), **extra)
        elif kind == "integers":
            low = draw(st.integers(-(10**12), 10**12))
            domains[name] = Integers(low, low + draw(st.integers(0, 5)), **extra)
        elif kind == "bins":
            edges = draw(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=4, unique=True).map(sorted))
            scale = draw(st.integers(-8, 6))
            domains[name] = Bins([Decimal(edge).scaleb(scale) for edge in edges], closed=draw(st.booleans()), **extra)
        else:
            domains[name] = Boolean(**extra)
    return built(Schema, domains)


@st.composite
def predicate_sets(draw: st.DrawFn, domain: Domain, depth: int = 2) -> Predicates:
    declared = domain.declared
    kinds = ["identity", "total", "prefix", "all_range", "width", "where", "custom"]
    kinds += ["values", "ranges"] if not isinstance(domain, Bins) else []
    kinds += ["union", "not", "permuted"] if depth else []
    kind = draw(st.sampled_from(kinds))
    code = st.integers(0, declared - 1)
    if kind == "width":
        return Width(draw(st.integers(1, declared)))
    if kind == "values":
        return Values([domain.value(draw(code)) for _ in range(draw(st.integers(1, 3)))])
    if kind == "ranges":
        pairs = [sorted((draw(code), draw(code))) for _ in range(draw(st.integers(1, 3)))]
        return Ranges([(domain.value(low), domain.value(high)) for low, high in pairs])
    if kind == "where":
        return Where(draw(st.sampled_from(["true", "TRUE OR\n  false -- note", "NOT (true AND false)"])))
    if kind == "custom":
        entry = st.one_of(st.integers(-(2**31), 2**31), st.floats(-1e30, 1e30))
        rows = st.lists(st.lists(entry, min_size=domain.size, max_size=domain.size), min_size=1, max_size=3)
        return built(Custom, draw(rows))
    if kind == "union":
        return draw(predicate_sets(domain, depth - 1)) | draw(predicate_sets(domain, depth - 1))
    if kind == "not":
        return ~draw(st.sampled_from([Identity(), Prefix() | Total(), ~AllRange()]))
    if kind == "permuted":
        order = draw(st.permutations([domain.value(code) for code in range(declared)]))
        return Permuted(draw(predicate_sets(domain, depth - 1)), order)
    return {"identity": Identity(), "total": Total(), "prefix": Prefix(), "all_range": AllRange()}[kind]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    schema = draw(schemas())
    products = []
    for name in draw(st.lists(LINES, min_size=1, max_size=3, unique=True)):
        touched = draw(st.lists(st.sampled_from(schema.names), unique=True))
        sets = {attribute: draw(predicate_sets(schema[attribute])) for attribute in touched}
        fractions = st.fractions(Fraction(1, 10**9), 10**9)
        products.append(built(Product, name, sets, draw(st.sampled_from([1, 2, "0.1", "1/3"]) | fractions)))
    noise = draw(st.sampled_from(get_args(NoiseKind)))
    neighbours = draw(st.sampled_from(get_args(Neighbours)))
    return Spec(schema, built(Workload, schema, products), noise, hdmm.Unit(draw(st.integers(1, 99)), neighbours))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(spec=specs())
def test_a_spec_loses_nothing_when_it_is_saved_and_loaded(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "spec.yaml"
    spec.save(path)
    again = Spec.load(path)
    assert again == spec
    assert again.schema.names == spec.schema.names


@given(spec=specs())
def test_the_plain_data_of_a_spec_reads_back_to_it(spec: Spec) -> None:
    assert Spec.read(spec.data()) == spec


GOOD = """\
schema:
  sex: [F, M]
  age: {min: 0, max: 9}
workload:
  - {name: total}
"""

MISTAKES: dict[str, tuple[str, int, str]] = {
    "an unknown section": (GOOD + "privcy: {noise: laplace}\n", 6, "unknown key 'privcy'; did you mean 'privacy'?"),
    "no schema": ("workload: [{name: t}]\n", 1, "the key 'schema' is missing"),
    "no workload": ("# people\nschema: {sex: [F, M]}\n", 2, "the key 'workload' is missing"),
    "an empty workload": ("schema: {sex: [F, M]}\nworkload: []\n", 2, "the workload is empty; ask for at least one"),
    "an empty schema": ("schema: {}\nworkload: [{name: t}]\n", 1, "a schema needs at least one attribute"),
    "a section twice": (GOOD + "schema: {sex: [F, M]}\n", 6, "the key 'schema' stands twice in one mapping"),
    "an attribute twice": ("schema:\n  a: [x]\n  b: [x]\n  a: [y]\n", 4, "the key 'a' stands twice in one mapping"),
    "a list instead of sections": ("- schema\n- workload\n", 1, "this is no spec; write the sections `schema:`"),
    "a text instead of sections": ("people\n", 1, "this is no spec; write the sections `schema:`"),
    "a list instead of a schema": ("schema: [sex]\nworkload: [{name: t}]\n", 1, "schema: expected a mapping"),
    "a mapping instead of a workload": ("schema: {sex: [F, M]}\nworkload: {name: t}\n", 2, "workload: expected a list"),
    "an unbalanced bracket": ("schema:\n  sex: [F, M\nworkload: []\n", 3, ""),
    "a tab": ("schema:\n\tsex: [F, M]\n", 2, "cannot start any token"),
    "an unbalanced quote": ("schema:\n  sex: ['F, M]\nworkload:\n", 4, "unexpected end of stream"),
    "two documents": (GOOD + "---\nmore: 1\n", 6, "another document"),
    "an anchor": ("schema:\n  sex: &sexes [F, M]\n", 2, "anchors and aliases are not used in specs; write the value"),
    "an alias": ("schema:\n  a: &x [F]\n  b: *x\n", 2, "anchors and aliases are not used in specs"),
    "a missing value": ("schema:\n  sex: [F, M]\n  age:\nworkload: [{name: t}]\n", 3, "the key 'age' has no value"),
    "null": ("schema:\n  sex: [F, null]\nworkload: [{name: t}]\n", 2, "a value is missing"),
    "a key that is a list": ("schema:\n  [a, b]: [F, M]\n", 2, "a key must be text"),
    "a name that tables use": (GOOD.replace("sex:", "low:"), 1, "taken by a column of answer tables"),
    "an unknown noise": (GOOD + "privacy: {noise: gausian}\n", 6, "unknown word 'gausian'; did you mean 'gaussian'?"),
    "an unknown key in privacy": (GOOD + "privacy: {nois: laplace}\n", 6, "unknown key 'nois'; did you mean 'noise'?"),
    "a budget": (GOOD + "privacy:\n  noise: laplace\n  epsilon: 1\n", 8, "unknown key 'epsilon'"),
    "rows that are no number": (GOOD + "privacy:\n  unit: {rows: one}\n", 7, "unit.rows: 'one' is not an integer"),
    "unknown neighbours": (
        GOOD + "privacy:\n  unit:\n    rows: 1\n    neighbours: replace\n",
        9,
        "unknown word 'replace'; did you mean 'replace-one'?",
    ),
    "a mistake on a line of its own": (
        GOOD + "  - name: a\n    product:\n      age:\n        - identity\n        - prefx\n",
        10,
        "unknown word 'prefx'; did you mean 'prefix'?",
    ),
    "two products of one name": (GOOD + "  - {name: a}\n  - {name: total}\n", 7, "product 'total' is named twice"),
}


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_shown_with_its_file_and_line(load, tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(text)
    shown = str(caught.value)
    assert shown.startswith(f"{tmp_path / 'spec.yaml'}, line {line}: ")
    assert message in shown


ATTRIBUTES = {
    "a word that is none": (
        "integer",
        "schema.age: 'integer' does not say which values there are; write {min: 0, max: 114}",
    ),
    "an unknown key": ("{min: 0, mx: 9}", "schema.age.mx: unknown key 'mx'; did you mean 'max'?"),
    "a key of another kind": ("{min: 0, max: 9, closed: true}", "unknown key 'closed'"),
    "max without min": ("{max: 9}", "expected exactly one of values, min and max, bins, boolean"),
    "min without max": ("{min: 0}", "the key 'max' is missing"),
    "two kinds at once": (
        "{min: 0, max: 9, values: [1]}",
        "expected exactly one of values, min and max, bins, boolean",
    ),
    "nothing": ("{}", "expected exactly one of values, min and max, bins, boolean"),
    "a bound that is no number": ("{min: 0, max: nine}", "schema.age.max: 'nine' is not an integer"),
    "a bound with a point": ("{min: 0, max: 9.0}", "schema.age.max: '9.0' is not an integer"),
    "a bound that is a list": ("{min: 0, max: [9]}", "schema.age.max: expected a single value"),
    "bounds in the wrong order": ("{min: 0, max: -1}", "min: 0, max: -1: the domain is empty; min must not exceed max"),
    "a value twice": ("[F, F]", "schema.age: value 'F' is listed twice"),
    "no values": ("[]", "an attribute needs at least one value"),
    "a list as value": ("[F, [M]]", "expected a single value"),
    "a mapping as value": ("{values: [{a: b}]}", "expected a single value"),
    "one text as values": ("{values: abc}", "schema.age.values: expected a list"),
    "an edge that is no number": ("{bins: [0, x]}", "edge 'x': expected a decimal number"),
    "an edge that is NaN": ("{bins: [0, nan]}", "edge 'nan': expected a finite number"),
    "edges that decrease": ("{bins: [9, 1]}", "edges 9, 1: edges must increase"),
    "one number as edges": ("{bins: 9}", "schema.age.bins: expected a list"),
    "other that is neither": ("{min: 0, max: 9, other: 2}", "schema.age.other: '2' is neither true nor false"),
    "a boolean that is false": ("{boolean: false}", "schema.age.boolean: expected true"),
    "a key twice": ("{min: 0, max: 9, min: 1}", "the key 'min' stands twice in one mapping"),
}


@pytest.mark.parametrize(("text", "message"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_a_mistake_in_an_attribute_is_shown_with_its_line(load, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(GOOD.replace("{min: 0, max: 9}", text))
    assert "spec.yaml, line 3: " in str(caught.value)
    assert message in str(caught.value)


ENTRIES = {
    "a text": ("adults", "workload[2]: expected a mapping with the keys name, product"),
    "no name": ("{product: {sex: identity}}", "workload[2]: the key 'name' is missing"),
    "a name that is a list": ("{name: [a]}", "workload[2].name: expected a single value"),
    "an empty name": ('{name: " "}', "a product needs a name on one line"),
    "a name twice": ("{name: a, name: b}", "the key 'name' stands twice"),
    "an unknown key": ("{name: a, wieght: 2}", "unknown key 'wieght'; did you mean 'weight'?"),
    "a weight of zero": ("{name: a, weight: 0}", "expected a positive number, for example weight: 2"),
    "a weight that is no number": ("{name: a, weight: heavy}", "weight: 'heavy': expected a positive number"),
    "a weight that is a list": ("{name: a, weight: [2]}", "workload[2].weight: expected a single value"),
    "SQL": ("{name: a, sql: SELECT sex FROM people}", "nothing is counted; select COUNT(*) beside the columns"),
    "SQL beside a product": (
        "{name: a, sql: x, product: {}}",
        "give one of product, marginals and sql, not product and",
    ),
    "marginals of nothing": ("{name: a, marginals: {}}", "give exactly one of k, up_to, max_cells and all"),
    "marginals of too much": ("{name: a, marginals: {k: 5}}", "k=5: expected an integer from 0 to 2"),
    "marginals of a text": ("{name: a, marginals: all}", "workload[2].marginals: expected a mapping"),
    "an unknown key in marginals": ("{name: a, marginals: {upto: 2}}", "unknown key 'upto'; did you mean 'up_to'?"),
    "an unknown prefix": (
        "{name: a, marginals: {k: 1, prefix: [aeg]}}",
        "'aeg' is not in the schema; did you mean 'age'",
    ),
    "products as a list": ("{name: a, product: [sex]}", "workload[2].product: expected a mapping"),
}


@pytest.mark.parametrize(("text", "message"), ENTRIES.values(), ids=ENTRIES)
def test_a_mistake_in_an_entry_of_the_workload_is_shown_with_its_line(load, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(f"{GOOD}  - {text}\n")
    assert "spec.yaml, line 6: " in str(caught.value)
    assert message in str(caught.value)


SETS = {
    "an unknown attribute": ("sxe: identity", "attribute 'sxe' is not in the schema; did you mean 'sex'?"),
    "an unknown word": ("sex: identiy", "workload[2].product.sex: unknown word 'identiy'; did you mean 'identity'?"),
    "an unknown word in a list": ("sex: [total, al]", "product.sex[2]: unknown word 'al'"),
    "an unknown key": ("age: {widht: 2}", "unknown key 'widht'; did you mean 'width'?"),
    "an empty list": ("age: []", "the list of predicate sets is empty; write for example [identity, total]"),
    "an empty mapping": ("age: {}", "expected one of the words identity, total, prefix, all_range, or one of the keys"),
    "two sets in a mapping": ("age: {width: 2, values: [1]}", "expected one of the words"),
    "an order of nothing": ("age: {width: 2, order: [1]}", "expected one of the words"),
    "a width that is no number": ("age: {width: two}", "product.age.width: 'two' is not an integer"),
    "a width beyond the domain": ("age: {width: 20}", "width: 20: expected an integer from 1 to 10, the size of 'age'"),
    "ranges that are no pairs": ("age: {ranges: [1, 2]}", "product.age.ranges: expected a list"),
    "a range of three": ("age: {ranges: [[1, 2, 3]]}", "expected pairs"),
    "a range backwards": ("age: {ranges: [[2, 1]]}", "range (2, 1) is empty"),
    "an unknown value": ("sex: {values: [X]}", "attribute 'sex': value 'X' is not in the domain; known: 'F', 'M'"),
    "another attribute": ('age: {where: "sex > 1"}', "attribute 'sex' is not 'age'"),
    "what is no SQL": ('age: {where: "age >"}', "condition 'age >' is not valid SQL"),
    "a table of texts": ("sex: {custom: [[1, x]]}", "product.sex.custom: 'x' is not a number"),
    "a table with NaN": ("sex: {custom: [[1, nan]]}", "a table of finite numbers"),
    "a table that is too narrow": ("sex: {custom: [[1]]}", "the table has 1 columns, but 'sex' has 2 cells"),
    "an order that misses a value": ("sex: {permuted: prefix, order: [M]}", "order: expected each of the 2 values"),
    "no order": ("sex: {permuted: prefix}", "order: expected each of the 2 values"),
    "too deep": (f"sex: {'{not: ' * 60}identity{'}' * 60}", "nested too deeply"),
}


@pytest.mark.parametrize(("text", "message"), SETS.values(), ids=SETS)
def test_a_mistake_in_a_product_is_shown_with_its_line(load, text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(f"{GOOD}  - {{name: a, product: {{{text}}}}}\n")
    assert "spec.yaml, line 6: " in str(caught.value)
    assert message in str(caught.value)


def test_windows_line_ends_do_not_change_the_line(load) -> None:
    with pytest.raises(SpecError, match=r"line 6: .*unknown key 'wieght'"):
        load((GOOD + "  - {name: a, wieght: 2}\n").replace("\n", "\r\n"))


def test_a_byte_order_mark_is_ignored(load) -> None:
    assert load("\ufeff" + GOOD) == load(GOOD)


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the spec is empty; it needs the sections schema and workload"),
    "a comment": (b"# people\n", "the spec is empty"),
    "not UTF-8": (b"schema: {sex: [\xff]}\n", "is not UTF-8 text"),
    "a NUL byte": (b"schema: {sex: [\0]}\n", "not valid YAML"),
    "brackets beyond any use": (b"[" * 1000, "nested too deeply"),
    "a text that no file can hold": (
        b'schema: {sex: ["\\ud800", M]}\nworkload: [{name: t}]\n',
        "line 1: schema.sex: value",
    ),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_is_no_spec_is_refused(load, text: bytes, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load(text)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: there is no such file"):
        Spec.load(tmp_path / "nowhere.yaml")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        Spec.load(tmp_path)


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.yaml").write_text(GOOD)
    monkeypatch.setattr("hdmm.spec.yaml._MAX_BYTES", len(GOOD) - 1)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("the file was read"))
    with pytest.raises(SpecError, match="is refused"):
        Spec.load(tmp_path / "spec.yaml")


@pytest.mark.parametrize("data", [None, [], 5, {}, {"schema": None, "workload": []}, {1: 2}])
def test_plain_data_that_is_no_spec_is_refused(data) -> None:
    with pytest.raises(InputError):
        Spec.read(data)
