"""How a user wants answers: by which estimator, with which intervals, as they are or as whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict, final, get_args

from hdmm.errors import InputError
from hdmm.privacy.intervals import check_level

Estimator = Literal["global", "local", "nonnegative", "pgm"]
"""Least squares over all measurements, or over one block for each table; or estimates that are never negative."""

UNBIASED: tuple[Estimator, ...] = ("global", "local")


class Wishes(TypedDict, total=False):
    """What may be wished for a table, by name: see :meth:`hdmm.Release.table`."""

    level: float
    simultaneous: bool
    estimator: Estimator
    exact: bool
    rounded: bool


@final
@dataclass(frozen=True)
class How:
    """The wishes for one table or for all, with what nobody wished otherwise."""

    level: float = 0.95
    simultaneous: bool = False
    estimator: Estimator = "global"
    exact: bool = False
    rounded: bool = False

    def __post_init__(self) -> None:
        if self.estimator not in get_args(Estimator):
            known = ", ".join(map(repr, get_args(Estimator)))
            raise InputError(f"estimator={self.estimator!r}: expected one of {known}")
        check_level(self.level)
        if not self.biased:
            return
        for name in ("level", "simultaneous", "exact"):
            if getattr(self, name) != getattr(How, name):
                raise InputError(
                    f"{name}={getattr(self, name)}: the estimator {self.estimator!r} is biased and has no intervals; "
                    'leave it out, or take estimator="global"'
                )

    @property
    def biased(self) -> bool:
        """Whether the estimator keeps counts from being negative."""
        return self.estimator not in UNBIASED


USUAL = How()
"""What is published: least squares over everything, with 95% intervals for each answer."""
