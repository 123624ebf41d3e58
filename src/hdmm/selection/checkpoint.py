"""Checkpoints: what the tasks of a search have found so far, in a file that is complete or absent.

After a crash the same search reads it and does only the rest. It is bound to its search by a key: another workload,
seed or version starts anew. It holds the best strategy and the numbers of the others, never anything about data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import final

from hdmm.errors import InputError
from hdmm.files.artefact import encode, read, write
from hdmm.files.model import Model
from hdmm.plans import Candidate, Goal
from hdmm.plans.file import CandidateData, StrategyData, read_strategy, strategy_data
from hdmm.privacy.calibrate import NoiseKind
from hdmm.privacy.unit import Unit
from hdmm.selection.tasks import Outcome, Task
from hdmm.spec.spec import Spec
from hdmm.strategy import Strategy
from hdmm.workload import Workload

_KIND = "checkpoint"
_VERSION = 3
"""Increment when the same search would find something else."""

_Best = tuple[str, Strategy]
"""The name of the best task, and the strategy that it found."""


class _Done(Model):
    name: str
    score: float
    value: float
    bound: float | None
    candidate: CandidateData | None
    reason: str | None
    refused: bool


class _File(Model):
    key: str
    done: list[_Done]
    best: str | None
    strategy: StrategyData | None


def search_key(
    workload: Workload,
    noise: NoiseKind,
    unit: Unit,
    goal: Goal,
    operators: Sequence[str],
    restarts: int,
    seed: int,
    memory: int | None,
) -> str:
    """Identifies a search. Memory counts only if it was given, so that the key does not depend on the machine."""
    spec = Spec(workload.schema, workload, noise, unit, goal.aim, goal.targets)
    parts = [_VERSION, spec.data(), str(goal.budget), list(operators), restarts, seed, memory]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@final
class Checkpoint:
    """The file, and what it held when the search began."""

    def __init__(self, path: Path, key: str, workload: Workload, done: Sequence[_Done], best: _Best | None) -> None:
        self._path, self._key, self._workload = path, key, workload
        self._done = {record.name: record for record in done}
        self._best = best

    @staticmethod
    def open(path: Path, key: str, workload: Workload) -> Checkpoint:
        """Read what is saved of this search; a file of another search, or a damaged one, is started afresh."""
        done, best = _read(path, key, workload) if path.exists() else ([], None)
        return Checkpoint(path, key, workload, done, best)

    def recall(self, task: Task) -> Outcome | None:
        """What a task has found before; its strategy only if that is the best."""
        done = self._done.get(task.name)
        if done is None:
            return None
        return Outcome(
            done.name,
            task.operator,
            self._best[1] if self._best is not None and self._best[0] == done.name else None,
            done.score,
            done.value,
            done.bound,
            None if done.candidate is None else Candidate(**done.candidate.model_dump()),
            done.reason,
            done.refused,
        )

    def add(self, outcome: Outcome, best: Outcome | None) -> None:
        """Save what one more task has found, and the best strategy so far."""
        self._done[outcome.name] = _record(outcome)
        name, strategy = (None, None) if best is None else (best.name, best.strategy)
        data = None if strategy is None else strategy_data(strategy, self._workload)
        content = _File(key=self._key, done=list(self._done.values()), best=name, strategy=data)
        write(self._path, encode(_KIND, content.model_dump()), overwrite=True)


def _record(outcome: Outcome) -> _Done:
    return _Done(
        name=outcome.name,
        score=outcome.score,
        value=outcome.value,
        bound=outcome.bound,
        candidate=None if outcome.candidate is None else CandidateData(**vars(outcome.candidate)),
        reason=outcome.reason,
        refused=outcome.refused,
    )


def _read(path: Path, key: str, workload: Workload) -> tuple[list[_Done], _Best | None]:
    try:
        file = _File.model_validate(read(_KIND, path))
        if file.key != key or file.best is None or file.strategy is None:
            return [], None
        return file.done, (file.best, read_strategy(file.strategy, workload))
    except (InputError, ValueError):  # damaged, or of another version: nothing is lost but time
        return [], None
