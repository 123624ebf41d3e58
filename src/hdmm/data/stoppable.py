"""A connection of DuckDB whose statements end at an interrupt.

At an interrupt DuckDB raises an error, but its threads go on with the query. The next statement, even one that only
cleans up, would wait for them, possibly for hours.
"""

from __future__ import annotations

from typing import Any, final


@final
class Stoppable:
    """A connection whose running query is cancelled when a statement fails or is interrupted."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, *arguments: Any, **options: Any) -> Stoppable:
        """Run a statement; its result is fetched from here."""
        try:
            self._connection.execute(*arguments, **options)
        except BaseException as error:
            self._connection.interrupt()
            if isinstance(error.__cause__, KeyboardInterrupt):  # DuckDB wraps it in a RuntimeError
                raise error.__cause__ from None
            raise
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
