"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that temporary files are removed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}


@contextmanager
def stoppable() -> Iterator[Callable[[], tuple[str, int]]]:
    """Turn SIGTERM and SIGHUP into interrupts. The function it yields names the signal received, and its exit code.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored.
    """
    received = signal.SIGINT

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal received
        received = signal.Signals(number)
        raise KeyboardInterrupt

    caught = [getattr(signal, name) for name in _WORDS if name != "SIGINT" and hasattr(signal, name)]
    if current_thread() is not main_thread():  # Python allows handlers in the main thread only
        caught = []
    before = {number: signal.getsignal(number) for number in caught}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield lambda: (_WORDS[received.name], 128 + received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
