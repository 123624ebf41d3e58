"""Estimators beside each other on the UCI Adult data: least squares, non-negative tables, Private-PGM and its records.

Gaussian noise, δ = 1e-6. The plan is for all one-way marginals of the 14 attributes and for 18 pairs, chosen by what
the attributes mean and not by the data, such that the junction tree stays small (its size is printed). The error of a
table is the sum of the sizes of the errors of its cells over the number of records, 0 to 2 for tables that are not
negative; the mean over tables is shown: over those of the workload, and over 20 pairs and 20 triples that it does not
hold. There least squares takes what was not measured for even (the shortest estimate), and the non-negative tables are
that, projected; beside them, attributes are taken for independent, with least-squares one-way tables. The noise is
new in every run, and with it the last digits.

    python benchmarks/graphical.py [--data ../shared/data/adult.csv] [--epsilon 0.1 1 10]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from math import prod
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import hdmm
from hdmm.estimators.biased import counts_on
from hdmm.estimators.consistent_tables import nonnegative_tables, on_simplex
from hdmm.estimators.graphical import PrivatePGM, available, tree_cells
from hdmm.matrix.axes import Axes
from hdmm.releases.synthetic import records
from hdmm.text import text_table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult.csv"
PAIRS = (
    "age:marital-status age:education-num age:income>50K education-num:occupation education-num:income>50K "
    "occupation:workclass occupation:sex occupation:income>50K marital-status:relationship marital-status:income>50K "
    "relationship:sex race:native-country race:income>50K sex:income>50K hours-per-week:income>50K "
    "capital-gain:income>50K capital-loss:income>50K fnlwgt:race"
)
HELD_OUT, LARGEST = 20, 20_000

Table = NDArray[np.float64]
Answers = Callable[[Axes], Table]


def true_tables(rows: NDArray[np.int64], sizes: Sequence[int]) -> Answers:
    """Counts of the records themselves."""

    def table(axes: Axes) -> Table:
        shape = [sizes[axis] for axis in axes]
        if not axes:
            return np.array([float(len(rows))])
        flat = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
        return np.bincount(flat, minlength=prod(shape)).astype(float)

    return table


def held_out(sizes: Sequence[int], measured: set[Axes], ways: int) -> list[Axes]:
    """Some sets of attributes that no measured set holds, of tables that are not large: the same ones every time."""
    every = [
        axes
        for axes in combinations(range(len(sizes)), ways)
        if axes not in measured and prod(sizes[axis] for axis in axes) <= LARGEST
    ]
    chosen = np.random.default_rng(0).permutation(len(every))[:HELD_OUT]
    return [every[place] for place in sorted(chosen)]


def run(data: Path, domain: dict[str, int], epsilon: str) -> None:
    """One release, and every estimator's errors on it."""
    schema = hdmm.Schema({name: range(size) for name, size in domain.items()})
    workload = hdmm.marginals(schema, up_to=1)
    for pair in PAIRS.split():
        workload = workload.add(pair, {name: hdmm.Identity() for name in pair.split(":")})
    encoded = workload.encoded
    measured = {product.axes for product in encoded.products}
    budget = hdmm.Budget(epsilon=epsilon, delta="1e-6")
    plan = hdmm.select(workload, noise="gaussian")
    release = hdmm.release(plan, data, budget, ledger=None)
    estimator, noise = plan.mechanism.estimator, plan.mechanism.calibrate(budget).variances

    rows = np.loadtxt(data, np.int64, delimiter=",", skiprows=1)
    truth = true_tables(rows, schema.sizes)
    groups = {
        "workload": sorted(measured),
        "held-out pairs": held_out(schema.sizes, measured, 2),
        "held-out triples": held_out(schema.sizes, measured, 3),
    }

    def asked(axes: Axes) -> hdmm.workload.EncodedProduct:
        return counts_on({axis: schema.sizes[axis] for axis in axes})

    seconds = [0.0]
    start = perf_counter()
    state = estimator.reconstruct(release.measurements, noise)
    seconds.append(perf_counter() - start)
    start = perf_counter()
    local = nonnegative_tables(estimator, encoded, release.measurements, noise)
    seconds.append(perf_counter() - start)
    start = perf_counter()
    model = PrivatePGM(estimator).reconstruct(release.measurements, noise)
    seconds.append(perf_counter() - start)
    start = perf_counter()
    drawn = records(schema, model, round(model.total), np.random.default_rng(0))
    seconds.append(perf_counter() - start)
    codes = np.stack([drawn[name].to_numpy() for name in schema], axis=1)

    def least_squares(axes: Axes) -> Table:
        return estimator.answer(asked(axes), state)

    def nonnegative(axes: Axes) -> Table:
        return local.answer(asked(axes)) if axes in measured else on_simplex(least_squares(axes), local.total)

    def independent(axes: Axes) -> Table:
        shares = [on_simplex(least_squares((axis,)), local.total) / local.total for axis in axes]
        return local.total * reduce(np.multiply.outer, shares, np.ones(())).reshape(-1)

    estimators: dict[str, Answers] = {
        "independent attributes": independent,
        "least squares": least_squares,
        "non-negative tables": nonnegative,
        "Private-PGM": lambda axes: model.answer(asked(axes)),
        "records from it": true_tables(codes, schema.sizes),
    }
    lines = [
        (name, *(f"{error(answers, truth, sets, len(rows)):.3f}" for sets in groups.values()), f"{took:.1f}")
        for (name, answers), took in zip(estimators.items(), seconds, strict=True)
    ]
    print(f"ε = {epsilon}: {plan.operator}, junction tree of {tree_cells(schema.sizes, measured):,} cells; ", end="")
    print(f"the non-negative tables disagree by {local.disagreement:.3f} records at most")
    print(text_table(["estimator", *groups, "seconds"], lines), flush=True)


def error(answers: Answers, truth: Answers, sets: Sequence[Axes], count: int) -> float:
    """The mean over tables of the sum of the sizes of the errors, over the number of records."""
    return float(np.mean([abs(answers(axes) - truth(axes)).sum() for axes in sets])) / count


def main() -> None:
    """Run every ε."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="adult.csv, with adult-domain.json beside it")
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "1", "10"])
    given = parser.parse_args()
    if not given.data.exists():
        print(f"{given.data}: there is no such file; say where adult.csv is with --data")
        return
    if not available():
        print("Private-PGM needs the package mbi: pip install 'hdmm[pgm]'")
        return
    domain = json.loads(given.data.with_name("adult-domain.json").read_text())
    for epsilon in given.epsilon:
        run(given.data, domain, epsilon)


if __name__ == "__main__":
    main()
