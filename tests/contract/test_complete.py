"""The zoo holds every matrix, Gram, family of strategies and estimator, so that a new one cannot go untested."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import hdmm
from hdmm.estimators.biased import BiasedEstimator
from hdmm.estimators.estimator import Estimator, LinearEstimator
from hdmm.matrix import Matrix
from hdmm.matrix.axis_gram import AxisGram
from hdmm.strategy import Family
from tests.contract.zoo import BIASED, ESTIMATORS, GRAMS, MATRICES, STRATEGIES


def subclasses(base: Any) -> Iterator[type]:
    for derived in base.__subclasses__():
        yield derived
        yield from subclasses(derived)


def concrete(base: type) -> set[type]:
    """The classes of hdmm that are derived from a base and can be built."""
    for module in pkgutil.walk_packages(hdmm.__path__, "hdmm."):
        if module.name != "hdmm.__main__":
            importlib.import_module(module.name)
    derived = {kind for kind in subclasses(base) if kind.__module__.startswith("hdmm.")}
    return {kind for kind in derived if not inspect.isabstract(kind)}


def kinds(examples: Iterable[object]) -> set[type]:
    return {type(example) for example in examples}


def test_every_matrix_has_an_example():
    assert kinds(MATRICES.values()) == concrete(Matrix)


def test_every_gram_over_one_attribute_has_an_example():
    assert kinds(gram for gram, _ in GRAMS.values()) == concrete(AxisGram)


def test_every_family_of_strategies_has_an_example():
    assert {strategy.family for strategy, _ in STRATEGIES.values()} == set(get_args(Family))


def test_every_linear_estimator_has_an_example():
    assert kinds(estimator for estimator, _ in ESTIMATORS.values()) == concrete(LinearEstimator)


def test_every_biased_estimator_has_an_example():
    assert kinds(estimator for estimator, _ in BIASED.values()) == concrete(BiasedEstimator)


def test_an_estimator_is_linear_or_biased():
    assert concrete(Estimator) == concrete(LinearEstimator) | concrete(BiasedEstimator)
