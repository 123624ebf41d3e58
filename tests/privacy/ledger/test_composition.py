"""What releases add up to, and that no more is admitted than was granted."""

from fractions import Fraction
from itertools import product
from math import exp, pi, prod, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from hdmm.errors import BudgetError
from hdmm.privacy.budget import Budget
from hdmm.privacy.calibrate import certified_sigma
from hdmm.privacy.ledger import Ledger
from hdmm.privacy.ledger.composition import (
    Charged,
    capacity,
    epsilon_of_laplace,
    mu_squared_of,
    mu_squared_of_laplace,
)
from tests.privacy.ledger.steps import PLAN, UNIT, refused, spend


def delta_of(mu_squared: float, epsilon):
    """The exact δ of Gaussian releases at ε."""
    mu = sqrt(mu_squared)
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def response_delta(pure: float, epsilon):
    """The exact δ at ε of a randomised response, the worst of all releases that are private at ``pure``."""
    corner = (np.exp(pure) - np.exp(epsilon)) / (1 + np.exp(pure))
    return np.maximum(np.maximum(0, corner), 1 - np.exp(epsilon))


def test_ten_tenths_fit_one_and_the_eleventh_does_not(ledger: Ledger):
    spend(ledger, *[Budget("0.1")] * 10)
    assert (str(ledger.spent()), str(ledger.left())) == ("ε = 1", "ε = 0")
    with pytest.raises(BudgetError, match=r"budget ε = 0.1: the ledger .* has nothing left of ε = 1; if whoever"):
        ledger.reserve("eleven", Budget("0.1"), UNIT, PLAN)
    assert ledger.verify().steps == 10


def test_a_very_small_epsilon_is_recorded_exactly(ledger: Ledger):
    spend(ledger, Budget("1e-17"))
    assert ledger.entries()[0].budget.epsilon == Fraction(1, 10**17)
    assert str(ledger.left()) == "ε = 0.99999999999999999"
    assert refused(ledger, Budget("1"))
    spend(ledger, Budget("0.99999999999999999"))


def test_fractions_that_are_no_decimals_add_up_exactly(ledger: Ledger):
    spend(ledger, *[Budget(Fraction(1, 3))] * 3)
    assert refused(ledger, Budget("1e-100"))


@pytest.mark.parametrize("budget", [Budget("0.1", "1e-6"), Budget(rho="0.001")], ids=str)
def test_epsilon_alone_takes_no_gaussian_release(ledger: Ledger, budget: Budget):
    with pytest.raises(BudgetError, match="grants ε = 1 alone, which Gaussian noise cannot keep; plan with Laplace"):
        ledger.reserve("a", budget, UNIT, PLAN)


def test_rho_adds_up_exactly(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="1"), UNIT)
    spend(ledger, *[Budget(rho="0.1")] * 9, Budget(rho="0.09999999999999999999999999"))
    assert str(ledger.left()) == "ρ = 1e-26"
    assert refused(ledger, Budget(rho="1.1e-26"))
    spend(ledger, Budget(rho="1e-26"))


def test_laplace_costs_half_epsilon_squared_of_rho(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="0.5"), UNIT)
    assert refused(ledger, Budget("1.0000000000000000000001"))
    spend(ledger, Budget("1"))
    assert str(ledger.left()) == "ρ = 0"


def test_an_epsilon_with_delta_costs_its_noise_of_rho(tmp_path: Path):
    budget = Budget("1", "1e-6")
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="0.5"), UNIT)
    spend(ledger, budget)
    rho = ledger.spent().rho
    exact = 1 / certified_sigma(budget) ** 2 / 2
    assert rho is not None
    assert exact <= rho <= exact * (1 + Fraction(1, 10**19))


@pytest.mark.parametrize("total", [("1", "1e-6"), ("0.1", "1e-9"), ("10", "1e-15"), ("1e-17", "0.01")], ids=str)
def test_one_gaussian_release_may_take_everything(tmp_path: Path, total: tuple[str, str]):
    ledger = Ledger.create(tmp_path / "b.db", Budget(*total), UNIT)
    spend(ledger, Budget(*total))
    ledger.verify()
    assert refused(ledger, Budget(*total))
    assert refused(ledger, Budget("1e-20"))
    assert refused(ledger, Budget(rho="1e-20"))
    left = ledger.left()
    assert (left.epsilon, left.rho) == (Fraction(0), Fraction(0))


def test_one_gaussian_release_keeps_the_granted_delta(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-9"), UNIT)
    assert refused(ledger, Budget("1", "1e-6"))
    spend(ledger, Budget("0.5", "1e-6"))  # more noise than (1, 1e-9) needs
    assert delta_of(2 * float(ledger.spent().rho or 0), 1.0) < 1e-9


def test_gaussian_releases_compose_by_their_noise(tmp_path: Path):
    """Four releases of twice the standard deviation are one; their ε would add up to much more."""
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    rho = ledger.left().rho
    assert rho is not None
    quarter = Budget(rho=rho / 4)
    spend(ledger, *[quarter] * 4)
    assert refused(ledger, Budget(rho="1e-7"))
    assert delta_of(2 * float(ledger.spent().rho or 0), 1.0) == pytest.approx(1e-6, rel=1e-3)


def test_laplace_takes_its_epsilon_from_the_gaussian_releases(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, Budget("0.4"))
    assert refused(ledger, Budget("0.6000000001", "1e-6"))
    spend(ledger, Budget("0.6", "1e-6"))
    assert refused(ledger, Budget("1e-9"))


BEFORE = {
    "Laplace after Laplace": ("epsilon", [Budget("0.1")]),
    "Gaussian after both": ("rho", [Budget("0.1"), Budget("0.3", "1e-7"), Budget("0.2", "1e-6")]),
    "Laplace after both": ("epsilon", [Budget("0.1"), Budget("0.3", "1e-7")]),
    "Gaussian after a late one": ("rho", [Budget("0.3", "1e-7"), Budget("0.1")]),
}


@pytest.mark.parametrize(("kind", "before"), BEFORE.values(), ids=BEFORE)
def test_what_is_left_can_be_spent_and_no_more(tmp_path: Path, kind: str, before: list[Budget]):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, *before)
    left = getattr(ledger.left(), kind)
    assert left > 0
    assert refused(ledger, Budget(**{kind: left * Fraction(100_002, 100_000)}))
    spend(ledger, Budget(**{kind: left}))
    ledger.verify()


def test_late_laplace_releases_are_told_in_what_is_spent(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", "1e-6"), UNIT)
    spend(ledger, Budget("0.25"), Budget(rho="0.001"), Budget("0.01"))
    spent = ledger.spent()
    assert spent.rho == Fraction(1, 1000) + mu_squared_of_laplace(Fraction(1, 100)) / 2
    assert str(spent).startswith("ε = 0.25 by Laplace noise and ρ = 0.001")
    assert str(spent).endswith(" by Gaussian noise and Laplace noise after it")


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([("1", "1e-6"), ("3", "1e-3"), ("0.2", "1e-10")]),
    st.lists(st.tuples(st.sampled_from(["laplace", "delta", "rho"]), st.integers(1, 60)), min_size=1, max_size=8),
)
def test_accepted_mixtures_are_as_private_as_granted(total: tuple[str, str], asked: list[tuple[str, int]]):
    """The exact δ of randomised responses, the worst of all ε-private releases, beside the Gaussian releases."""
    granted = Budget(*total)
    assert granted.epsilon is not None
    charged, laplace, gaussian, accepted = Charged(), [], 0.0, 0
    for kind, percent in asked:
        share = Fraction(percent, 100)
        budget = {
            "laplace": Budget(granted.epsilon * share),
            "delta": Budget(granted.epsilon * share, granted.delta),
            "rho": Budget(rho=share / certified_sigma(granted) ** 2 / 2),
        }[kind]
        wider = charged.plus(budget, mu_squared_of(budget))
        if wider.fits(granted):
            charged, accepted = wider, accepted + 1
            if kind == "laplace":
                laplace.append(float(granted.epsilon * share))
            else:
                gaussian += float(mu_squared_of(budget) or 0)
    assert accepted
    worst = 0.0
    for signs in product((1, -1), repeat=len(laplace)):
        losses = [sign * epsilon for sign, epsilon in zip(signs, laplace, strict=True)]
        likely = prod(1 / (1 + exp(-loss)) for loss in losses)
        rest = float(granted.epsilon) - sum(losses)
        worst += likely * (delta_of(gaussian, rest) if gaussian else max(0, 1 - exp(rest)))
    assert worst <= float(granted.delta or 0) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "4", "12"])
def test_a_late_laplace_release_counts_as_the_least_gaussian_one_that_leaks_as_much(epsilon: str):
    mu_squared, pure = float(mu_squared_of_laplace(Fraction(epsilon))), float(epsilon)
    for rest in [pure * share / 20 for share in range(20)]:
        assert response_delta(pure, rest) <= delta_of(mu_squared, rest) * (1 + 1e-9)
    assert response_delta(pure, 0) > delta_of(0.999 * mu_squared, 0)


@pytest.mark.parametrize("total", [("1", "1e-6"), ("3", "1e-3"), ("0.2", "1e-10")], ids=str)
def test_choosing_the_noise_by_looking_at_a_gaussian_release_gains_nothing(total: tuple[str, str]):
    """Whoever has spent nine tenths, and sees what leaked, takes the noise that then leaks most.

    If a Laplace release were charged μ² = ε², as under ρ, more than δ would leak: rules cannot be mixed at will.
    """
    epsilon, delta = Fraction(total[0]), Fraction(total[1])
    whole = capacity(epsilon, delta)
    first, last = sqrt(whole * 9 / 10), whole / 10
    normal, step = np.linspace(-15, 15, 40_001, retstep=True)
    likely = np.exp(-(normal**2) / 2) / sqrt(2 * pi) * step
    rest = float(epsilon) - (first**2 / 2 + first * normal)
    gaussian = delta_of(float(last), rest)
    assert likely @ gaussian == pytest.approx(float(delta), rel=1e-9)

    def chosen(pure: float) -> float:
        return float(likely @ np.maximum(gaussian, response_delta(pure, rest)))

    assert chosen(float(epsilon_of_laplace(last))) == pytest.approx(float(delta), rel=1e-9)
    assert chosen(sqrt(last)) > 1.05 * float(delta)


def test_what_floats_cannot_tell_is_not_granted():
    """At ε = δ = 1e-17 a σ found in floats is far too small; the capacity must not rest on it."""
    tiny = Fraction(1, 10**17)
    truth = 8 * Fraction(355, 113) * tiny**2  # above μ²: μ = δ·√(2π) at ε = 0, and less than twice that at ε = δ
    assert capacity(tiny, tiny) <= truth
