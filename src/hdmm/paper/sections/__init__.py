"""The sections of the paper's evaluation, by the names that `hdmm paper` takes."""

from __future__ import annotations

from collections.abc import Sequence

from hdmm.errors import InputError, nearest
from hdmm.paper.sections.base import Section
from hdmm.paper.sections.examples import Examples
from hdmm.paper.sections.one_dimension import OneDimension
from hdmm.paper.sections.scalability import Scalability
from hdmm.paper.sections.several_dimensions import SeveralDimensions
from hdmm.paper.sections.since import Since
from hdmm.paper.sections.sizes import Sizes
from hdmm.paper.sections.strategies import Strategies

_ALL: tuple[Section, ...] = (
    Strategies(),
    Sizes(),
    Examples(),
    OneDimension(),
    SeveralDimensions(),
    Scalability(),
    Since(),
)
SECTIONS: dict[str, Section] = {section.name: section for section in _ALL}
"""In the order in which they run."""
_BASELINES = ("Identity", "Baseline", "DataCube", "SVDB")
_HIERARCHIES = ("H2", "Wavelet", "HB", "GreedyH")
_OPTIMISED = ("OPT_kron", "OPT_union", "OPT_M", "HDMM", "beyond")
CHECKS: dict[str, tuple[Section, ...]] = {
    "workloads": (Sizes(),),
    "baselines": (OneDimension(_BASELINES), SeveralDimensions(_BASELINES)),
    "hierarchies": (OneDimension(_HIERARCHIES),),
    "multi-d": (SeveralDimensions(_OPTIMISED),),
    "one-d": (OneDimension(("OPT_0",)),),
}
"""The parts of sections that `hdmm paper --check` names."""


def chosen(names: Sequence[str], check: str | None = None) -> list[Section]:
    """The sections of these names, in the order of the paper; all of them without a name."""
    if check is not None:
        if names:
            raise InputError(f"--check={check}: leave it out if you name sections ({', '.join(names)})")
        return [section for name, parts in CHECKS.items() if check in ("all", name) for section in parts]
    for name in names:
        if name not in SECTIONS:
            raise InputError(f"{name}: no section of the paper{nearest(name, SECTIONS)}")
    return [section for name, section in SECTIONS.items() if not names or name in names]
