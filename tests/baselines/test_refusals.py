"""What each baseline takes, and that it says what is wrong with anything else."""

import numpy as np
import pytest

import hdmm
from hdmm import baselines
from hdmm.errors import InputError, WorkloadError
from hdmm.operators.base import Operator, Proposal
from hdmm.optimise.descent import Effort

SCHEMA = hdmm.Schema(age=range(12), income=range(5), sex=["F", "M"], state=["CA", "NY", "TX"])
PEOPLE = hdmm.Workload(SCHEMA)
LINE = PEOPLE.add("by age", age=hdmm.Prefix())
PLANE = PEOPLE.add("by both", age=hdmm.Prefix(), income=hdmm.AllRange())
LISTED = PEOPLE.add("by state", state=hdmm.Identity() | hdmm.Total(), sex=hdmm.Identity())
SEVERAL = LINE.add("by state", income=hdmm.AllRange(), state=hdmm.Identity(), sex=hdmm.Identity())
WAVES = PEOPLE.add("waves", age=hdmm.Custom([[1, -1, 2] + [0] * 9]), sex=hdmm.Identity())
EITHER = PEOPLE.add("either", age=hdmm.Identity(), where="age >= 4 OR sex = 'F'")
TOTALS = PEOPLE.add("total").add("nobody", age=hdmm.Where("age > 50"))
LONG = hdmm.Workload(hdmm.Schema(x=range(1 << 20))).add("q", x=hdmm.Prefix())
WIDE = hdmm.Workload(hdmm.Schema(x=range(5000), y=range(5000))).add("q", x=hdmm.Prefix(), y=hdmm.Prefix())
DEEP = hdmm.marginals(hdmm.Schema({f"a{number}": range(2) for number in range(20)}), k=20)
_CELLS = "'age' has 12 cells; it takes attributes of two"
_NOTHING = "only totals are asked for"
REFUSALS: dict[str, tuple[hdmm.Workload, dict[str, str]]] = {
    "one attribute": (
        LINE,
        {
            "DataCube": "the product 'by age' asks about prefixes of 'age'; it takes marginals",
            "Fourier": _CELLS,
            "KdTree": "about 1 attribute: 'age'; it takes ranges on two",
            "MatrixMechanism": "'age' has 12 cells; at most 8",
            "Quadtree": "about 1 attribute: 'age'; it takes ranges on two",
        },
    ),
    "two attributes": (
        PLANE,
        {
            "DataCube": "the product 'by both' asks about prefixes of 'age'",
            "Fourier": _CELLS,
            "GreedyH": "about 2 attributes; GreedyH takes exactly one",
            "MatrixMechanism": "60 cells together; at most 8",
        },
    ),
    "listed values": (
        LISTED,
        {"Fourier": "'state' has 3 cells; it takes attributes of two", "GreedyH": "about 2 attributes"},
    ),
    "several attributes": (
        SEVERAL,
        {
            "DataCube": "the product 'by age' asks about prefixes of 'age'",
            "Fourier": _CELLS,
            "GreedyH": "about 4 attributes; GreedyH takes exactly one",
            "KdTree": "about 4 attributes: 'age', 'income', 'sex', 'state'; it takes ranges on two",
            "MatrixMechanism": "the 4 attributes asked about have 360 cells together; at most 8",
            "Quadtree": "about 4 attributes: 'age', 'income', 'sex', 'state'; it takes ranges on two",
        },
    ),
    "custom queries": (
        WAVES,
        {
            "DataCube": "the product 'waves' asks about some values or groups of 'age'; it takes marginals",
            "Fourier": _CELLS,
            "GreedyH": "about 2 attributes",
            "KdTree": "the product 'waves' asks about more than ranges of 'age'",
            "MatrixMechanism": "24 cells together; at most 8",
            "Quadtree": "the product 'waves' asks about more than ranges of 'age'",
        },
    ),
    "a condition across attributes": (
        EITHER,
        {
            "DataCube": "the product 'either' has a condition across attributes; it takes marginals",
            "Fourier": _CELLS,
            "GreedyH": "about 2 attributes",
            "KdTree": "the product 'either' has a condition across attributes; it takes ranges",
            "MatrixMechanism": "24 cells together; at most 8",
            "Quadtree": "the product 'either' has a condition across attributes; it takes ranges",
        },
    ),
    "only totals": (
        TOTALS,
        dict.fromkeys(
            ("COA", "EigenDesign", "GreedyH", "H2", "HB", "KdTree", "LRM", "MatrixMechanism", "Privelet", "Quadtree"),
            _NOTHING,
        ),
    ),
    "a million values": (
        LONG,
        {
            "COA": "'x' has 1,048,576 cells; at most 4,096",
            "DataCube": "prefixes of 'x'",
            "EigenDesign": "'x' has 1,048,576 cells; at most 4,096",
            "Fourier": "'x' has 1,048,576 cells; it takes attributes of two",
            "GreedyH": "'x' has 1,048,576 values; GreedyH takes at most 4,096",
            "KdTree": "about 1 attribute",
            "LRM": "'x' has 1,048,576 cells; at most 1,024",
            "MatrixMechanism": "'x' has 1,048,576 cells; at most 8",
            "Quadtree": "about 1 attribute",
        },
    ),
    "two long attributes": (
        WIDE,
        {
            "COA": "25,000,000 cells together; at most 512",
            "DataCube": "prefixes of 'x'",
            "EigenDesign": "25,000,000 cells together; at most 512",
            "Fourier": "'x' has 5,000 cells",
            "GreedyH": "about 2 attributes",
            "KdTree": "'x' × 'y' has 5,000 × 5,000 cells; at most 4,096 each",
            "LRM": "25,000,000 cells together; at most 512",
            "MatrixMechanism": "25,000,000 cells together; at most 8",
            "Quadtree": "'x' × 'y' has 5,000 × 5,000 cells; at most 4,096 each",
        },
    ),
    "a marginal of 20 attributes": (
        DEEP,
        {
            "COA": "1,048,576 cells together; at most 512",
            "DataCube": "a marginal has 20 attributes; at most 10",
            "EigenDesign": "1,048,576 cells together; at most 512",
            "Fourier": "a marginal needs 1,048,576 Fourier queries; at most 16,384",
            "GreedyH": "about 20 attributes",
            "KdTree": "about 20 attributes; it takes ranges on two",
            "LRM": "1,048,576 cells together; at most 512",
            "Marginals": "a product has 20 attributes; at most 10",
            "MatrixMechanism": "1,048,576 cells together; at most 8",
            "Quadtree": "about 20 attributes; it takes ranges on two",
        },
    ),
}
"""Workloads, and what the baselines say that do not take them."""
AT_ONCE = Effort(restarts=1, deadline=0.0)
"""Searches end after their first step."""
OPERATORS: list[Operator] = [getattr(baselines, name)() for name in baselines.__all__]
every = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)


@every
@pytest.mark.parametrize("name", REFUSALS)
def test_it_plans_or_says_what_it_does_not_take_and_why(operator: Operator, name: str) -> None:
    workload, refusals = REFUSALS[name]
    if operator.name not in refusals:
        assert isinstance(operator.propose(workload.encoded, 2, AT_ONCE), Proposal)
        return
    with pytest.raises(InputError) as error:
        hdmm.select(workload, "gaussian", operators=[operator])
    assert f"{operator.name}: " in str(error.value)
    assert refusals[operator.name] in str(error.value)


@pytest.mark.parametrize("operator", [baselines.COA(), baselines.EigenDesign()], ids=repr)
def test_what_is_for_gaussian_noise_alone_says_so(operator: Operator) -> None:
    with pytest.raises(InputError, match=f"{operator.name}: it takes Gaussian noise"):
        hdmm.select(LINE, "laplace", operators=[operator])


def test_queries_that_are_no_integers_are_not_measured_as_they_are() -> None:
    workload = PEOPLE.add("waves", age=hdmm.Custom(np.array([[0.5, -1.25] + [0.0] * 10])))
    with pytest.raises(InputError, match="Plain: the questions are not integer queries"):
        hdmm.select(workload, operators=[baselines.Plain()])


@every
def test_an_empty_workload_is_refused(operator: Operator) -> None:
    with pytest.raises(WorkloadError, match="ask for at least one product"):
        hdmm.select(PEOPLE, operators=[operator])
