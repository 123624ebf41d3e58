"""What a section of the paper's evaluation is: tasks to compute, and the cells that their outcomes fill."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

from hdmm.paper.sections.cells import Cell

if TYPE_CHECKING:
    import altair

Outcome: TypeAlias = Mapping[str, Any]
"""What a task computes, as JSON: numbers, texts and lists by name."""
Outcomes: TypeAlias = Mapping[str, Outcome]
"""Outcomes by the names of their tasks; tasks that were left out are missing."""


@final
@dataclass(frozen=True)
class Task:
    """One computation: a function of a module with arguments whose `repr` says all about them.

    It holds none of the paper's numbers, and may run in another process.
    """

    name: str
    """Unique within its section."""
    function: Callable[..., Outcome]
    arguments: tuple[object, ...] = ()
    slow: bool = False
    """Whether a fast run leaves it out."""
    timed: bool = False
    """Whether it measures time, so that nothing else may run beside it."""

    def run(self) -> Outcome:
        """Compute."""
        return self.function(*self.arguments)

    @property
    def text(self) -> str:
        """What is computed, in full."""
        return f"{self.function.__module__}.{self.function.__qualname__}{self.arguments!r}"


class Section(ABC):
    """A part of the paper's evaluation that `hdmm paper` shows under its name."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What its numbers are."""
    row_names: ClassVar[tuple[str, ...]]
    """The names of what identifies a row."""
    counterpart: ClassVar[str] = "paper"
    """Whose numbers are beside ours."""

    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Everything that it computes, the longest first."""

    @abstractmethod
    def cells(self, outcomes: Outcomes) -> Sequence[Cell]:
        """All cells, in the order of the paper; those of missing outcomes are not computed."""

    def remarks(self, outcomes: Outcomes) -> Sequence[str]:
        """Paragraphs beside the tables (default: none)."""
        return ()

    def charts(self, outcomes: Outcomes) -> Mapping[str, altair.TopLevelMixin]:
        """Pictures by the names of their files (default: none)."""
        return {}
