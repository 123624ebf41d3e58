"""A plan's strategy as a picture: what is measured on every attribute of every block (paper, figure onedviz)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdmm.errors import InputError, TooLargeError
from hdmm.files.atomic import check_new
from hdmm.matrix import DENSE_LIMIT, Array, Identity, Matrix
from hdmm.matrix.orbits import OrbitQueries
from hdmm.plans import Plan
from hdmm.strategy import Block

if TYPE_CHECKING:
    import altair

_MAX_SIDE = 160
"""The most rows and columns that are drawn; of larger matrices, the largest entry of each rectangle."""
_MAX_BLOCKS = 8
"""The most blocks that are drawn: those with the largest weights."""
_PANEL_PIXELS = 240
"""Width and height of the picture of one factor."""


def draw(plan: Plan, path: str | Path) -> None:
    """Draw the strategy into a new PNG or SVG file: rows are queries, columns are the values of an attribute."""
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{path}: a picture is a .png or .svg file; choose such a name")
    check_new(path)
    import altair as alt

    blocks = sorted(plan.mechanism.blocks, key=lambda block: -block.weight)
    shown = [_row(plan, block) for block in blocks[:_MAX_BLOCKS] if block.axes]
    if not shown:
        raise InputError("the plan measures only the total of all records; there is nothing to draw")
    several = "s" if len(blocks) > 1 else ""
    heaviest = f", the {len(shown)} heaviest shown" if len(shown) < len(blocks) else ""
    title = f"{plan.operator}: {len(blocks)} block{several}{heaviest}"
    chart = alt.vconcat(*shown, title=title).resolve_scale(color="independent")
    with alt.data_transformers.enable("default", max_rows=None):
        chart.save(path)


def _row(plan: Plan, block: Block) -> altair.HConcatChart:
    import altair as alt

    names = plan.workload.schema.names
    titles = [names[axis] for axis in block.axes]
    titles = [" × ".join(titles)] if block.joint else titles
    panels = [_panel(title, factor) for title, factor in zip(titles, block.factors, strict=True)]
    return alt.hconcat(*panels, title=alt.Title(f"weight {float(block.weight):.3g}", fontSize=10))


def _panel(name: str, factor: Matrix) -> altair.Chart:
    import altair as alt

    grid = _grid(factor)
    rows, columns = np.indices(grid.shape)
    entries = zip(rows.ravel().tolist(), columns.ravel().tolist(), grid.ravel().tolist(), strict=True)
    values = [{"query": r, "value": c, "entry": e} for r, c, e in entries if e]
    data = alt.InlineData(values=values)
    count = f"{factor.shape[0]:,} queries over {factor.shape[1]:,} values"
    chart: altair.Chart = (
        alt.Chart(data, title=alt.Title(f"{name}: {count}", fontSize=11), width=_PANEL_PIXELS, height=_PANEL_PIXELS)
        .mark_rect()
        .encode(
            x=alt.X("value:O", axis=None, scale=alt.Scale(domain=list(range(grid.shape[1])))),
            y=alt.Y("query:O", axis=None, scale=alt.Scale(domain=list(range(grid.shape[0])))),
            color=alt.Color("entry:Q", legend=None, scale=alt.Scale(scheme="viridis")),
        )
    )
    return chart


def _grid(factor: Matrix) -> Array:
    """The absolute values of the entries; if there are too many to see, the largest of each rectangle."""
    if isinstance(factor, Identity):
        return np.eye(min(factor.n, _MAX_SIDE))
    if isinstance(factor, OrbitQueries):  # over kinds of cells; what is compared within a kind is the same for all
        factor = factor.queries
    if factor.shape[0] * factor.shape[1] > DENSE_LIMIT:
        raise TooLargeError(f"a factor of {factor.shape[0]} × {factor.shape[1]} entries is too large to draw")
    sizes = abs(factor.dense().astype(float))
    for axis in (0, 1):
        if sizes.shape[axis] > _MAX_SIDE:
            starts = np.linspace(0, sizes.shape[axis], _MAX_SIDE, endpoint=False).astype(np.int64)
            sizes = np.maximum.reduceat(sizes, starts, axis=axis)
    return sizes
