"""Everyday workloads: what the default selection finds with what symmetry gives and without it, and how long both take.

Gaussian noise at ε = 1, δ = 1e-6: with OPT_S and without it. The last workloads have 3,600 to 80,000 combinations of
unlike cells. Laplace noise at ε = 1: with the blocks of OPT_+ improved together and without.

    python benchmarks/symmetric.py [--noise laplace] [--only survey]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import hdmm
from hdmm import Identity, Prefix, Ranges, Total, Values, Where, Workload, operators
from hdmm.demo import demo_workload
from hdmm.paper import census

BUDGETS = {"gaussian": hdmm.Budget(epsilon="1", delta="1e-6"), "laplace": hdmm.Budget(epsilon="1")}
SIMPLE = [hdmm.baselines.Identity(), hdmm.baselines.Plain(), operators.Explicit(), operators.Kron()]
WITHOUT = {
    "gaussian": [*SIMPLE, operators.Residual(), operators.Union()],
    "laplace": [
        *SIMPLE,
        hdmm.baselines.Marginals(),
        operators.Marginal(),
        operators.MarginalPlus(),
        operators.Union(groups=()),
    ],
}
"""What the default selection tries otherwise. Given groups, here every product, are not improved together."""


def workloads() -> Iterator[tuple[str, Workload]]:
    """Every workload by its name."""
    yield "SF1", census.sf1()
    yield "SF1+", census.sf1_plus()
    yield "examples/people.yaml", hdmm.Spec.load(Path(__file__).parents[1] / "examples" / "people.yaml").workload
    yield "demo", demo_workload()
    yield "mixed", _mixed()
    yield "survey", _survey()
    yield from _large()


def _mixed() -> Workload:
    schema = hdmm.Schema(sex=["F", "M"], age=range(40), region=range(25))
    groups = Ranges([(0, 4), (5, 9), (10, 19), (20, 39)])
    return Workload(schema).add("ages", sex=Identity() | Total(), age=Prefix()).add(
        "regions", age=Where("age >= 6"), region=Identity()
    ).add("groups", age=groups, sex=Identity(), region=Identity()) + hdmm.marginals(schema, k=1)


def _survey() -> Workload:
    schema = hdmm.Schema(sex=["F", "M"], age=range(100), education=range(16), race=range(7), state=range(51))
    return (
        Workload(schema)
        .add("ages", sex=Identity(), age=Prefix())
        .add("education", education=Prefix(), race=Identity())
        .add("adults", age=Where("age >= 18"), state=Identity(), race=Identity() | Total())
    )


def _large() -> Iterator[tuple[str, Workload]]:
    schema = hdmm.Schema(sex=["F", "M"], age=range(90), income=range(20), region=range(10))
    yield (
        "women's incomes",
        Workload(schema)
        .add("ages", sex=Identity(), age=Prefix())
        .add("incomes", income=Prefix(), region=Identity())
        .add("women", age=Where("age >= 18"), income=Identity(), sex=Values(["F"]))
        .add("sexes", sex=Identity()),
    )
    schema = hdmm.Schema(sex=["F", "M"], age=range(100), income=range(100), region=range(10))
    two = Workload(schema).add("ages", sex=Identity(), age=Prefix()).add("incomes", income=Prefix(), region=Identity())
    yield "age, income", two.add("sexes", sex=Identity(), region=Identity())
    income_groups = Ranges([(0, 9), (10, 49), (50, 99)])
    yield "age, income, groups", two.add("both", age=Ranges([(0, 17), (18, 64), (65, 99)]), income=income_groups)
    yield "age, income, age × groups", two.add("both", age=Identity(), income=income_groups)
    schema = hdmm.Schema(sex=["F", "M"], age=range(100), hours=range(50), education=range(16), region=range(10))
    yield (
        "age, hours, education",
        Workload(schema)
        .add("ages", sex=Identity(), age=Prefix())
        .add("hours", hours=Prefix(), region=Identity())
        .add("education", education=Prefix(), sex=Identity()),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only workloads with this in their names")
    parser.add_argument("--noise", default="gaussian", choices=list(BUDGETS))
    arguments = parser.parse_args()
    only, noise, budget = arguments.only, arguments.noise, BUDGETS[arguments.noise]
    print(f"{'':28}{'without':>22}{'default':>22}")
    print(f"{'workload':28}{'seconds':>11}{'RMSE':>11}{'seconds':>11}{'RMSE':>11}{'bound':>11}  operator, certificate")
    for name, workload in workloads():
        if only not in name:
            continue
        assert workload.encoded.products  # reading the questions is not what is measured
        start = perf_counter()
        before = hdmm.select(workload, noise, operators=WITHOUT[noise])
        middle = perf_counter()
        plan = hdmm.select(workload, noise)
        seconds = middle - start, perf_counter() - middle
        assert plan.certificate is not None
        print(
            f"{name:28}{seconds[0]:>11.1f}{before.rmse(budget):>11.3f}{seconds[1]:>11.1f}{plan.rmse(budget):>11.3f}"
            f"{plan.bound(budget):>11.3f}  {plan.operator}, {plan.certificate:.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
