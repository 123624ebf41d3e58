"""Questions and answers."""

from datetime import date

import pytest

from hdmm.data.look import Column
from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.interview import Interview
from hdmm.proposal.names import guess

COLUMNS = [Column("sex"), Column("state"), Column("patient")]


def interview(answers, columns=COLUMNS, proposals=None):
    """The draft after some answers (by the beginning of the question), and everything that was said."""
    said: list[str] = []
    left = [list(answer) for answer in answers]

    def ask(question: str, default: str) -> str:
        said.append(question)
        for at, (start, text) in enumerate(left):
            if question.strip().startswith(start):
                del left[at]
                return text
        return default

    guessed = proposals or [guess(column, date(2025, 1, 1)) for column in columns]
    draft = Interview(ask, said.append).draft(guessed, [])
    assert not left, f"not asked: {left}"
    return draft, said


def test_every_question_has_a_default():
    draft, _ = interview([])
    assert [attribute.name for attribute in draft.attributes] == ["sex"]


@pytest.mark.parametrize(
    ("kind", "answers", "domain"),
    [
        ("v", [("Values", "CA, NY")], {"values": ["CA", "NY"]}),
        ("i", [("Least", "-1, 5")], {"min": -1, "max": 5}),
        ("b", [("Edges", "0, 2.5, 1e1")], {"bins": ["0", "2.5", "10"]}),
        ("t", [], {"boolean": True}),
        (
            "d",
            [("First", "2020-01-01, 2021-12-31"), ("Counted", "year")],
            {"date": ["2020-01-01", "2021-12-31"], "by": "year"},
        ),
        ("h", [], {"time": ["00:00", "24:00"], "by": "hour"}),
    ],
)
def test_answers_make_a_domain(kind, answers, domain):
    draft, _ = interview([("What is it", kind), *answers, ("Count empty", "n")], [Column("x")])
    assert draft.attributes[0].domain == domain


def test_other_texts_count_by_default():
    draft, _ = interview([("What is it", "t")], [Column("x")])
    assert draft.attributes[0].domain == {"boolean": True, "other": True, "missing": True}


def test_a_column_can_be_skipped():
    draft, _ = interview([("What is it", "s"), ("What is it", "t")], COLUMNS[:2])
    assert draft.left_out == [LeftOut("sex", "you left it out")]


@pytest.mark.parametrize(
    ("kind", "question", "wrong", "right"),
    [
        ("v", "Values", "a, a", "a, b"),
        ("v", "Values", "a, other", "a, b"),
        ("i", "Least", "5, 1", "1, 5"),
        ("i", "Least", "a", "1, 5"),
        ("b", "Edges", "3, 2", "2, 3"),
        ("b", "Edges", "x, 2", "2, 3"),
        ("d", "First", "2021-01-01, 2020-01-01", "2020-01-01, 2021-01-01"),
        ("d", "First", "soon", "2020-01-01, 2021-01-01"),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(kind, question, wrong, right):
    _, said = interview([("What is it", kind), (question, wrong), (question, right)], [Column("x")])
    assert sum(text.strip().startswith(question) for text in said) == 2


def test_a_question_mark_explains_every_question():
    _, said = interview([])
    questions = [
        text for text in said if text.rstrip().endswith(("?", ")")) or ", separated" in text or text == "Noise"
    ]
    answers = [(text.strip()[:20], "?") for text in questions]
    _, explained = interview(answers)
    assert len(explained) == len(said) + 2 * len(answers)


def test_what_a_code_list_says_is_kept():
    known = Attribute("x", {"values": ["1", "2"], "labels": {"1": "a", "2": "b"}, "missing": ["NA"]}, 3)
    draft, _ = interview([], proposals=[known])
    assert draft.attributes[0].domain == {**known.domain, "other": True}


def test_labels_go_if_the_values_change():
    known = Attribute("x", {"values": ["1", "2"], "labels": {"1": "a", "2": "b"}}, 2)
    draft, _ = interview([("Values", "1, 3")], proposals=[known])
    assert "labels" not in draft.attributes[0].domain


def test_long_lists_are_not_typed_again():
    known = Attribute("x", {"values": [str(at) for at in range(100)]}, 100)
    draft, said = interview([], proposals=[known])
    assert len(draft.attributes[0].domain["values"]) == 100
    assert any("Use the 100 known values" in text for text in said)


@pytest.mark.parametrize(
    ("answer", "entry"),
    [
        ("p", {"name": "tables", "marginals": {"up_to": 2}}),
        ("o", {"name": "tables", "marginals": {"up_to": 1}}),
        ("t", {"name": "records"}),
    ],
)
def test_tables_are_chosen(answer, entry):
    draft, _ = interview([("Which tables", answer), ("What is it", "v"), ("Values", "F, M"), ("What is it", "t")])
    assert draft.questions[0].entry == entry


def test_tables_of_ones_own_are_added():
    draft, _ = interview([("A table of your own", "sex"), ("A table of your own", "age"), ("A table of your own", "")])
    assert draft.questions[-1].entry == {"name": "sex", "product": {"sex": "identity"}}


def test_the_noise_is_chosen():
    assert interview([("Noise", "gaussian")])[0].noise == "gaussian"


def test_a_person_with_several_rows_is_identified():
    draft, _ = interview([("Can a person", "y"), ("Which column", "patient"), ("How many", "4")])
    assert (draft.unit.rows, draft.unit.id) == (4, "patient")


def test_a_column_that_is_published_identifies_nobody():
    _, said = interview([("Can a person", "y"), ("Which column", "sex"), ("Which column", "patient")])
    assert any("'sex' is no column that was left out" in text for text in said)


def test_by_default_a_row_is_protected():
    assert (interview([])[0].unit.rows, interview([])[0].unit.id) == (1, None)
