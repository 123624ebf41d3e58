"""Lines of Python that are run one by one and kept, so that whatever fails can be printed as a script of its own."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import hdmm

PRELUDE = '''\
import pathlib, tempfile
import hdmm
folder = pathlib.Path(tempfile.mkdtemp())

def near(found, expected, tolerances):
    """Whether two lists of numbers agree."""
    return not off(found, expected, tolerances)

def off(found, expected, tolerances):
    """The places at which two lists of numbers disagree; all of them if their lengths do."""
    if len(found) != len(expected):
        return set(range(max(len(found), len(expected))))
    return {place for place, (a, b, t) in enumerate(zip(found, expected, tolerances)) if not abs(a - b) <= t}
'''


@dataclass
class Finding(Exception):
    """Something that does not hold: which check, in which way, and the lines that show it."""

    check: str
    kind: str
    detail: str
    lines: tuple[str, ...]

    @property
    def signature(self) -> tuple[str, str]:
        """What makes two findings the same."""
        return self.check, self.kind

    def __reduce__(self) -> Any:
        return Finding, (self.check, self.kind, self.detail, self.lines)


class Limit(Exception):
    """A check that was not made: at a documented limit, or where the oracle cannot tell. It is not counted."""


class Session:
    """A name space, and the lines that filled it."""

    def __init__(self, check: str, lines: tuple[str, ...] = (), space: dict[str, Any] | None = None) -> None:
        self.check = check
        self.lines = list(lines)
        self.space: dict[str, Any] = {} if space is None else dict(space)
        if not lines:
            exec(PRELUDE, self.space)

    def fork(self, check: str) -> "Session":
        """The same so far, for another check."""
        return Session(check, tuple(self.lines), self.space)

    def __getitem__(self, name: str) -> Any:
        return self.space[name]

    def run(self, *lines: str, refusals: tuple[type[Exception], ...] = ()) -> None:
        """Run lines; an exception is a finding, unless it is a refusal that is allowed."""
        text = "\n".join(lines)
        self.lines.append(text)
        try:
            exec(text, self.space)
        except refusals:
            raise
        except Exception as error:
            raise self._raised(error) from None

    def expect(self, expression: str, kind: str, shown: str = "''") -> None:
        """Run an assertion."""
        self.lines.append(f"assert {expression}, {shown}")
        try:
            held = eval(expression, self.space)
        except Exception as error:
            raise self._raised(error) from None
        if not held:
            raise self.finding(kind, f"{kind}: {eval(shown, self.space)}")

    def _raised(self, error: Exception) -> Exception:
        """The finding that an exception is, unless it tells a documented limit."""
        if isinstance(error, hdmm.errors.BudgetError) and "too small for this strategy" in str(error):
            return Limit(str(error))
        return self.finding(_place(error), f"{type(error).__name__}: {error}")

    def finding(self, kind: str, detail: str) -> Finding:
        """A finding with the lines so far."""
        return Finding(self.check, kind, detail[:600], tuple(self.lines))


def _place(error: Exception) -> str:
    """The kind of an error, and the innermost function of hdmm that it came from."""
    if isinstance(error, TimeoutError):
        return "too slow"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/hdmm/" in frame.filename]
    where = f" in {frames[-1].filename.rpartition('/hdmm/')[2]}:{frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{where}"


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Let a check take so much processor time at most: beyond that, it is interrupted by a TimeoutError."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
