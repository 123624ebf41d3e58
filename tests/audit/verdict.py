"""What an audit is: one check that takes the thing under test, its honest thing, and things that it must not pass."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Verdict:
    """A statistic beside its threshold."""

    statistic: str
    value: float
    must_be: Literal["<=", ">="]
    threshold: float
    detail: str = ""
    """What else is worth knowing of what was found; no part of the verdict."""

    @property
    def passes(self) -> bool:
        """Whether the audit has nothing to object."""
        return self.value <= self.threshold if self.must_be == "<=" else self.value >= self.threshold

    def __str__(self) -> str:
        value = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:.3g}"
        return f"{self.statistic} {value}"

    @property
    def limit(self) -> str:
        """The threshold as text."""
        return f"{'≤' if self.must_be == '<=' else '≥'} {self.threshold:g}"


@dataclass(frozen=True)
class Audit:
    """One row of the table of audits. `run` takes a thing and how many of the `unit` to look at."""

    name: str
    run: Callable[[Any, int], Verdict]
    honest: Any
    faults: Mapping[str, Any]
    full: int
    fast: int
    """A smaller size at which the honest thing still passes and every fault is still caught."""
    unit: str
