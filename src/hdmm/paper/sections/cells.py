"""One number of the paper's evaluation beside ours, and the rule by which they agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, final

from hdmm.paper.rounding import MAX_ROUNDING_COST

Unit = Literal["", "bytes", "seconds"]
"""What a cell counts; nothing for errors and for numbers of queries."""
Verdict = Literal["as printed", "lower", "close", "exempt", "ours alone", "not computed", "disagrees"]


class Rule(ABC):
    """When our number agrees with the paper's."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The rule, for people to read."""

    @abstractmethod
    def agrees(self, ours: float, paper: float, digits: int) -> bool:
        """Whether they agree, if the paper prints this many decimals."""

    @property
    def reason(self) -> str:
        """Why the rule is not the usual one (default: it is)."""
        return ""


@final
@dataclass(frozen=True)
class Equal(Rule):
    """Equal to the digits that the paper prints."""

    @property
    def words(self) -> str:
        return "equal to the printed digits"

    def agrees(self, ours: float, paper: float, digits: int) -> bool:
        return abs(ours - paper) <= _half_digit(paper, digits)


@final
@dataclass(frozen=True)
class Within(Rule):
    """Within a share of the paper's number, or of its printed digits."""

    share: float

    @property
    def words(self) -> str:
        return f"within {self.share:.0%}"

    def agrees(self, ours: float, paper: float, digits: int) -> bool:
        return abs(ours - paper) <= self.share * paper + _half_digit(paper, digits)


@final
@dataclass(frozen=True)
class AtMost(Rule):
    """At most the paper's number: what is optimised may be better. A reason says why no more can be asked for."""

    why: str = ""

    @property
    def words(self) -> str:
        return "at most the number beside it"

    @property
    def reason(self) -> str:
        return self.why

    def agrees(self, ours: float, paper: float, digits: int) -> bool:
        return ours - paper <= _half_digit(paper, digits)


@final
@dataclass(frozen=True)
class Exempt(Rule):
    """Any number agrees, for the reason given."""

    why: str

    def __post_init__(self) -> None:
        if not self.why:
            raise ValueError('why="": say why the cell is exempt')

    @property
    def words(self) -> str:
        return "exempt"

    @property
    def reason(self) -> str:
        return self.why

    def agrees(self, ours: float, paper: float, digits: int) -> bool:
        return True


@final
@dataclass(frozen=True)
class Cell:
    """One number of a table: ours, the paper's, and when they agree."""

    section: str
    table: str
    """The heading of the table within its section."""
    row: tuple[str, ...]
    column: str
    ours: float | None
    """None if it was not computed; the footnote says why."""
    paper: float | None
    """None if the paper does not print it."""
    rule: Rule
    note: str = ""
    """How it was computed, for the CSV file."""
    footnote: str = ""
    """What a reader of the table must know."""
    rounding: float | None = None
    """The cost of rounding the strategy to integers, so that it can be measured, as a share of the RMSE.

    None for a strategy that is not rounded, or whose queries would be too large.
    """
    unit: Unit = ""
    digits: int = 2
    """How many decimals the paper prints."""

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's."""
        return self.ours / self.paper if self.ours is not None and self.paper else None

    @property
    def verdict(self) -> Verdict:
        """How the numbers compare. Rounding must cost next to nothing, or leave the error below the paper's."""
        if self.ours is None:
            return "not computed"
        if self.paper is None:
            return "ours alone"
        if not self.rule.agrees(self.ours, self.paper, self.digits) or not self._measurable(self.ours, self.paper):
            return "disagrees"
        if Equal().agrees(self.ours, self.paper, self.digits):
            return "as printed"
        if isinstance(self.rule, Exempt):
            return "exempt"
        return "close" if isinstance(self.rule, Within) else "lower"

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong; a number without counterpart is not."""
        return self.verdict != "disagrees"

    def _measurable(self, ours: float, paper: float) -> bool:
        rounding = self.rounding or 0.0
        return rounding <= MAX_ROUNDING_COST or (isinstance(self.rule, AtMost) and ours * (1 + rounding) <= paper)


def _half_digit(paper: float, digits: int) -> float:
    """Half of the last printed digit. The paper's σ is exact to nine digits, which shows in its largest numbers."""
    return 0.51 * 10.0**-digits + 1e-9 * abs(paper)
