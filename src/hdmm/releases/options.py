"""Options for rendering tables, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

from hdmm.accuracy.margins import check_level
from hdmm.errors import InputError
from hdmm.estimators import Choice, LeastSquares
from hdmm.estimators.choices import CHOICES
from hdmm.syntax import example, given

Word = Literal["global", "local", "nonnegative", "pgm"]
"""The words for estimators; see :data:`hdmm.estimators.choices.CHOICES`."""


@final
@dataclass(frozen=True)
class TableOptions:
    """The estimator, the intervals, and whether answers are rounded to whole numbers."""

    level: float = 0.95
    simultaneous: bool = False
    estimator: Choice = field(default_factory=LeastSquares)
    exact: bool = False
    rounded: bool = False

    @staticmethod
    def of(level: float, simultaneous: bool, estimator: Word | Choice, exact: bool, rounded: bool) -> TableOptions:
        """The options, with the estimator as a user states it: by its word or as a value."""
        choice = estimator if isinstance(estimator, Choice) else CHOICES.get(estimator)
        if choice is None:
            words = ", ".join(map(repr, CHOICES))
            raise InputError(
                f"{given('estimator', repr(estimator))}: expected one of {words}, or one of hdmm.estimators"
            )
        return TableOptions(level, simultaneous, choice, exact, rounded)

    def __post_init__(self) -> None:
        check_level(self.level)
        if not self.estimator.biased:
            return
        for name in ("level", "simultaneous", "exact"):
            if getattr(self, name) != getattr(TableOptions, name):
                raise InputError(
                    f"{example(name, getattr(self, name))}: the estimator {self.estimator.word!r} is biased and has no "
                    f"intervals; leave it out, or use {example('estimator', 'global')}"
                )


USUAL = TableOptions()
"""The options of published tables: least squares over everything, with a 95% interval for each answer."""
