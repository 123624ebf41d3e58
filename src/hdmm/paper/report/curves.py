"""Running times as curves: both axes logarithmic, every curve labelled at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import altair

Curve = Sequence[tuple[float, float]]
"""Sizes with the seconds that they take, ascending."""
_COLOURS = {
    "Laplace": "#0072B2",
    "Gaussian": "#D55E00",
    "Kron": "#0072B2",
    "Union": "#D55E00",
    "Marginal": "#009E73",
}
"""Colours that colour-blind readers tell apart (Okabe and Ito)."""
_SHAPES = ("circle", "square", "triangle-up")
_GREY = "#555555"
_WIDTH, _HEIGHT = 330, 280
_LABEL_GAP = 0.055
"""The least distance of two labels, as a share of the height."""
_MARGIN = 0.04
"""Room before the first points, as a share of the width."""
_TIMES = {1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min"}
_TIMES |= {1e-6: "1 µs", 1e-5: "10 µs", 3600: "1 h"}


@final
@dataclass(frozen=True)
class Axis:
    """The horizontal axis: its title, the values that are labelled, and whether it is logarithmic."""

    title: str
    values: tuple[float, ...]
    log: bool = True


def panel(title: str, subtitle: str, curves: Mapping[str, Curve], axis: Axis) -> altair.LayerChart:
    """The curves of one figure."""
    import altair as alt

    points = [{"x": x, "s": s, "curve": name} for name, curve in curves.items() for x, s in curve]
    seconds = [s for curve in curves.values() for _, s in curve]
    low = max((time for time in _TIMES if time <= min(seconds)), default=min(seconds))
    high = min((time for time in _TIMES if time >= max(seconds)), default=max(seconds))
    high = max(high, 10 * low)
    times = sorted(time for time in _TIMES if low <= time <= high)
    texts = " : ".join(f"datum.value == {time:g} ? '{_TIMES[time]}'" for time in times) + " : ''"
    first, last = axis.values[0], axis.values[-1]
    before = first / (last / first) ** _MARGIN if axis.log else first - _MARGIN * (last - first)
    x_scale = alt.Scale(type="log" if axis.log else "linear", domain=[before, last], nice=False)
    sizes = "replace(format(datum.value, ',.0f'), /,000,000$/, ' million')"
    x = alt.X(
        "x:Q",
        scale=x_scale,
        axis=alt.Axis(
            title=axis.title,
            values=list(axis.values),
            labelExpr=sizes,
            grid=False,
            labelAngle=0,
            labelFlush=False,
            labelOverlap=False,
            titlePadding=8,
        ),
    )
    y = alt.Y(
        "s:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(title=None, values=times, labelExpr=texts, gridColor="#e6e6e6", domain=False, ticks=False),
    )
    names = list(curves)
    colour = alt.Color("curve:N", scale=alt.Scale(domain=names, range=[_COLOURS[name] for name in names]), legend=None)
    shape = alt.Shape("curve:N", scale=alt.Scale(domain=names, range=list(_SHAPES[: len(names)])), legend=None)
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y, color=colour)
    labels = _labels(curves, low, high)
    end = max(label["x"] for label in labels)
    # Beside the last point, or above it where another curve goes on.
    beside = alt.Chart(alt.InlineData(values=[label for label in labels if label["x"] == end])).mark_text(
        align="left", dx=9, fontSize=13, fontWeight="bold", clip=False
    )
    above = alt.Chart(alt.InlineData(values=[label for label in labels if label["x"] < end])).mark_text(
        dy=-14, fontSize=13, fontWeight="bold", clip=False
    )
    layers = (
        base.mark_line(strokeWidth=2),
        base.mark_point(filled=True, size=55, opacity=1).encode(shape=shape),
        *(text.encode(x=x, y=y, text="curve:N", color=colour) for text in (beside, above)),
    )
    heading = alt.Title(
        title, subtitle=subtitle, anchor="start", fontSize=14, subtitleFontSize=12, subtitleColor=_GREY, offset=12
    )
    return alt.LayerChart(layer=list(layers), width=_WIDTH, height=_HEIGHT, title=heading)


def figure(*panels: altair.LayerChart) -> altair.HConcatChart:
    """Several panels side by side."""
    import altair as alt

    drawn = alt.hconcat(*panels, spacing=70)
    drawn = drawn.configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight="normal", titleColor=_GREY)
    drawn = drawn.configure_view(stroke=None)
    return drawn.properties(padding={"left": 5, "top": 5, "bottom": 5, "right": 70})


def _labels(curves: Mapping[str, Curve], low: float, high: float) -> list[dict[str, Any]]:
    """The name of each curve at its last point, moved apart where two would meet."""
    height = log10(high / low)
    ends = sorted((log10(curve[-1][1] / low) / height, name) for name, curve in curves.items())
    labels, before = [], dict.fromkeys((curve[-1][0] for curve in curves.values()), -1.0)
    for place, name in ends:
        x = curves[name][-1][0]
        before[x] = max(place, before[x] + _LABEL_GAP)
        labels.append({"x": x, "s": low * 10 ** (before[x] * height), "curve": name})
    return labels
