"""Whatever steps are taken, in any order, a ledger ends as a model of a few lines does."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from hdmm.errors import BudgetError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from tests.privacy.ledger.steps import OTHER, PLAN, RELEASE, UNIT, in_memory


class Model:
    """What a ledger of exact amounts must do, in a few lines."""

    def __init__(self, total: Fraction) -> None:
        self.left = total
        self.states: dict[str, str] = {}
        self.releases: dict[str, str] = {}

    def reserve(self, id: str, cost: Fraction) -> bool:
        if self.states.get(id) in ("reserved", "published") or cost > self.left:
            return False
        self.left -= cost
        self.states[id] = "reserved"
        return True

    def grant(self, more: Fraction) -> bool:
        self.left += more
        return True

    def publish(self, id: str, digest: str) -> bool:
        if self.states.get(id) == "published":
            return self.releases[id] == digest
        if self.states.get(id) != "reserved":
            return False
        self.states[id], self.releases[id] = "published", digest
        return True

    def abandon(self, id: str) -> bool:
        if self.states.get(id) != "reserved":
            return False
        self.states[id] = "abandoned"
        return True


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "publish", "abandon", "grant"]),
        st.sampled_from("abc"),
        st.sampled_from(["0.1", "0.25", "0.3", "1e-17"]),
        st.sampled_from([RELEASE, OTHER]),
    ),
    max_size=16,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.booleans())
def test_any_steps_end_as_in_the_model(steps: list[tuple[str, str, str, str]], of_rho: bool):
    model = Model(Fraction(1))
    with in_memory() as directory:
        ledger = Ledger.create(directory / "b.db", Budget(rho=1) if of_rho else Budget(1), UNIT)
        for step, id, cost, digest in steps:
            budget = Budget(rho=cost) if of_rho else Budget(cost)
            try:
                if step == "reserve":
                    expected = model.reserve(id, Fraction(cost))
                    ledger.reserve(id, budget, UNIT, PLAN)
                elif step == "grant":
                    expected = model.grant(Fraction(cost))
                    ledger.grant(budget)
                elif step == "publish":
                    expected = model.publish(id, digest)
                    ledger.publish(id, digest)
                else:
                    expected = model.abandon(id)
                    ledger.abandon(id)
                happened = True
            except BudgetError:
                happened = False
            assert happened == expected
        assert {entry.id: entry.state for entry in ledger.entries()} == model.states
        left = ledger.left().rho if of_rho else ledger.left().epsilon
        assert left == model.left
        assert ledger.verify().left == ledger.left()
