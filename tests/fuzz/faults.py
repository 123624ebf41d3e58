"""Faults planted into the library, one at a time: the fuzzer must find each of them."""

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np

from hdmm.text import text_table
from tests.fuzz.campaign import Task, run_task

_CASES = 60
"""Cases within which a fault must be found."""


@dataclass(frozen=True)
class Fault:
    """A function of the library, what stands in for it, and the cases in which it should show."""

    target: str
    change: Callable[..., Any]
    """Called with the original and its arguments."""
    noise: str = "laplace"
    operator: str = "Identity"

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put the fault into the library."""
        owner, name = _owner(self.target)
        original = getattr(owner, name)

        def faulty(*arguments: Any, **options: Any) -> Any:
            return self.change(original, *arguments, **options)

        with patch.object(owner, name, faulty):
            yield

    @property
    def tasks(self) -> list[Task]:
        """The cases in which it must be found."""
        return [(seed, self.noise, self.operator) for seed in range(_CASES)]


def _owner(target: str) -> tuple[Any, str]:
    """The module or class that holds a function, and the function's name."""
    module, *names = target.split(":")
    owner: Any = importlib.import_module(module)
    *classes, name = names[0].split(".")
    for part in classes:
        owner = getattr(owner, part)
    return owner, name


def _larger_errors(original: Any, *arguments: Any, **options: Any) -> Any:
    found = original(*arguments, **options)
    return replace(found, stderr=found.stderr * 1.02)


def _smaller(original: Any, *arguments: Any, **options: Any) -> Any:
    return original(*arguments, **options) * 0.98


def _higher(original: Any, *arguments: Any, **options: Any) -> Any:
    found = original(*arguments, **options)
    return None if found is None else found * 1.05


def _shifted(original: Any, self: Any, name: str, domain: Any) -> Any:
    from hdmm.matrix import Dense

    return Dense(np.roll(original(self, name, domain).dense(), 1, axis=1))


def _forgetful(original: Any, self: Any, name: str, domain: Any) -> Any:
    from hdmm.matrix import Dense

    rows = np.array(original(self, name, domain).dense())
    rows[:, domain.declared :] = 0
    return Dense(rows)


def _understated(original: Any, self: Any, blocks: Any, p: int) -> Any:
    change = original(self, blocks, p)
    return change._replace(power=change.power * Fraction(98, 100))


def _added(original: Any, blocks: Any, p: Any) -> Any:
    from hdmm.strategy.sensitivity import change_by_adding

    return change_by_adding(blocks, p)


def _weightless(original: Any, product: Any) -> Any:
    return {key: value for key, value in original(product).items() if key != "weight"}


def _doubled(original: Any, self: Any, lines: bytes) -> Any:
    found = original(self, lines)
    codes = {name: np.concatenate([codes, codes]) for name, codes in found.codes.items()}
    return found if found.people is not None else replace(found, count=2 * found.count, codes=codes)


def _strict(original: Any, self: Any, operator: str, column: Any, texts: Any) -> Any:
    return original(self, "<" if operator == "<=" else operator, column, texts)


def _two_valued(original: Any, *arguments: Any) -> Any:
    found = original(*arguments)
    return replace(found, truth=np.where(found.truth > 0, 1, -1).astype(np.int8))


def _never(original: Any, self: Any, text: bytes) -> bool:
    return not text


def _unfolded(original: Any, self: Any, text: str) -> str:
    return text


def _loose(original: Any, self: Any, text: bytes) -> bytes:
    """Separators of thousands anywhere."""
    marks = [mark.encode() for mark in (self.thousands, self.currency) if mark]
    for mark in marks:
        text = text.replace(mark, b"")
    return text if self.point is None else text.replace(self.point.encode(), b".")


def _rounded(original: Any, self: Any, texts: Any) -> Any:
    return original(self, [text.split(b".")[0] if self.decimals else text for text in texts])


def _everything(original: Any, self: Any, names: Any) -> Any:
    return self


FAULTS = {
    "standard errors 2% too large": Fault("hdmm.plans.plan:accuracy", _larger_errors),
    "predicted RMSE 2% too small": Fault("hdmm.plans.plan:rmse", _smaller),
    "~ leaves out other and missing": Fault("hdmm.workload.predicates:Not.matrix", _forgetful),
    "prefixes shifted by one": Fault("hdmm.workload.ordered:Prefix.matrix", _shifted),
    "<= read as <": Fault("hdmm.workload.cells:Cells.any_of", _strict),
    "NOT of unknown is true": Fault("hdmm.workload.cells:Cells.any_of", _two_valued),
    "sensitivity 2% too small": Fault("hdmm.privacy.unit:Unit.change", _understated),
    "replacing counted as adding": Fault("hdmm.privacy.unit:change_by_replacing", _added, "gaussian"),
    "bound 5% too high": Fault("hdmm.plans.plan:Plan.bound", _higher, "gaussian", "Residual"),
    "weights lost in files": Fault("hdmm.spec.spec:product_data", _weightless),
    "lines of CSV counted twice": Fault("hdmm.data.csv:_Layout.decode", _doubled),
    "texts for missing values are not": Fault("hdmm.schema.numerals:Numeric._absent", _never),
    "case is not ignored": Fault("hdmm.schema.kinds:Listed._fold", _unfolded),
    "thousands separated anywhere": Fault("hdmm.schema.numerals:Numerals._plain", _loose),
    "decimals cut off": Fault("hdmm.schema.kinds:Integers._numbers", _rounded),
    "attributes read that nobody asks about": Fault("hdmm.schema:Schema.only", _everything),
}


def caught(name: str) -> str | None:
    """What the fuzzer says about a fault and not about the library as it is; None where it says nothing new."""
    fault = FAULTS[name]
    for task in fault.tasks:
        with fault.planted():
            found = {finding.signature: finding for finding in run_task(task).findings}
        known = {finding.signature for finding in run_task(task).findings} if found else set()
        new = [finding for signature, finding in found.items() if signature not in known]
        if new:
            return f"seed {task[0]}: {new[0].check}: {new[0].kind}"
    return None


def plant_all(jobs: int) -> int:
    """Plant every fault and print what was found: 1 where one was missed."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        found = list(pool.map(caught, FAULTS))
    rows = [(name, said or "NOT CAUGHT") for name, said in zip(FAULTS, found, strict=True)]
    print(text_table(("planted fault", "found by"), rows))
    print(f"{sum(said is None for said in found)} of {len(found)} planted faults were not caught")
    return 1 if None in found else 0
