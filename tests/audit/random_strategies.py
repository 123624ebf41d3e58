"""Random strategies of every family: integer queries as a plan holds them, made by the operators or drawn freely."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

import hdmm
from hdmm.matrix import (
    AllRange,
    Complement,
    Dense,
    Haar,
    Identity,
    Matrix,
    Prefix,
    Spiked,
    Stack,
    Total,
    Tree,
    Width,
)
from hdmm.matrix.hierarchy import balanced_sizes
from hdmm.matrix.orbits import Kinds, OrbitQueries, Within
from hdmm.operators.base import Operator
from hdmm.plans import Goal, Mechanism, Plan
from hdmm.privacy.calibrate import NoiseKind
from hdmm.strategy import Block, Strategy
from hdmm.strategy.strategy import Family as FamilyName

Random = np.random.Generator
Draw = Callable[[Random, tuple[int, ...]], Strategy]
"""A random strategy on attributes of some sizes."""

NOISES: tuple[NoiseKind, ...] = ("laplace", "gaussian")
UNITS = (
    hdmm.Unit(),
    hdmm.Unit(neighbours="replace-one"),
    hdmm.Unit(),
    hdmm.Unit(rows=3),
    hdmm.Unit(rows=2, neighbours="replace-one"),
)

_SETS = [
    hdmm.Identity(),
    hdmm.Prefix(),
    hdmm.AllRange(),
    hdmm.Total(),
    hdmm.Width(2),
    hdmm.Identity() | hdmm.Total(),
]


@dataclass(frozen=True)
class Family:
    """How to draw a strategy on attributes of some sizes, and the operators that find such strategies."""

    draw: Draw | None
    operators: dict[NoiseKind, Sequence[Operator]]

    def plan(self, number: int) -> hdmm.Plan:
        """One random plan: of fifty, two are found by an operator, and ten are on a larger domain."""
        random = np.random.default_rng(number)
        noise, unit = NOISES[number % 2], UNITS[random.integers(len(UNITS))]
        found = self.operators.get(noise, ())
        least, most = (5, 8) if number % 10 in (4, 5) else (2, 3)
        sizes = tuple(random.integers(least, most + 1, random.integers(1, 4)).tolist())
        workload = _workload(random, sizes)
        if found and (number % 50 < 2 or self.draw is None):
            operator = found[number // 50 % len(found)]
            with suppress(hdmm.errors.InputError):  # not every workload has such a strategy
                return hdmm.select(workload, noise, unit=unit, operators=[operator], restarts=1, seed=number)
        assert self.draw is not None
        return Plan(workload, Mechanism(self.draw(random, sizes), noise, unit), Goal(), "random")


def _workload(random: Random, sizes: tuple[int, ...]) -> hdmm.Workload:
    names = [f"a{axis}" for axis in range(len(sizes))]
    workload = hdmm.Workload(hdmm.Schema({name: range(size) for name, size in zip(names, sizes, strict=True)}))
    for number in range(random.integers(1, 5)):
        chosen = [name for name in names if random.random() < 0.6] or names[: number == 0]
        sets = {name: _SETS[random.integers(len(_SETS))] for name in chosen}
        where = None
        if random.random() < 0.3:
            first, last = names[0], names[-1]
            where = f"{first} = {random.integers(sizes[0])} OR {last} >= {random.integers(1, sizes[-1])}"
        weight = Fraction(int(random.integers(1, 8)), int(random.integers(1, 8)))
        workload = workload.add(f"p{number}", sets, weight=weight, where=where)
    return workload


def _weight(random: Random) -> Fraction:
    return Fraction(int(random.integers(1, 50)), int(random.integers(1, 50)))


def _axes(random: Random, count: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(count) if random.random() < 0.6)


def _sets_of_axes(random: Random, count: int) -> list[tuple[int, ...]]:
    """Some different sets of attributes."""
    return list(dict.fromkeys(_axes(random, count) for _ in range(random.integers(1, 6))))


def _queries(random: Random, n: int) -> Matrix:
    """Any integer queries on one attribute."""
    largest = 2 ** int(random.choice([1, 3, 12]))
    chosen = [
        Identity(n),
        Total(n),
        Prefix(n),
        AllRange(n),
        Width(n, 2),
        Spiked.centred(n),
        Complement(Prefix(n)),
        Stack([Identity(n), Total(n)]),
        Dense(random.integers(-largest, largest + 1, (random.integers(1, 6), n))),
    ]
    return chosen[random.integers(len(chosen))]


def _base(random: Random, n: int) -> Matrix:
    """Integer queries that tell all cells apart."""
    if random.random() < 0.3:
        return [Prefix(n), AllRange(n)][random.integers(2)]
    return Dense(np.concatenate([np.eye(n, dtype=np.int64) * 9, random.integers(-4, 5, (random.integers(1, 4), n))]))


def _residual(random: Random, n: int) -> Matrix:
    """Integer queries that do not see f, whole numbers that add up to one."""
    if random.random() < 0.3:
        return Spiked.centred(n)
    f = random.integers(-2, 3, n)
    f[0] += 1 - f.sum()
    seen = np.eye(n, dtype=np.int64) - f[:, None]
    mixed = np.triu(random.integers(-3, 4, (n, n)), 1) + np.diag(random.integers(1, 4, n))
    return Dense(mixed @ seen)


def _kron(random: Random, sizes: tuple[int, ...]) -> Strategy:
    axes = _axes(random, len(sizes))
    factors = tuple(_queries(random, sizes[axis]) for axis in axes)
    return Strategy(sizes, (Block(axes, factors, _weight(random)),), "kron")


def _hierarchy(random: Random, n: int) -> Matrix:
    """A wavelet, or a hierarchy with random weights whose last level may hold several cells together."""
    if random.random() < 0.2:
        return Haar(n)
    levels = balanced_sizes(n, int(random.integers(2, 4)))
    sizes = levels[: random.integers(1, len(levels) + 1)]
    largest = 2 ** int(random.choice([1, 3, 12]))
    weights = [random.integers(0, largest + 1, len(level)) for level in sizes]
    weights[-1] += weights[-1] == 0
    return Tree(sizes, weights)


def _hierarchies(random: Random, sizes: tuple[int, ...]) -> Strategy:
    axes = _axes(random, len(sizes))
    factors = tuple(_hierarchy(random, sizes[axis]) for axis in axes)
    return Strategy(sizes, (Block(axes, factors, _weight(random)),), "kron")


def _union(random: Random, sizes: tuple[int, ...]) -> Strategy:
    shared = [_queries(random, size) for size in sizes]
    blocks = []
    for _ in range(random.integers(2, 6)):
        axes = _axes(random, len(sizes))
        own = tuple(shared[axis] if random.random() < 0.3 else _queries(random, sizes[axis]) for axis in axes)
        blocks.append(Block(axes, own, _weight(random)))
    return Strategy(sizes, tuple(blocks), "union")


def _explicit(random: Random, sizes: tuple[int, ...]) -> Strategy:
    cells, largest = prod(sizes), 2 ** int(random.choice([1, 3, 12]))
    queries = Dense(random.integers(-largest, largest + 1, (random.integers(1, 30), cells)))
    return Strategy(sizes, (Block(tuple(range(len(sizes))), (queries,), _weight(random)),), "explicit")


def _symmetric(random: Random, sizes: tuple[int, ...]) -> Strategy:
    """Random kinds of cells, and blocks that see different differences within them."""
    kinds = [Kinds(np.unique(random.integers(0, 3, size), return_inverse=True)[1]) for size in sizes]
    blocks = {}
    for _ in range(random.integers(1, 6)):
        axes, parts = _axes(random, len(sizes)), []
        for axis in axes:
            several = np.flatnonzero(kinds[axis].sizes > 1)
            compared = len(several) and random.random() < 0.5
            parts.append(Within.of(kinds[axis], int(random.choice(several))) if compared else None)
        columns = prod(len(kinds[axis]) for axis, part in zip(axes, parts, strict=True) if part is None)
        largest = 2 ** int(random.choice([1, 3, 12]))
        queries = Dense(random.integers(-largest, largest + 1, (random.integers(1, 5), columns)))
        factor = OrbitQueries(tuple(kinds[axis] for axis in axes), tuple(parts), queries)
        choice = tuple((axis, part.kind) for axis, part in zip(axes, parts, strict=True) if part is not None)
        blocks[choice] = Block(axes, (factor,) if axes else (), _weight(random))
    return Strategy(sizes, tuple(blocks.values()), "symmetric")


def _over(family: FamilyName, factor: Callable[[Random, int], Matrix]) -> Draw:
    """Blocks on different sets of attributes that share one factor for each attribute."""

    def draw(random: Random, sizes: tuple[int, ...]) -> Strategy:
        factors = [factor(random, size) for size in sizes]
        blocks = (
            Block(axes, tuple(factors[axis] for axis in axes), _weight(random))
            for axes in _sets_of_axes(random, len(sizes))
        )
        return Strategy(sizes, tuple(blocks), family)

    return draw


def _both(*found: Operator) -> dict[NoiseKind, Sequence[Operator]]:
    return dict.fromkeys(NOISES, found)


FAMILIES = {
    "Kronecker": Family(_kron, _both(hdmm.operators.Kron(), hdmm.baselines.Identity())),
    "hierarchies": Family(
        _hierarchies,
        _both(hdmm.baselines.H2(), hdmm.baselines.HB(), hdmm.baselines.Privelet(), hdmm.baselines.GreedyH()),
    ),
    "union": Family(_union, _both(hdmm.operators.Union())),
    "explicit": Family(_explicit, _both(hdmm.operators.Explicit())),
    "marginal": Family(
        _over("marginal", lambda random, n: Identity(n)),
        _both(hdmm.operators.Marginal(), hdmm.baselines.Marginals()),
    ),
    "marginal over bases": Family(_over("marginal", _base), _both(hdmm.operators.MarginalPlus())),
    "residual": Family(_over("residual", _residual), {"gaussian": [hdmm.operators.Residual()]}),
    "symmetric": Family(_symmetric, {"gaussian": [hdmm.operators.Symmetric()]}),
    "direct": Family(None, _both(hdmm.baselines.Plain())),
}
