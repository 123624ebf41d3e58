"""Products are named, weighted and checked when they are added; workloads add up and build in bulk."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm.errors import WorkloadError
from hdmm.schema import Listed, Schema
from hdmm.workload import Identity, Predicates, Prefix, Product, Ranges, Total, Where, Workload

PERSON = Schema({"education-num": range(4)}, sex=["F", "M"], age=range(5))


def test_an_attribute_that_is_not_named_is_summed_over() -> None:
    matrix = Workload(PERSON).add("by sex", sex=Identity()).encoded.matrix().dense()
    assert matrix.tolist() == np.kron(np.ones((1, 4)), np.kron(np.eye(2), np.ones((1, 5)))).tolist()


def test_a_product_without_attributes_is_the_grand_total() -> None:
    assert Workload(PERSON).add("total").encoded.matrix().dense().tolist() == [[1] * PERSON.cells]


def test_total_on_every_attribute_is_the_grand_total() -> None:
    explicit = Workload(PERSON).add("total", sex=Total(), age=Total())
    assert explicit.encoded.products[0].axes == Workload(PERSON).add("total").encoded.products[0].axes == ()


def test_a_product_holds_every_conjunction_in_schema_order() -> None:
    matrix = Workload(PERSON).add("x", age=Prefix(), sex=Identity()).encoded.matrix().dense()
    expected = np.kron(np.ones((1, 4)), np.kron(np.eye(2), np.tril(np.ones((5, 5)))))
    assert matrix.tolist() == expected.tolist()


def test_the_axes_of_a_product_are_in_schema_order_however_they_were_given() -> None:
    product = Workload(PERSON).add("x", age=Prefix(), sex=Identity()).encoded.products[0]
    assert (product.axes, product.shape, tuple(product.grams)) == ((1, 2), (2, 5), (1, 2))


def test_products_stack_in_the_order_in_which_they_were_added() -> None:
    schema = Schema(sex=["F", "M"])
    workload = Workload(schema).add("total").add("by sex", sex=Identity())
    assert workload.encoded.matrix().dense().tolist() == [[1, 1], [1, 0], [0, 1]]


def test_a_weight_multiplies_the_rows_of_its_product_alone() -> None:
    schema = Schema(sex=["F", "M"])
    workload = Workload(schema).add("total", weight=3).add("by sex", sex=Identity(), weight="0.5")
    assert workload.encoded.matrix().dense().tolist() == [[3, 3], [0.5, 0], [0, 0.5]]


def test_the_gram_of_a_workload_is_that_of_its_weighted_matrix() -> None:
    workload = Workload(PERSON).add("a", sex=Identity(), weight=3).add("b", age=Prefix(), sex=Total(), weight="1/2")
    matrix = workload.encoded.matrix().dense()
    assert np.allclose(workload.encoded.gram().dense(), matrix.T @ matrix)


def test_queries_are_counted_without_weights() -> None:
    assert Workload(PERSON).add("x", sex=Identity() | Total(), age=Prefix(), weight=10).query_count == 3 * 5


def test_an_empty_workload_has_no_queries() -> None:
    assert Workload(PERSON).query_count == 0


def test_adding_a_product_leaves_the_workload_as_it_was() -> None:
    workload = Workload(PERSON).add("total")
    workload.add("by sex", sex=Identity())
    assert [product.name for product in workload.products] == ["total"]


def test_a_name_that_is_no_identifier_goes_into_the_mapping() -> None:
    workload = Workload(PERSON).add("x", {"education-num": Identity()}, sex=Identity())
    assert workload.encoded.products[0].axes == (0, 1)


def test_an_attribute_called_weight_or_name_goes_into_the_mapping() -> None:
    workload = Workload(Schema(weight=range(3), name=range(2))).add("x", {"weight": Identity()}, name=Identity())
    assert workload.query_count == 6


def test_an_attribute_in_the_mapping_and_as_an_argument_is_refused() -> None:
    with pytest.raises(WorkloadError, match="product 'x': attribute 'sex' is given twice"):
        Workload(PERSON).add("x", {"sex": Identity()}, sex=Total())


def test_an_unknown_attribute_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(WorkloadError, match="product 'x': attribute 'aeg' is not in the schema; did you mean 'age'"):
        Workload(PERSON).add("x", aeg=Identity())


@pytest.mark.parametrize("name", [5, None, ("age",)])
def test_an_attribute_that_is_no_text_is_refused(name) -> None:
    with pytest.raises(WorkloadError, match=r"product 'x', attribute .*: an attribute's name is text"):
        Workload(PERSON).add("x", {name: Identity()})


def test_a_predicate_set_that_does_not_fit_is_refused_with_product_and_attribute() -> None:
    with pytest.raises(WorkloadError, match="product 'x': attribute 'age': value '9' is not in the domain"):
        Workload(PERSON).add("x", age=Ranges([(0, 9)]))


@pytest.mark.parametrize("given_set", [5, "identity", None, Identity, [Identity()]])
def test_what_is_no_predicate_set_is_refused(given_set) -> None:
    with pytest.raises(WorkloadError, match=r"product 'x', attribute 'age': .* is not a predicate set; use"):
        Workload(PERSON).add("x", age=given_set)


@pytest.mark.parametrize("product", [Identity(), 5, "age", ["age"]])
def test_a_product_that_is_no_mapping_is_refused(product) -> None:
    with pytest.raises(WorkloadError, match="product 'x'"):
        Workload(PERSON).add("x", product)


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", 5, None])
def test_a_product_without_a_usable_name_is_refused(name) -> None:
    with pytest.raises(WorkloadError, match="a product needs a name on one line, for example 'by sex and age'"):
        Workload(PERSON).add(name, age=Identity())


def test_a_name_is_given_once() -> None:
    with pytest.raises(WorkloadError, match="product 'x' is named twice; give each product its own name"):
        Workload(PERSON).add("x", age=Identity()).add("x", sex=Identity())


def test_a_name_is_given_once_in_bulk() -> None:
    with pytest.raises(WorkloadError, match="product 'x' is named twice"):
        Workload(PERSON, [Product("x"), Product("y"), Product("x")])


WEIGHTS: dict[str, tuple[object, Fraction]] = {
    "an integer": (2, Fraction(2)),
    "a float": (0.1, Fraction(1, 10)),
    "a decimal": (Decimal("0.125"), Fraction(1, 8)),
    "a fraction": (Fraction(1, 3), Fraction(1, 3)),
    "a text": ("0.1", Fraction(1, 10)),
    "a fraction as text": ("1/3", Fraction(1, 3)),
    "an exponent": ("1e-3", Fraction(1, 1000)),
}


@pytest.mark.parametrize(("weight", "exact"), WEIGHTS.values(), ids=WEIGHTS)
def test_a_weight_is_taken_exactly(weight, exact: Fraction) -> None:
    assert Workload(PERSON).add("x", weight=weight).products[0].weight == exact


BAD_WEIGHTS = [0, -1, 0.0, "0", "-0.5", float("nan"), float("inf"), "NaN", "abc", "", "1/0", True, False, None, [1], 1j]


@pytest.mark.parametrize("weight", BAD_WEIGHTS)
def test_a_weight_that_is_not_positive_is_refused(weight) -> None:
    with pytest.raises(WorkloadError, match=r"product 'x', weight=.*expected a positive number, for example weight=2"):
        Workload(PERSON).add("x", weight=weight)


@pytest.mark.parametrize("weight", ["1e400", "1e-400", "1e200", "1e-200"])
def test_a_weight_beyond_floating_point_is_refused(weight: str) -> None:
    with pytest.raises(WorkloadError, match=f"product 'x', weight='{weight}'"):
        Workload(PERSON).add("x", weight=weight)


def test_workloads_add_up_in_order() -> None:
    both = Workload(PERSON).add("x") + Workload(PERSON).add("y", sex=Identity())
    assert ([product.name for product in both.products], both.query_count) == (["x", "y"], 3)


def test_workloads_with_a_name_in_common_do_not_add() -> None:
    with pytest.raises(WorkloadError, match="product 'x' is named twice"):
        Workload(PERSON).add("x") + Workload(PERSON).add("x", sex=Identity())


def test_workloads_over_different_schemas_do_not_add() -> None:
    with pytest.raises(WorkloadError, match="workloads over different schemas do not add; use one Schema for both"):
        Workload(PERSON).add("x") + Workload(Schema(sex=Listed(["F", "M"], other=True))).add("y")


def test_a_workload_adds_only_to_a_workload() -> None:
    with pytest.raises(TypeError):
        Workload(PERSON) + Product("x")  # type: ignore[operator]


def test_workloads_are_equal_if_their_products_are() -> None:
    one = Workload(PERSON).add("x", sex=Identity(), age=Where("age > 1"), weight="0.5")
    two = Workload(PERSON, [Product("x", {"age": Where("age > 1"), "sex": Identity()}, Fraction(1, 2))])
    assert (one, hash(one)) == (two, hash(two))


DIFFERENT = {
    "name": Product("y", {"sex": Identity()}),
    "predicates": Product("x", {"sex": Total()}),
    "attribute": Product("x", {"age": Identity()}),
    "weight": Product("x", {"sex": Identity()}, 2),
}


@pytest.mark.parametrize("product", DIFFERENT.values(), ids=DIFFERENT)
def test_workloads_differ_in_anything_that_is_asked(product: Product) -> None:
    assert Workload(PERSON, [product]) != Workload(PERSON, [Product("x", {"sex": Identity()})])


def test_a_product_cannot_be_changed_through_the_mapping_it_was_given() -> None:
    given_sets: dict[str, Predicates] = {"sex": Identity()}
    product = Product("x", given_sets)
    given_sets["sex"] = Total()
    assert product.predicates == {"sex": Identity()}


@pytest.mark.parametrize("products", [["x"], [None], [{"name": "x"}]])
def test_what_is_no_product_is_refused(products) -> None:
    with pytest.raises(WorkloadError, match="is not a Product"):
        Workload(PERSON, products)


def test_a_workload_needs_a_schema() -> None:
    with pytest.raises(WorkloadError, match="expected a Schema"):
        Workload({"age": range(5)})  # type: ignore[arg-type]


def test_a_product_is_found_by_its_name() -> None:
    workload = Workload(PERSON).add("by sex", sex=Identity()).add("total")
    assert workload.product("by sex") == Product("by sex", {"sex": Identity()})


def test_an_unknown_product_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(WorkloadError, match="product 'by sx' is not in the workload; did you mean 'by sex'"):
        Workload(PERSON).add("by sex", sex=Identity()).product("by sx")


def test_a_workload_is_built_in_bulk() -> None:
    schema = Schema({f"a{i}": range(2 + i % 7) for i in range(60)})
    sets = [names for way in range(3) for names in combinations(schema, way)]
    products = [Product(" × ".join(names) or "total", {name: Identity() for name in names}) for names in sets]
    workload = Workload(schema, products)
    sizes = schema.sizes
    expected = 1 + sum(sizes) + sum(a * b for a, b in combinations(sizes, 2))
    assert (len(workload.products), workload.query_count) == (1 + 60 + 60 * 59 // 2, expected)


def test_equal_predicate_sets_on_one_attribute_share_one_matrix() -> None:
    encoded = Workload(PERSON).add("x", age=Where("age > 1")).add("y", age=Where("age > 1"), sex=Identity()).encoded
    assert encoded.products[0].factors[2] is encoded.products[1].factors[2]


SETS: st.SearchStrategy[Predicates] = st.sampled_from([Identity(), Total(), Prefix(), Identity() | Total()])


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(["education-num", "sex", "age"]), SETS),
            st.sampled_from([1, 2, Fraction(1, 3)]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_the_matrix_of_a_workload_is_its_products_written_out(products) -> None:
    workload = Workload(PERSON, [Product(str(i), sets, weight) for i, (sets, weight) in enumerate(products)])
    rows = []
    for sets, weight in products:
        matrix = np.ones((1, 1))
        for name, domain in PERSON.items():
            matrix = np.kron(matrix, sets.get(name, Total()).matrix(name, domain).dense())
        rows.append(float(weight) * matrix)
    assert np.allclose(workload.encoded.matrix().dense(), np.concatenate(rows))
