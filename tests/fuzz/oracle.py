"""A case with its plan, and what the oracle knows of it without asking hdmm."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import Any

from tests.fuzz.cases import Case
from tests.fuzz.dense import Dense
from tests.fuzz.records import counts
from tests.fuzz.session import Session
from tests.fuzz.workloads import Product, asked, named, queries

REFERENCE = {"laplace": "hdmm.Budget(epsilon='1')", "gaussian": "hdmm.Budget(epsilon='1', delta='1e-6')"}
HUGE = {
    "laplace": ("hdmm.Budget(epsilon='50')", "hdmm.Budget(epsilon='50')", "hdmm.Budget(epsilon='500')"),
    "gaussian": ("hdmm.Budget(rho='100')", "hdmm.Budget(rho='100')", "hdmm.Budget(rho='100000')"),
}
"""Budgets with hardly any noise."""
BUDGETS = {
    "laplace": [f"hdmm.Budget(epsilon='{epsilon}')" for epsilon in ("100", "1", "0.01")],
    "gaussian": [
        "hdmm.Budget(rho='100')",
        "hdmm.Budget(epsilon='100', delta='1e-6')",
        "hdmm.Budget(epsilon='1', delta='1e-6')",
        "hdmm.Budget(epsilon='0.01', delta='1e-9')",
        "hdmm.Budget(rho='0.0001')",
    ],
}


@dataclass(frozen=True)
class Run:
    """A case with its plan, and what the oracle knows of it."""

    case: Case
    session: Session

    @property
    def plan(self) -> Any:
        return self.session["plan"]

    @cached_property
    def products(self) -> list[Product]:
        return asked(self.case.questions, self.case.schema)

    @cached_property
    def sizes(self) -> list[int]:
        return [attribute.size for attribute in self.case.schema]

    @cached_property
    def dense(self) -> Dense:
        return Dense(self.plan.mechanism.blocks, self.sizes)

    @cached_property
    def vector(self) -> list[int]:
        """The records that count in every cell; in the first one of attributes that are not read."""
        schema = tuple(attribute for attribute in self.case.schema if attribute.name in self.read)
        found = counts(schema, self.case.records, self.case.rows, self.case.people)
        vector = [0] * prod(self.sizes)
        for cells, often in found.items():
            place, coded = 0, dict(zip((attribute.name for attribute in schema), cells, strict=True))
            for attribute in self.case.schema:
                place = place * attribute.size + coded.get(attribute.name, 0)
            vector[place] = often
        return vector

    def from_one_block(self, product: Product) -> bool:
        """Whether a block of the plan determines a product by itself, so that there is a local answer."""
        (encoded,) = [code for code in self.plan.workload.encoded.products if code.name == product.name]
        return self.plan.mechanism.local.supports(encoded)

    @cached_property
    def read(self) -> set[str]:
        """The attributes that some question names, other than for a total, or some measurement uses."""
        measured = {axis for block in self.plan.mechanism.blocks for axis in block.axes}
        names = {self.case.schema[axis].name for axis in measured}
        return names.union(*(named(product, self.case.schema) for product in self.products))

    def truth(self, product: Product) -> list[float]:
        """The true answers."""
        held = [(place, often) for place, often in enumerate(self.vector) if often]
        return [float(sum(row[p] * often for p, often in held)) for row in queries(product, self.case.schema)]

    def scale(self, product: Product) -> float:
        """How large an answer may be."""
        largest = max(abs(entry) for row in queries(product, self.case.schema) for entry in row)
        return float(max(Fraction(1), largest)) * max(1, len(self.case.records))

    def stderrs(self, product: Product, budget: Any) -> list[float] | None:
        """The standard errors that the best linear answers have; None where the oracle cannot tell."""
        found = self.dense.variances(
            queries(product, self.case.schema), self.plan.mechanism.calibrate(budget).variances
        )
        return None if found is None else [sqrt(max(variance, 0.0)) for variance in found]
