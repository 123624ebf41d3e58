"""One BLAS thread for work on small matrices.

numpy and scipy each bring a BLAS with threads of its own. Calls that alternate between them in a descent make the two
pools wait for each other's cores, which is slower by orders of magnitude than one thread.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Within it BLAS runs on one thread, in this process."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  the controller sees only libraries that are loaded

    return ThreadpoolController()
