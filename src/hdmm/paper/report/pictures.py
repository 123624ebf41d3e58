"""Strategies as pictures: a row for each query, a colour for the weight of each cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair

_WIDTH = 384
"""Pixels of a panel across: a cell of 256 has three pixels in a PNG of twice the size."""
_HEIGHT = 384
"""Pixels of all queries together, without the row on top."""
_STRIP = 20
_GAP = 10
"""Pixels of the row on top that stands for all single cells, and below it."""
_SHADES = 48
"""Neighbouring cells of the same shade are drawn as one rectangle."""
_LEAST = 1e-3
"""Smaller weights are left white."""


def panel(
    title: str, subtitle: list[str], diagonal: Sequence[float], queries: Sequence[Sequence[float]], cells: int
) -> altair.LayerChart:
    """One strategy: the weights of single cells as one thick row on top, the other queries below."""
    import altair as alt

    top = _STRIP + _GAP
    thickness = _HEIGHT / len(queries)
    rectangles = _runs(diagonal, 0, _STRIP)
    for place, query in enumerate(queries):
        rectangles += _runs(query, top + place * thickness, top + (place + 1) * thickness)
    grey = "#555555"
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, cells], nice=False),
        axis=alt.Axis(title="cell", values=list(range(0, cells + 1, 64)), grid=False, domain=False, titleColor=grey),
    )
    y = alt.Y("above:Q", scale=alt.Scale(domain=[top + _HEIGHT, 0], nice=False), axis=None)
    colour = alt.Color(
        "weight:Q",
        scale=alt.Scale(scheme="yellowgreenblue", domain=[0, 1], type="pow", exponent=0.5),
        legend=alt.Legend(
            title="weight", gradientLength=_HEIGHT, values=[0, 0.05, 0.25, 0.5, 0.75, 1], format=".2f", labelFontSize=12
        ),
    )
    drawn = (
        alt.Chart(alt.InlineData(values=rectangles))
        .mark_rect(stroke=None)
        .encode(x=x, x2="to:Q", y=y, y2="below:Q", color=colour)
    )
    frames = [{"from": 0, "to": cells, "above": top, "below": top + _HEIGHT}]
    if diagonal:
        frames.append({"from": 0, "to": cells, "above": 0, "below": _STRIP})
    frame = (
        alt.Chart(alt.InlineData(values=frames))
        .mark_rect(filled=False, stroke="#999999", strokeWidth=0.75)
        .encode(x=x, x2="to:Q", y=y, y2="below:Q")
    )
    heading = alt.Title(title, subtitle=subtitle, anchor="start", fontSize=14, subtitleFontSize=12, subtitleColor=grey)
    return alt.LayerChart(layer=[drawn, frame], width=_WIDTH, height=top + _HEIGHT, title=heading)


def _runs(weights: Sequence[float], above: float, below: float) -> list[dict[str, Any]]:
    """The rectangles of one query."""
    rectangles: list[dict[str, Any]] = []
    shades = [round(weight * _SHADES) / _SHADES if weight >= _LEAST else None for weight in weights]
    start = 0
    for shade, run in groupby(shades):
        end = start + len(list(run))
        if shade is not None:
            rectangles.append({"from": start, "to": end, "above": above, "below": below, "weight": shade})
        start = end
    return rectangles
