"""Work in pieces that several threads share, with one BLAS thread in each.

BLAS's own threads wait for each other inside every small product; whole pieces keep all cores busy, also while data is
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

MOST = 8
"""More threads would wait for memory, and each holds a few pieces."""
FEW = 1 << 17
"""Elements up to which starting threads is not worth while."""

_EACH = 4
"""Pieces that each thread works on before the results are taken."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def waves(elements: int) -> Iterator[Callable[[Callable[[Item], Result], Iterable[Item]], Iterator[list[Result]]]]:
    """A function that works on items, a few at the same time, and hands out the results of each few together.

    What is done with these results is done before the next items are begun, so that they may be written over them.
    """
    threads = 1 if elements <= FEW else min(os.cpu_count() or 1, MOST)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads)) if threads > 1 else None
        if elements > FEW:
            stack.enter_context(_controller().limit(limits=1, user_api="blas"))

        def run(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[list[Result]]:
            left = iter(items)
            while some := list(islice(left, 1 if pool is None else _EACH * threads)):
                yield list(map(work, some) if pool is None else pool.map(work, some))

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
