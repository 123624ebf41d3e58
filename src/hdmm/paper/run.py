"""Run the tasks of a section: what is cached is read, everything else computed, in several processes if asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hdmm.paper.cache import Cache
from hdmm.paper.sections.base import Outcome, Section, Task
from hdmm.parallel import one_blas_thread


def run(
    section: Section,
    cache: Cache | None = None,
    *,
    fast: bool = False,
    jobs: int = 1,
    on_progress: Callable[[float], None] = lambda done: None,
) -> dict[str, Outcome]:
    """The outcomes of a section's tasks, all of them or only the fast ones, by name.

    A cached outcome is taken even if it would be slow to compute.
    """
    outcomes: dict[str, Outcome] = {}
    missing: list[Task] = []
    tasks = section.tasks()
    for task in tasks:
        known = None if cache is None else cache.recall(task)
        if known is not None:
            outcomes[task.name] = known
        elif not (fast and task.slow):
            missing.append(task)
    total = len(outcomes) + len(missing)
    on_progress(len(outcomes) / total if total else 1.0)
    for task, outcome in _computed(missing, jobs):
        if cache is not None:
            cache.keep(task, outcome)
        outcomes[task.name] = outcome
        on_progress(len(outcomes) / total)
    return outcomes


def _computed(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Outcome]]:
    """Tasks with their outcomes as they finish; those that measure time run alone, after all others."""
    together = [task for task in tasks if not task.timed]
    if jobs > 1 and len(together) > 1:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=min(jobs, len(together)), return_as="generator_unordered", pre_dispatch="all")
        yield from parallel(delayed(_run_alone)(task) for task in together)
    else:
        yield from ((task, task.run()) for task in together)
    yield from ((task, task.run()) for task in tasks if task.timed)


def _run_alone(task: Task) -> tuple[Task, Outcome]:
    """Run a task in a worker: as many processes as there are cores need no threads."""
    with one_blas_thread():
        return task, task.run()
