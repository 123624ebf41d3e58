"""Plans as files. Nothing that privacy depends on is taken from the file without being recomputed from the strategy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isclose, prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from hdmm import baselines, matrix
from hdmm.errors import ArtefactError, InputError
from hdmm.files.artefact import encode, read, write
from hdmm.files.model import Model
from hdmm.matrix import Number
from hdmm.matrix.orbits import Kinds, OrbitQueries, Within
from hdmm.numbers import fraction, real, shown
from hdmm.plans.candidate import Candidate
from hdmm.plans.factors import FactorData, array_text, factor_data, factor_name, named_factor, read_array, read_factor
from hdmm.plans.footprint import check_memory, check_workload
from hdmm.plans.goal import Goal
from hdmm.plans.mechanism import Mechanism
from hdmm.plans.plan import Plan
from hdmm.privacy.budget import Budget
from hdmm.spec.spec import Spec
from hdmm.strategy import Block, Strategy
from hdmm.workload import Workload

_KIND = "plan"
_WEIGHT = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?")
"""As many digits as the exact fraction of any float has."""


class _DirectBlock(Model):
    """A product of the workload that is measured as it is, and the weight of its block."""

    product: str
    weight: str


class _Direct(Model):
    """Products of the workload as they are. Without blocks, as older versions wrote it, products keep their weights."""

    family: Literal["direct"] = "direct"
    blocks: list[_DirectBlock] | None = None

    def strategy(self, workload: Workload) -> Strategy:
        """The strategy for the products of a workload."""
        encoded = workload.encoded
        if self.blocks is None:
            return baselines.Plain().propose(encoded, 1).strategy
        if not self.blocks:
            raise ValueError("it has no blocks")
        blocks = []
        for data in self.blocks:
            product = encoded.products[workload.place(data.product)]
            factors = tuple(product.factors.values())
            blocks.append(Block(product.axes, factors, _weight(data.weight), product.condition))
        return Strategy(encoded.sizes, tuple(blocks), "direct")


class _Block(Model):
    """A block by its attributes, its factors (a name, or a key of the strategy's factors), and its weight."""

    attributes: list[str]
    factors: list[str]
    weight: str


class _Blocks(Model):
    """A strategy of blocks; a factor is an array as base64 of its npy form (its rows, or the ends of groups of cells),
    a hierarchy or a pyramid of hats."""

    family: Literal["explicit", "kron", "marginal", "residual", "union"]
    factors: dict[str, FactorData]
    blocks: list[_Block]

    def strategy(self, workload: Workload) -> Strategy:
        """The strategy over the attributes of a workload."""
        schema = workload.schema
        cells = max(schema.sizes, default=0)
        factors = {key: read_factor(data, cells) for key, data in self.factors.items()}
        blocks = []
        for data in self.blocks:
            axes = tuple(schema.axis(name) for name in data.attributes)
            sizes = [schema.sizes[axis] for axis in axes]
            chosen = []
            for size, key in zip([prod(sizes)] if self.family == "explicit" else sizes, data.factors, strict=True):
                factor = named_factor(key, size) or factors.get(key)
                if factor is None or factor.shape[1] != size:
                    raise ValueError("a factor is not a matrix over its attribute")
                chosen.append(factor)
            blocks.append(Block(axes, tuple(chosen), _weight(data.weight)))
        if not blocks or (self.family == "marginal" and len({block.axes for block in blocks}) != len(blocks)):
            raise ValueError("its blocks are not distinct")
        return Strategy(schema.sizes, tuple(blocks), self.family)


class _OrbitBlock(Model):
    """A block of queries over kinds: for each attribute the kind whose cells are compared, or none for sums."""

    attributes: list[str]
    within: list[int | None]
    queries: str | None
    weight: str


class _Symmetric(Model):
    """A strategy of queries over kinds of cells; the kinds of an attribute's cells, and the queries, are arrays."""

    family: Literal["symmetric"] = "symmetric"
    kinds: dict[str, str]
    blocks: list[_OrbitBlock]

    def strategy(self, workload: Workload) -> Strategy:
        """The strategy over the attributes of a workload."""
        schema = workload.schema
        kinds = {name: Kinds(read_array(text)) for name, text in self.kinds.items()}
        blocks = []
        for data in self.blocks:
            axes = tuple(schema.axis(name) for name in data.attributes)
            if data.queries is None and not axes:
                blocks.append(Block((), (), _weight(data.weight)))
                continue
            block_kinds = [kinds[name] for name in data.attributes if name in kinds]
            fitting = [kinds.cells for kinds in block_kinds] == [schema.sizes[axis] for axis in axes]
            if data.queries is None or not fitting:
                raise ValueError("its kinds are not those of an attribute's cells")
            pairs = zip(block_kinds, data.within, strict=True)
            parts = [None if kind is None else Within.of(cell_kinds, kind) for cell_kinds, kind in pairs]
            queries = matrix.Dense(read_array(data.queries))
            blocks.append(Block(axes, (OrbitQueries(tuple(block_kinds), tuple(parts), queries),), _weight(data.weight)))
        if not blocks:
            raise ValueError("it has no blocks")
        return Strategy(schema.sizes, tuple(blocks), "symmetric")


StrategyData = Annotated[_Direct | _Blocks | _Symmetric, Field(discriminator="family")]


class CandidateData(Model):
    """A candidate as files hold it."""

    operator: str
    rmse: float | None
    seconds: float
    certificate: float | None
    seed: int | None
    worst: float | None = None
    rounding: float = 0.0
    reason: str | None = None


class _File(Model):
    spec: dict[str, Any]
    strategy: StrategyData
    sensitivity: str
    operator: str
    lowest: float | None
    candidates: list[CandidateData]
    budget: dict[str, str] = Field(default_factory=dict)


def plan_bytes(plan: Plan) -> bytes:
    """A plan as the bytes of its file."""
    spec = Spec(plan.workload.schema, plan.workload, plan.noise, plan.unit, plan.goal.aim, plan.targets)
    content = _File(
        spec=spec.data(),
        strategy=strategy_data(plan.mechanism.strategy, plan.workload),
        sensitivity=str(plan.mechanism.change.power),
        operator=plan.operator,
        lowest=plan.least_value,
        candidates=[CandidateData(**vars(candidate)) for candidate in plan.search],
        budget={} if plan.budget is None else budget_data(plan.budget),
    )
    return encode(_KIND, content.model_dump())


def save(plan: Plan, path: Path, *, overwrite: bool = False) -> None:
    """Write a plan to a file, by default a new one."""
    write(path, plan_bytes(plan), overwrite=overwrite)


def load(path: Path) -> Plan:
    """Read a plan from a file."""
    return parse(read(_KIND, path), str(path))


def parse(content: Any, name: str) -> Plan:
    """A plan from a file's checked JSON: everything is rebuilt, and false claims are refused."""
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        field = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ArtefactError(f"{name}: is not a plan of this version: {field} is not as expected") from None
    try:
        spec = Spec.read(file.spec)
        encoded = spec.workload.encoded
        check_workload(encoded)
        mechanism = Mechanism(read_strategy(file.strategy, spec.workload), spec.noise, spec.unit)
        check_memory(mechanism.estimator, encoded)
        supported = all(mechanism.compared.supports(product) for product in encoded.products)
        budget = read_budget(file.budget) if file.budget else None
        if budget is not None:
            budget.check(spec.noise)
        change = mechanism.change.power
    except InputError as error:
        raise ArtefactError(f"{name}: {error}") from None
    except (ValueError, ArithmeticError, TypeError) as error:
        raise ArtefactError(f"{name}: its strategy is not usable: {error}") from None
    except RecursionError:
        raise ArtefactError(f"{name}: is nested too deeply") from None
    if not supported:
        raise ArtefactError(f"{name}: its strategy cannot answer its workload; plan again")
    if not _agrees(change, file.sensitivity):
        raise ArtefactError(f"{name}: it states a sensitivity that its strategy does not have; plan again")
    search = tuple(Candidate(**candidate.model_dump()) for candidate in file.candidates)
    goal = Goal(spec.objective, spec.targets, budget)
    return Plan(spec.workload, mechanism, goal, file.operator, search, file.lowest)


def budget_data(budget: Budget) -> dict[str, str]:
    """A budget as files hold it: exact fractions."""
    return {name: str(value) for name, value in vars(budget).items() if value is not None}


def read_budget(data: Mapping[str, str]) -> Budget:
    """A budget from its data; anything else is a ValueError, a TypeError or an InputError."""
    return Budget(**{name: fraction(value) for name, value in data.items()})


def _agrees(norm: Number, stated: str) -> bool:
    """Whether a file states the right sensitivity: exactly for integers and fractions, else to rounding."""
    if isinstance(norm, float):
        try:
            return isclose(norm, real(stated), rel_tol=1e-9)
        except ValueError:
            return False
    return str(norm) == stated


def strategy_data(strategy: Strategy, workload: Workload) -> _Direct | _Blocks | _Symmetric:
    """A strategy as it is written into files."""
    if strategy.family == "direct":
        return _direct_data(strategy, workload)
    if strategy.family == "symmetric":
        return _symmetric_data(strategy, workload)
    names = workload.schema.names
    keys: dict[int, str] = {}
    factors: dict[str, FactorData] = {}
    blocks = []
    for block in strategy.blocks:
        for factor in block.factors:
            if id(factor) not in keys:
                name = factor_name(factor)
                keys[id(factor)] = name or f"factor {len(factors) + 1}"
                if name is None:
                    factors[keys[id(factor)]] = factor_data(factor)
        blocks.append(
            _Block(
                attributes=[names[axis] for axis in block.axes],
                factors=[keys[id(factor)] for factor in block.factors],
                weight=str(block.weight),
            )
        )
    return _Blocks(family=strategy.family, factors=factors, blocks=blocks)


def _symmetric_data(strategy: Strategy, workload: Workload) -> _Symmetric:
    names = workload.schema.names
    kinds: dict[str, str] = {}
    blocks = []
    for block in strategy.blocks:
        factor = block.factors[0] if block.factors else None
        assert factor is None or isinstance(factor, OrbitQueries)
        for axis, cell_kinds in zip(block.axes, () if factor is None else factor.kinds, strict=True):
            kinds.setdefault(names[axis], array_text(cell_kinds.labels))
        blocks.append(
            _OrbitBlock(
                attributes=[names[axis] for axis in block.axes],
                within=[] if factor is None else [None if part is None else part.kind for part in factor.parts],
                queries=None if factor is None else array_text(factor.queries.array),
                weight=str(block.weight),
            )
        )
    return _Symmetric(kinds=kinds, blocks=blocks)


def _direct_data(strategy: Strategy, workload: Workload) -> _Direct:
    """The blocks by the products that they measure: their weights need not be those of the products."""
    products = {(p.axes, tuple(p.factors.values()), p.condition): p.name for p in workload.encoded.products}
    blocks = [
        _DirectBlock(product=products[block.axes, block.factors, block.condition], weight=str(block.weight))
        for block in strategy.blocks
    ]
    return _Direct(blocks=blocks)


def read_strategy(data: _Direct | _Blocks | _Symmetric, workload: Workload) -> Strategy:
    """A strategy from its data; what is no strategy for the workload's attributes is a ValueError or an InputError."""
    strategy = data.strategy(workload)
    if not all(block.integral for block in strategy.blocks):
        raise ValueError("its queries are not integers")
    return strategy


def _weight(text: str) -> Fraction:
    if not _WEIGHT.fullmatch(text):
        raise ValueError(f"a weight is not a fraction: {shown(text)}")
    return fraction(text)
