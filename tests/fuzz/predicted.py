"""Checks of what a plan says before any data is seen: errors, bounds and noise."""

import inspect
from fractions import Fraction
from math import sqrt

from tests.fuzz import dense, privacy
from tests.fuzz.oracle import BUDGETS, Run
from tests.fuzz.session import Limit, Session
from tests.fuzz.workloads import queries


def told(run: Run) -> None:
    """The plan's measurements determine every query of its workload, and are integers."""
    session = run.session.fork("told")
    if not run.dense.integral:
        raise session.finding("queries that are not integers", "the strategy's queries are not integers")
    for product in run.products:
        missed = [row for row in queries(product, run.case.schema) if not run.dense.told(row)]
        if missed:
            session.run("import numpy as np", "from math import prod", "from typing import Any, Sequence")
            for function in (dense._mask, dense._table):
                session.run(inspect.getsource(function))
            session.run(
                f"A = np.concatenate([_table(block, {run.sizes!r}) for block in plan.mechanism.blocks])",
                f"w = np.array({[float(entry) for entry in missed[0]]!r})",
                "left = w - np.linalg.lstsq(A.T, w, rcond=None)[0] @ A",
            )
            shown = f"({product.name!r}, w, left)"
            session.expect("abs(left).max() <= 1e-9 * abs(w).max()", "product not told", shown)
            raise session.finding("product not told", f"{product.name!r}, by less than floats can show")


def errors(run: Run) -> None:
    """Predicted errors are those of least squares."""
    session = run.session.fork("errors")
    noise = run.case.noise
    budget = BUDGETS[noise][run.case.seed % len(BUDGETS[noise])]
    session.run(f"budget = {budget}", "errors = plan.errors(budget).to_pylist()")
    session.expect(
        "all(e['bound'] is None or e['bound'] <= e['rmse'] * (1 + 1e-9) + 1e-9 for e in errors)",
        "bound of a product above its error",
        "errors",
    )
    bounded = session["plan"].mechanism.estimator.bounded
    total, count = 0.0, 0
    for place, product in enumerate(run.products):
        stderrs = run.stderrs(product, session["budget"])
        if stderrs is None:
            raise Limit("too many cells for exact errors, or noise without variance")
        rmse = sqrt(sum(stderr**2 for stderr in stderrs) / len(stderrs))
        total += float(Fraction(product.weight)) ** 2 * rmse**2 * len(stderrs)
        count += len(stderrs)
        session.expect(f"errors[{place}]['queries'] == {len(stderrs)}", "number of queries")
        found = f"errors[{place}]"
        if bounded:
            session.expect(f"{found}['rmse'] >= {rmse!r} * (1 - 1e-6)", "rmse below least squares", found)
            continue
        _equal(session, f"{found}['rmse']", rmse, "rmse of a product")
        _equal(session, f"{found}['stderr_max']", max(stderrs), "largest standard error")
    expected = sqrt(total / count)
    if bounded:
        session.expect(
            f"plan.rmse(budget) >= {expected!r} * (1 - 1e-6)", "rmse below least squares", "plan.rmse(budget)"
        )
    else:
        heaviest = max(float(Fraction(product.weight)) for product in run.products)
        _equal(session, "plan.rmse(budget)", expected, "rmse of the plan", max(heaviest, 1.0))


def _equal(session: Session, found: str, expected: float, kind: str, unit: float = 1.0) -> None:
    """Six digits; below a tenth of a record, where blocks without noise are weighed within limits, a thousandth of one.

    A record may count as much as ``unit``.
    """
    tolerance = 1e-6 * expected + (1e-6 if expected > unit / 10 else 1e-3) * unit
    exact = f"{found} == 0" if expected == 0 else f"abs({found} - {expected!r}) <= {tolerance!r}"
    session.expect(exact, kind, f"({found}, {expected!r})")


def bounds(run: Run) -> None:
    """No bound is above what is achieved, by the plan or by Identity, and no candidate beats the plan."""
    session = run.session.fork("bounds")
    case = run.case
    if case.objective == "targets":
        session.run("least = plan.least_budget(" + ("delta='1e-6')" if case.noise == "gaussian" else ")"))
        session.run("margins = plan.target_margins(least).to_pylist()")
        return
    value = "rmse" if case.objective == "total" else "worst"
    session.expect("plan.certificate is None or plan.certificate >= -1e-9", "negative certificate", "plan.certificate")
    session.run(f"identity = {case.select_line('Identity')}")
    for budget in BUDGETS[case.noise]:
        session.run(f"budget = {budget}", f"bound, value = plan.bound(budget), plan.{value}(budget)")
        session.expect("bound is None or bound <= value * (1 + 1e-9) + 1e-9", "bound above the plan", "(bound, value)")
        session.run(f"other = identity.{value}(budget)")
        session.expect("bound is None or bound <= other * (1 + 1e-9) + 1e-9", "bound above Identity", "(bound, other)")
    if case.budget is not None and case.objective == "total":
        session.run("tried = [error for error in plan.candidates['rmse'].to_pylist() if error is not None]")
        session.expect(
            "plan.rmse(plan.budget) <= min(tried) * (1 + 1e-9)",
            "worse than a candidate",
            "(plan.rmse(plan.budget), tried)",
        )


def sensitivity(run: Run) -> None:
    """The noise suffices for what a unit can change, recomputed from the written-out strategy."""
    session = run.session.fork("sensitivity")
    case = run.case
    session.run("import numpy as np", "from math import *", "from typing import Any, Sequence")
    for function in (dense._mask, dense._table, dense.laplace_variance, privacy.change, privacy.enough):
        session.run(inspect.getsource(function))
    session.run(f"tables = [_table(block, {run.sizes!r}) for block in plan.mechanism.blocks]")
    for budget in BUDGETS[case.noise]:
        session.run(f"budget = {budget}", "noise = plan.mechanism.calibrate(budget)")
        session.run(f"needed = change(tables, noise, {case.rows}, {case.replaced})")
        session.expect("enough(needed, budget)", "too little noise", "(needed, budget)")
        if case.noise == "laplace":
            session.expect(
                "all(abs(v - laplace_variance(float(s))) <= 1e-6 * v for s, v in zip(noise.scales, noise.variances))",
                "variance of the noise",
                "noise",
            )
