"""Plans as files. Nothing that privacy depends on is taken from the file without being recomputed from the strategy."""

from __future__ import annotations

import base64
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdmm import baselines, matrix
from hdmm._artefact import decode_array, encode, encode_array, read, write
from hdmm._plan.plan import Candidate, Plan
from hdmm.errors import ArtefactError, InputError
from hdmm.matrix import Matrix
from hdmm.memory import check_memory
from hdmm.privacy.calibrate import NORM
from hdmm.privacy.unit import Unit
from hdmm.strategy import Block, DirectStrategy, KronStrategy, MarginalStrategy, Strategy, sensitivity
from hdmm.workload import Workload
from hdmm.workload.spec import Spec

_KIND = "plan"
_WEIGHT = re.compile(r"[0-9]{1,40}(/[0-9]{1,40})?")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Direct(_Model):
    """Every product of the workload as it is."""

    family: Literal["direct"] = "direct"


class _Block(_Model):
    attributes: list[str]
    weight: str


class _Marginal(_Model):
    """Marginals by their attributes, with weights as fractions."""

    family: Literal["marginal"] = "marginal"
    blocks: list[_Block]


class _Kron(_Model):
    """One factor per attribute: "identity", or an integer array as base64 of its npy form."""

    family: Literal["kron"] = "kron"
    factors: dict[str, str]


class _Candidate(_Model):
    operator: str
    rmse: float
    seconds: float
    certificate: float | None
    seed: int | None


class _File(_Model):
    spec: dict[str, Any]
    strategy: Annotated[_Direct | _Marginal | _Kron, Field(discriminator="family")]
    sensitivity: str
    operator: str
    candidates: list[_Candidate]


def plan_bytes(plan: Plan) -> bytes:
    """A plan as the bytes of its file."""
    spec = Spec(plan.workload.schema, plan.workload, plan.noise, plan.unit.rows, plan.unit.neighbours)
    content = _File(
        spec=spec.data(),
        strategy=_strategy_data(plan.strategy, plan.workload),
        sensitivity=str(sensitivity(plan.strategy.blocks, NORM[plan.noise])),
        operator=plan.operator,
        candidates=[_Candidate(**vars(candidate)) for candidate in plan.tried],
    )
    return encode(_KIND, content.model_dump())


def save(plan: Plan, path: Path, *, overwrite: bool = False) -> None:
    """Write a plan to a file, by default a new one."""
    write(path, plan_bytes(plan), overwrite=overwrite)


def load(path: Path) -> Plan:
    """Read a plan from a file."""
    return parse(read(_KIND, path), str(path))


def parse(content: Any, name: str) -> Plan:
    """A plan from a file's checked JSON: everything is rebuilt, and what does not hold is refused."""
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"])
        raise ArtefactError(f"{name}: is not a plan of this version: {where} is not as expected") from None
    try:
        spec = Spec.read(file.spec)
        unit = Unit(spec.rows, spec.neighbours)
        strategy = _strategy(file.strategy, spec.workload)
        check_memory(strategy, spec.workload.encoded)
        supported = all(strategy.supports(product) for product in spec.workload.encoded.products)
        norm = str(sensitivity(strategy.blocks, NORM[spec.noise]))
    except InputError as error:
        raise ArtefactError(f"{name}: {error}") from None
    except (ValueError, ArithmeticError) as error:
        raise ArtefactError(f"{name}: its strategy is not usable: {error}") from None
    except RecursionError:
        raise ArtefactError(f"{name}: is nested too deeply") from None
    if not supported:
        raise ArtefactError(f"{name}: its strategy cannot answer its workload; plan again")
    if norm != file.sensitivity:
        raise ArtefactError(f"{name}: it states a sensitivity that its strategy does not have; plan again")
    tried = tuple(Candidate(**candidate.model_dump()) for candidate in file.candidates)
    return Plan(spec.workload, spec.noise, unit, strategy, file.operator, tried)


def _strategy_data(strategy: Strategy, workload: Workload) -> _Direct | _Marginal | _Kron:
    names = workload.schema.names
    match strategy:
        case DirectStrategy():
            return _Direct()
        case MarginalStrategy():
            return _Marginal(
                blocks=[
                    _Block(attributes=[names[axis] for axis in block.axes], weight=str(block.weight))
                    for block in strategy.blocks
                ]
            )
        case KronStrategy():
            block = strategy.block
            pairs = zip(block.axes, block.factors, strict=True)
            return _Kron(factors={names[axis]: _factor_data(factor) for axis, factor in pairs})
    raise TypeError(f"{type(strategy).__name__} has no file form")


def _strategy(data: _Direct | _Marginal | _Kron, workload: Workload) -> Strategy:
    schema, encoded = workload.schema, workload.encoded
    match data:
        case _Direct():
            strategy = baselines.Plain().propose(encoded, 1)
            assert strategy is not None
        case _Marginal():
            blocks = []
            if any(not _WEIGHT.fullmatch(given.weight) for given in data.blocks):
                raise ValueError("a weight is not a fraction")
            for given in data.blocks:
                axes = tuple(schema.axis(name) for name in given.attributes)
                blocks.append(
                    Block(axes, tuple(matrix.Identity(schema.sizes[axis]) for axis in axes), Fraction(given.weight))
                )
            if len({block.axes for block in blocks}) != len(blocks) or not blocks:
                raise ValueError("its marginals are not distinct")
            strategy = MarginalStrategy(schema.sizes, tuple(blocks))
        case _Kron():
            axes = tuple(schema.axis(name) for name in data.factors)
            factors = tuple(
                _factor(text, schema.sizes[axis]) for axis, text in zip(axes, data.factors.values(), strict=True)
            )
            order = sorted(range(len(axes)), key=axes.__getitem__)
            block = Block(tuple(axes[i] for i in order), tuple(factors[i] for i in order))
            strategy = KronStrategy(schema.sizes, (block,))
    if not all(block.integral for block in strategy.blocks):
        raise ValueError("its queries are not integers")
    return strategy


def _factor_data(factor: Matrix) -> str:
    if isinstance(factor, matrix.Identity):
        return "identity"
    return base64.b64encode(encode_array(factor.dense())).decode()


def _factor(text: str, size: int) -> Matrix:
    if text == "identity":
        return matrix.Identity(size)
    array = decode_array(base64.b64decode(text, validate=True), "a factor")
    if array.ndim != 2 or array.shape[1] != size:
        raise ValueError("a factor is not a matrix over its attribute")
    return matrix.Dense(array)
