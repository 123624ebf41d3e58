"""What releases leak together is told as it is, or as a little more; never as less."""

from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution

from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Leak, Ledger, leakage
from hdmm.privacy.ledger.composition import epsilon_of_laplace, mu_squared_of
from hdmm.privacy.ledger.leakage import gaussian_epsilon, leaks
from tests.privacy.ledger.steps import UNIT, spend

MILLIONTH = Fraction(1, 10**6)


def release(budget: Budget) -> tuple[Budget, Fraction | None]:
    return budget, mu_squared_of(budget)


def together(laplace: list[str], mu_squared: Fraction, delta: Fraction) -> Fraction:
    """What `leaks` says of all releases, the Laplace ones first."""
    gaussian = (Budget(rho=mu_squared / 2), mu_squared)
    return leaks([*[release(Budget(epsilon)) for epsilon in laplace], gaussian], delta)[-1].epsilon


def exact_delta(laplace: list[str], mu_squared: Fraction, epsilon: mpmath.mpf) -> mpmath.mpf:
    """The δ at ε of a Gaussian release and randomised responses, by the loss that each of their answers adds."""
    mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
    total = mpmath.mpf(0)
    for signs in product((1, -1), repeat=len(laplace)):
        losses = [sign * mpmath.mpf(pure) for sign, pure in zip(signs, laplace, strict=True)]
        rest = epsilon - mpmath.fsum(losses)
        leaked = mpmath.ncdf(mu / 2 - rest / mu) - mpmath.exp(rest) * mpmath.ncdf(-mu / 2 - rest / mu)
        total += leaked * mpmath.fprod(1 / (1 + mpmath.exp(-loss)) for loss in losses)
    return total


def leaks_no_more(laplace: list[str], mu_squared: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with mpmath.workdps(60):
        exact = exact_delta(laplace, mu_squared, mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        return bool(exact <= mpmath.mpf(delta.numerator) / delta.denominator)


MIXTURES = [
    (["0.5"], "0.04", "1e-6"),
    (["0.1", "0.2", "0.4"], "0.04", "1e-9"),
    (["0.3"] * 6, "1", "1e-3"),
    (["1"], "1", "0.1"),
    (["3"], "25", "1e-6"),
    (["40"], "196", "1e-6"),
    (["1e-7"], "1e-10", "1e-6"),
    (["1e-3"], "1e-6", "1e-9"),
]


@pytest.mark.parametrize(("laplace", "mu_squared", "delta"), MIXTURES, ids=str)
def test_mixtures_leak_at_most_what_is_told_and_hardly_less(laplace: list[str], mu_squared: str, delta: str):
    mu, rare = Fraction(mu_squared), Fraction(delta)
    told = together(laplace, mu, rare)
    assert leaks_no_more(laplace, mu, told, rare)
    assert not leaks_no_more(laplace, mu, told * Fraction(998, 1000), rare)


@pytest.mark.parametrize(("laplace", "mu_squared", "delta"), MIXTURES[:5], ids=str)
def test_an_understated_mu_would_be_seen(laplace: list[str], mu_squared: str, delta: str):
    """As a check of the oracle: two hundredths less of μ² tell less than leaks."""
    mu, rare = Fraction(mu_squared), Fraction(delta)
    assert not leaks_no_more(laplace, mu, together(laplace, mu * Fraction(98, 100), rare), rare)


def test_discrete_laplace_noise_is_a_randomised_response_where_a_person_changes_one_answer_by_one():
    """Its loss is ε or -ε, whatever is drawn, so that the worst case is met by the noise of hdmm."""
    epsilon = mpmath.mpf("0.7")
    decay = mpmath.exp(-epsilon)
    likely = {k: (1 - decay) / (1 + decay) * decay ** abs(k) for k in range(-200, 201)}
    losses = {k: epsilon * (abs(k - 1) - abs(k)) for k in likely}
    assert set(losses.values()) == {epsilon, -epsilon}
    gain = mpmath.fsum(probability for k, probability in likely.items() if losses[k] > 0)
    assert gain == pytest.approx(1 / (1 + float(decay)), rel=1e-12)


def test_a_continuous_laplace_distribution_would_tell_less_than_leaks():
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(5.0)
    laplace = privacy_loss_distribution.from_laplace_mechanism(2.0)
    told = Fraction(gaussian.compose(laplace).get_epsilon_for_delta(1e-6))
    assert not leaks_no_more(["0.5"], Fraction("0.04"), told * Fraction(1001, 1000), MILLIONTH)


@pytest.mark.parametrize("budget", [("1", "1e-6"), ("0.1", "1e-9"), ("10", "1e-15"), ("0.3", "0.001")], ids=str)
def test_gaussian_releases_leak_exactly_what_their_noise_was_made_for(budget: tuple[str, str]):
    total = Budget(*budget)
    mu_squared = mu_squared_of(total)
    assert mu_squared is not None
    quarter = Budget(rho=mu_squared / 8)
    expected = (Leak("Gaussian", Fraction(budget[0]), total.delta),)
    assert leaks([release(total)], Fraction(budget[1])) == expected
    assert leaks([release(quarter)] * 4, Fraction(budget[1])) == expected


def test_gaussian_releases_with_less_to_tell_apart_than_delta_leak_nothing_else():
    assert gaussian_epsilon(Fraction(1, 10**10), Fraction(1, 1000)) == 0


def test_a_delta_that_allows_everything_leaves_nothing_else():
    assert together(["0.5"], Fraction("0.04"), 1 - Fraction(1, 10**21)) == 0


def test_laplace_releases_leak_the_sum():
    assert leaks([release(Budget("0.1"))] * 10, MILLIONTH) == (Leak("Laplace", Fraction(1)),)


def test_nothing_leaks_nothing():
    assert leaks([], MILLIONTH) == ()


def test_more_releases_leak_more():
    budgets = [Budget("0.2"), Budget(rho="0.01"), Budget("0.1"), Budget(rho="0.005"), Budget("0.2"), Budget("0.05")]
    told = [
        leaks([release(budget) for budget in budgets[:count]], MILLIONTH)[-1].epsilon
        for count in range(2, len(budgets) + 1)
    ]
    assert all(before < after for before, after in pairwise(told))


EXTREMES = {
    "little": (["1e-100"], "1e-99", "1e-6"),
    "much": (["400", "500"], "150000", "1e-6"),
    "a rare failure": (["0.5"], "0.04", "1e-12"),
    "many budgets": ([f"0.{number:03d}" for number in range(1, 60)], "0.04", "1e-6"),
}


@pytest.mark.parametrize(("laplace", "mu_squared", "delta"), EXTREMES.values(), ids=EXTREMES)
def test_where_distributions_do_not_serve_the_sum_is_told(
    laplace: list[str], mu_squared: str, delta: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(leakage, "_by_distributions", None)
    mu, rare = Fraction(mu_squared), Fraction(delta)
    added = sum(map(Fraction, laplace), gaussian_epsilon(mu, rare))
    assert added <= together(laplace, mu, rare) <= added * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize(("delta", "rho"), [("1e-6", "0.005"), ("1e-12", "0.004")])
def test_many_late_laplace_releases_leak_no_more_than_was_granted(tmp_path: Path, delta: str, rho: str):
    ledger = Ledger.create(tmp_path / "b.db", Budget("1", delta), UNIT)
    spend(ledger, Budget("0.3"), Budget(rho=rho))
    tenth = Budget(epsilon_of_laplace((ledger.left().rho or Fraction(0)) / 5))
    spend(ledger, *[tenth] * 10)
    *parts, told = ledger.leaked()
    assert (told.noise, told.delta) == ("both", Fraction(delta))
    assert told.epsilon <= 1 < sum(part.epsilon for part in parts)
    laplace = ["0.3", *[str(float(tenth.epsilon or 0))] * 10]
    assert leaks_no_more(laplace, 2 * Fraction(rho), told.epsilon, Fraction(delta))


def test_the_description_tells_what_leaked(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "b.db", Budget(rho="1"), UNIT)
    condition = "What is leaked at a δ supposes budgets that were not chosen by looking at earlier releases."
    spend(ledger, Budget("0.5"))
    assert "leaked   ε = 0.5 by Laplace noise\n" in ledger.describe()
    assert condition not in ledger.describe()
    spend(ledger, Budget("1", "1e-6"))
    text = ledger.describe()
    assert "leaked   ε = 1 at δ = 0.000001 by Gaussian noise\n" in text
    assert f"leaked   {ledger.leaked()[-1]}\n" in text
    assert str(ledger.leaked()[-1]).endswith(" at δ = 0.000001 all together")
    assert condition in text
