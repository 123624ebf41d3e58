"""Messages write arguments as the user does."""

import pytest

import hdmm
from hdmm.errors import InputError, closest, nearest
from hdmm.memory.limit import memory_size
from hdmm.spec.reader import Mistake
from hdmm.syntax import argument, either, example, given, messages_for

EXAMPLES = [
    (lambda: argument("time_limit"), "time_limit", "--time-limit"),
    (lambda: given("delta", "'2'"), "delta='2'", "--delta '2'"),
    (lambda: given("id", "'x'", option="id-column"), "id='x'", "--id-column 'x'"),
    (lambda: example("memory", "8GB"), 'memory="8GB"', "--memory 8GB"),
    (lambda: example("delimiter", ";"), 'delimiter=";"', "--delimiter ';'"),
    (lambda: example("level", 0.95), "level=0.95", "--level 0.95"),
    (lambda: example("exact", True), "exact=True", "--exact"),
    (lambda: example("ledger", None), "ledger=None", "--no-ledger"),
    (lambda: either(python="x", command="y"), "x", "y"),
]


@pytest.mark.parametrize(("write", "python", "command"), EXAMPLES)
def test_an_argument_is_written_in_python_or_as_an_option(write, python: str, command: str):
    assert write() == python
    with messages_for("command line"):
        assert write() == command
    assert write() == python


def test_in_a_spec_its_own_keys_are_written_as_there_and_others_as_outside():
    with messages_for("command line"), messages_for("spec"):
        assert (given("rows", "0"), example("rows", 1)) == ("rows: 0", "rows: 1")
        assert example("memory", "8GB") == "--memory 8GB"
    with messages_for("spec"):
        assert example("memory", "8GB") == 'memory="8GB"'


def test_a_message_is_that_of_python_outside_of_the_command_line():
    for syntax, message in (("python", 'memory="8GB"'), ("command line", "--memory 8GB")):
        with messages_for(syntax), pytest.raises(InputError, match=message):  # type: ignore[arg-type]
            memory_size("lots")


def test_a_unit_in_a_spec_is_refused_as_it_is_written_there(tmp_path):
    (tmp_path / "spec.yaml").write_text("schema: {a: [x]}\nworkload: [{name: a}]\nprivacy: {unit: {rows: 0}}\n")
    with pytest.raises(hdmm.errors.SpecError, match=r"line 3: privacy\.unit: rows: 0: .*, such as rows: 1"):
        hdmm.Spec.load(tmp_path / "spec.yaml")
    with pytest.raises(hdmm.errors.BudgetError, match=r"rows=0: .*, such as rows=1"):
        hdmm.Unit(rows=0)
    assert issubclass(Mistake, hdmm.errors.SpecError)


WORDS = {
    "another case": ("male", ["Female", "Male"], "Male"),
    "all capitals": ("MALE", ["Female", "Male"], "Male"),
    "the same case first": ("male", ["Male", "MALE"], "Male"),
    "dashes": ("marital_status", ["marital", "marital-status"], "marital-status"),
    "blanks": ("New York", ["Newark", "newyork"], "newyork"),
    "a typo in another case": ("FEMLAE", ["Male", "Female"], "Female"),
    "nothing alike": ("x", ["Female", "Male"], None),
    "signs alone": ("--", ["__", "Male"], None),
}


@pytest.mark.parametrize(("word", "choices", "expected"), WORDS.values(), ids=WORDS)
def test_the_closest_word_differs_least_in_case_and_signs(word: str, choices: list[str], expected: str | None):
    assert closest(word, choices) == expected


def test_a_hint_names_the_closest_word_or_all():
    assert nearest("male", ["Female", "Male"]) == "; did you mean 'Male'?"
    assert nearest("x", ["Female", "Male"]) == "; known: 'Female', 'Male'"
