"""The strategy: everything that is measured, and nothing about how answers follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from hdmm.matrix import Norm
from hdmm.matrix.axes import Axes
from hdmm.strategy.block import Block
from hdmm.strategy.sensitivity import sensitivity

Family = Literal["direct", "explicit", "kron", "marginal", "residual", "symmetric", "union"]
"""How the blocks belong together, which decides how answers follow from them.

- direct: one block for each product of the workload, measured as it is asked
- explicit: one block with a single matrix over the cells of all its attributes
- kron: one Kronecker product
- marginal: Kronecker products that share one matrix of full rank for each attribute
- residual: the same with matrices that do not see totals, for each set of attributes at most once
- symmetric: queries over kinds of cells that the workload treats alike, blind to what the other blocks see
- union: Kronecker products of any kind
"""


@final
@dataclass(frozen=True, eq=False)
class Strategy:
    """What is measured: blocks of queries."""

    sizes: tuple[int, ...]
    """The sizes of the schema's attributes."""
    blocks: tuple[Block, ...]
    family: Family

    @property
    def axes(self) -> Axes:
        """All attributes that some block measures."""
        return tuple(sorted({axis for block in self.blocks for axis in block.axes}))

    @property
    def queries(self) -> int:
        """How many noisy answers all blocks give."""
        return sum(block.queries for block in self.blocks)

    def sizes_of(self, axes: Axes) -> dict[int, int]:
        """The sizes of some attributes."""
        return {axis: self.sizes[axis] for axis in axes}

    def unit_noise(self, norm: Norm) -> tuple[float, ...]:
        """The noise variance on each block at unit noise: the squared sensitivity over the square of its weight."""
        squared = float(sensitivity(self.blocks, norm)) ** (2 / norm)
        return tuple(squared / float(block.weight) ** 2 for block in self.blocks)
