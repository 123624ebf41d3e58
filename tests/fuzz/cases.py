"""A case: a schema, questions, records and options, all made from one number."""

import json
from dataclasses import dataclass
from random import Random

from tests.fuzz.domains import random_schema
from tests.fuzz.records import SOURCES, Record, random_records
from tests.fuzz.schemas import schema_code, schema_data
from tests.fuzz.workloads import (
    Product,
    Question,
    Schema,
    random_question,
    random_questions,
    workload_code,
    workload_data,
)

OPERATORS = {
    "default": "None",
    "Explicit": "[hdmm.operators.Explicit()]",
    "Kron": "[hdmm.operators.Kron()]",
    "Marginal": "[hdmm.operators.Marginal()]",
    "MarginalPlus": "[hdmm.operators.MarginalPlus()]",
    "Residual": "[hdmm.operators.Residual()]",
    "Symmetric": "[hdmm.operators.Symmetric()]",
    "Union": "[hdmm.operators.Union()]",
    "Identity": "[hdmm.baselines.Identity()]",
    "Plain": "[hdmm.baselines.Plain()]",
    "Marginals": "[hdmm.baselines.Marginals()]",
}

PLANNED = {
    "laplace": ("hdmm.Budget('0.1')", "hdmm.Budget('4')"),
    "gaussian": ("hdmm.Budget('0.1', '1e-9')", "hdmm.Budget(rho='20')"),
}
"""Budgets that plans are made for."""


@dataclass(frozen=True)
class Case:
    """Everything that a run depends on."""

    seed: int
    noise: str
    operator: str
    schema: Schema
    questions: tuple[Question, ...]
    later: tuple[Question, ...]
    records: tuple[Record, ...]
    rows: int = 1
    replaced: bool = False
    people: bool = False
    objective: str = "total"
    restarts: int = 0
    yaml: bool = False
    source: str = "csv"
    second: str | None = None
    budget: str | None = None
    """The budget that the plan is made for."""

    @staticmethod
    def random(seed: int, noise: str, operator: str) -> "Case":
        """The case of a seed."""
        rng = Random(f"{seed} {noise} {operator}")
        schema = random_schema(rng)
        questions = random_questions(rng, schema)
        later = [random_question(rng, schema, f"later {place}") for place in range(rng.choice((1, 2)))]
        ones = rng.choice(schema)
        later.append(Product("later all", ((ones.name, ("custom", (("1",) * ones.size,))),)))
        later.append(Product("later nobody", ((rng.choice(schema).name, ("not", ("total",))),)))
        rows = rng.choice((1, 1, 1, 1, 2, 3))
        people = rows > 1 and rng.random() < 0.5
        return Case(
            seed,
            noise,
            operator,
            schema,
            questions,
            tuple(later),
            random_records(rng, schema, people),
            rows,
            rng.random() < 0.2,
            people,
            rng.choice(("total",) * 8 + ("max", "targets")),
            rng.choice((0, 0, 1)),
            rng.random() < 0.3,
            rng.choice(SOURCES),
            rng.choice(SOURCES) if rng.random() < 0.15 else None,
            rng.choice((None, *PLANNED[noise])),
        )

    def workload_lines(self) -> list[str]:
        """Lines that make the workload ``w``, from YAML or in Python."""
        if not self.yaml:
            return [f"schema = {schema_code(self.schema)}", *workload_code(self.questions, self.schema)]
        data = {"schema": schema_data(self.schema), "workload": workload_data(self.questions, self.schema)}
        return [
            f"text = {json.dumps(data, ensure_ascii=False)!r}",
            "(folder / 'spec.yaml').write_text(text, encoding='utf-8')",
            "w = hdmm.Spec.load(folder / 'spec.yaml').workload",
            "schema = w.schema",
        ]

    def select_line(self, operator: str | None = None) -> str:
        """The line that makes the plan, or one with another operator."""
        given = [f"noise={self.noise!r}"]
        if self.rows > 1 or self.replaced:
            person = ", id='person id'" if self.people else ""
            neighbours = ", neighbours='replace-one'" if self.replaced else ""
            given.append(f"unit=hdmm.Unit(rows={self.rows}{neighbours}{person})")
        if self.budget is not None and self.objective != "targets":
            given.append(f"budget={self.budget}")
        if self.objective == "max":
            given.append("objective='max'")
        if self.objective == "targets":
            given.append("targets={w.products[0].name: '50@95%'}")
        chosen = OPERATORS[operator or self.operator]
        if chosen != "None":
            given.append(f"operators={chosen}")
        return f"hdmm.select(w, {', '.join(given)}, restarts={self.restarts})"
