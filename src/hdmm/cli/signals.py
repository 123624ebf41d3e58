"""Signals that end a command. SIGTERM and SIGHUP do what Ctrl-C does, so that temporary files are removed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}


@contextmanager
def stoppable() -> Iterator[Callable[[], tuple[str, int]]]:
    """Make SIGTERM and SIGHUP interrupts; what is yielded tells which signal came, in a word and as an exit code.

    A signal that is ignored stays so, as under nohup.
    """
    received = signal.SIGINT

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal received
        received = signal.Signals(number)
        raise KeyboardInterrupt

    ours = [getattr(signal, name) for name in _WORDS if name != "SIGINT" and hasattr(signal, name)]
    if current_thread() is not main_thread():  # where Python allows no handlers
        ours = []
    before = {one: signal.getsignal(one) for one in ours if signal.getsignal(one) is not signal.SIG_IGN}
    for one in before:
        signal.signal(one, stop)
    try:
        yield lambda: (_WORDS[received.name], 128 + received)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
