"""A connection of DuckDB whose statements end at an interrupt.

DuckDB answers an interrupt with an error while its threads go on with the query. The next statement, if only one that
cleans up, would wait for them, for hours if need be.
"""

from __future__ import annotations

from typing import Any, final


@final
class Stoppable:
    """A connection that is asked to give up whatever was cut short."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, *arguments: Any, **options: Any) -> Stoppable:
        """Run a statement; its result is fetched from here."""
        try:
            self._connection.execute(*arguments, **options)
        except BaseException as error:
            self._connection.interrupt()
            if isinstance(error.__cause__, KeyboardInterrupt):  # DuckDB makes a RuntimeError of it
                raise error.__cause__ from None
            raise
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
