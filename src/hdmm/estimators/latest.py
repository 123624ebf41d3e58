"""A function that remembers its latest result, because the same thing is asked for many times in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

Key = TypeVar("Key")
Value = TypeVar("Value")


@final
class Latest(Generic[Key, Value]):
    """Calls a function only if its argument differs from the one before."""

    def __init__(self, function: Callable[[Key], Value]) -> None:
        self._function = function
        self._latest: tuple[Key, Value] | None = None

    def __call__(self, key: Key) -> Value:
        if self._latest is None or (self._latest[0] is not key and self._latest[0] != key):
            self._latest = key, self._function(key)
        return self._latest[1]
