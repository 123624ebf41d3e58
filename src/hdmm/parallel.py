"""Work in pieces that several threads share, with one BLAS thread in each.

BLAS's own threads wait for each other inside every small product. Whole pieces keep all cores busy, even while data is
copied and converted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from itertools import islice
from typing import TypeVar

from threadpoolctl import ThreadpoolController

MAX_THREADS = 8
"""More threads would wait for memory, and each holds a few pieces."""
MAX_SERIAL = 1 << 17
"""Up to this many elements, starting threads does not pay."""

_PIECES_PER_THREAD = 4
"""Pieces that each thread works on before the results are taken."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def waves(elements: int) -> Iterator[Callable[[Callable[[Item], Result], Iterable[Item]], Iterator[list[Result]]]]:
    """A function that works on items in threads, a wave of several at a time, and yields the results of each wave.

    The next wave begins only after the caller has taken these results, so it may write them over items already read.
    """
    threads = 1 if elements <= MAX_SERIAL else min(os.cpu_count() or 1, MAX_THREADS)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads)) if threads > 1 else None
        if elements > MAX_SERIAL:
            stack.enter_context(one_blas_thread())

        def run(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[list[Result]]:
            pending = iter(items)
            while wave := list(islice(pending, 1 if pool is None else _PIECES_PER_THREAD * threads)):
                yield list(map(work, wave) if pool is None else pool.map(work, wave))

        yield run


def one_blas_thread() -> AbstractContextManager[object]:
    """Run BLAS on one thread inside the `with` block.

    numpy and scipy each bring a BLAS with threads of its own. If small products alternate between them, the two pools
    wait for each other's cores, which is slower than one thread by orders of magnitude.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  the controller sees only libraries that are loaded

    return ThreadpoolController()
