"""All mistakes of a spec at once."""

import pytest

import hdmm
from hdmm.spec.mistakes import load_or_mistakes

GOOD = """schema:
  sex: [F, M]
  age: {min: 0, max: 9}
workload:
  - {name: ages, product: {age: prefix}}
"""


def written(tmp_path, text):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return path


def test_a_spec_without_mistakes_is_read(tmp_path):
    spec = load_or_mistakes(written(tmp_path, GOOD))
    assert isinstance(spec, hdmm.Spec)
    assert [product.name for product in spec.workload.products] == ["ages"]


def test_mistakes_in_several_entries_are_listed_in_the_order_of_their_lines(tmp_path):
    text = (
        GOOD
        + "  - {name: b, product: {agee: prefix}}\n  - {name: c, product: {sex: prefx}}\nprivacy: {nois: laplace}\n"
    )
    mistakes = load_or_mistakes(written(tmp_path, text))
    assert isinstance(mistakes, list)
    assert [mistake.split(": ")[0].rsplit(" ", 1)[1] for mistake in mistakes] == ["6", "7", "8"]
    for mistake, part in zip(
        mistakes, ("did you mean 'age'", "did you mean 'prefix'", "did you mean 'noise'"), strict=True
    ):
        assert part in mistake


def test_attributes_are_mended_before_questions_about_them(tmp_path):
    text = (
        GOOD.replace("{min: 0, max: 9}", "{min: 0, mx: 9}").replace("[F, M]", "[F, F]\n  b: [c]") + "objective: least\n"
    )
    mistakes = load_or_mistakes(written(tmp_path, text))
    assert isinstance(mistakes, list)
    assert [mistake.split(": ")[0].rsplit(" ", 1)[1] for mistake in mistakes] == ["2", "4", "7"]


@pytest.mark.parametrize("text", ["", "schema: 5\nworkload: []\n", "schema: {a: [b]}\n", "a: [\n"])
def test_what_cannot_be_read_on_is_one_mistake(tmp_path, text):
    mistakes = load_or_mistakes(written(tmp_path, text))
    assert isinstance(mistakes, list)
    assert len(mistakes) == 1


def test_many_mistakes_come_to_an_end(tmp_path):
    entries = "".join(f"  - {{name: w{i}, product: {{nothing{i}: prefix}}}}\n" for i in range(50))
    mistakes = load_or_mistakes(written(tmp_path, GOOD + entries))
    assert isinstance(mistakes, list)
    assert len(mistakes) == 20
