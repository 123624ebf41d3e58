"""From data to a spec that reads it: every record of the public file is counted."""

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdmm import Spec
from hdmm.data import count, open_source
from hdmm.errors import DataError, InputError
from hdmm.proposal import Request, columns_of, draft_by_name, draft_by_values, render

TODAY = date(2025, 6, 1)


def request(path, **options):
    return Request(open_source(path), path.name, today=TODAY, **options)


def by_values(path, **options):
    return draft_by_values(request(path, public=True, **options), lambda done: None)[0]


@pytest.fixture
def people(tmp_path):
    rows = ["patient_id,sex,age,wage,note"]
    for at in range(600):
        wage = "" if at % 50 == 0 else f"{(at * 37) % 997 * 13.25:.2f}"
        rows.append(f"{at // 2},{'FM'[at % 2]},{at * 7 % 90},{wage},note {at}")
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "people.csv"


def test_a_spec_of_public_data_counts_every_record(people, tmp_path):
    (tmp_path / "spec.yaml").write_text(render(by_values(people)), encoding="utf-8")
    spec = Spec.load(tmp_path / "spec.yaml")
    tables = count(open_source(people), spec.schema, [(name,) for name in spec.schema])
    assert {int(table.sum()) for table in tables} == {600}


def test_the_spec_says_where_its_domains_came_from(people):
    text = render(by_values(people))
    assert "# A spec made by `hdmm init --public` on 2025-06-01 from people.csv, 600 records." in text
    assert "outside the guarantee" in text


def test_people_with_several_rows_are_the_unit(people):
    assert (by_values(people).unit.rows, by_values(people).unit.id) == (2, "patient_id")


def test_without_public_the_spec_says_that_no_record_was_looked_at(people):
    text = render(draft_by_name(columns_of(request(people)), request(people)))
    assert "no record was looked at" in " ".join(text.replace("#", "").split())


@pytest.mark.parametrize("secret", ["Zx9QkWv", "8675309"])
def test_without_public_no_record_changes_the_spec(tmp_path, secret):
    path = tmp_path / "t.csv"
    texts = []
    for record in ("F,1,2", f"{secret},{secret},{secret}", "", '"' * 99):
        path.write_text(f"sex,age,state\n{record}\n")
        texts.append(render(draft_by_name(columns_of(request(path)), request(path))))
    assert len(set(texts)) == 1


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("low,sex", "tables of answers have a column of this name"),
        ("a,a,sex", "several columns of this name"),
        (",sex", "its header is empty"),
        ('"a ""b""",sex', "without quotes"),
    ],
)
def test_a_name_that_no_attribute_can_have_is_left_out(tmp_path, header, reason):
    (tmp_path / "t.csv").write_text(
        f"{header}\n" + "\n".join(["1,F", "2,M"] * 5).replace("1,", "1," * header.count(",")) + "\n"
    )
    draft = draft_by_name(columns_of(request(tmp_path / "t.csv")), request(tmp_path / "t.csv"))
    assert reason in draft.left_out[0].reason


def test_a_code_list_goes_before_values(tmp_path, people):
    (tmp_path / "sex.csv").write_text("code,label\nF,Female\nX,Other\n")
    (attribute,) = [a for a in by_values(people, codes=[str(tmp_path / "sex.csv")]).attributes if a.name == "sex"]
    assert (attribute.domain["values"], attribute.domain["other"]) == (["F", "X"], True)


def test_a_level_gets_a_name_of_its_own(tmp_path):
    (tmp_path / "county.csv").write_text("code,label,sex\n1,a,x\n2,b,y\n")
    (tmp_path / "t.csv").write_text("county,sex\n1,F\n")
    asked = request(tmp_path / "t.csv", codes=[str(tmp_path / "county.csv")])
    draft = draft_by_name(columns_of(asked), asked)
    assert list(draft.attributes[0].domain["levels"]) == ["county sex"]


def test_a_value_called_missing_needs_no_cell(tmp_path):
    (tmp_path / "x.csv").write_text("code\na\nmissing\n")
    asked = Request(None, None, codes=[str(tmp_path / "x.csv")], today=TODAY)
    assert draft_by_name(columns_of(asked), asked).attributes[0].domain == {"values": ["a", "missing"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x,2\n2,y,3\n", "one field more than the header, as R writes row names"),
        ("a,b\n1\n2\n", "check the delimiter"),
        ("a,b\n", "no records to look at"),
    ],
)
def test_a_file_without_records_is_refused(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        by_values(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"x,y\ncaf\xe9,1\nb,2\n", "--encoding latin-1"), (b"x,y\n1,2\n3,4\n5\n", "another number of fields")],
)
def test_a_file_with_odd_lines_is_mentioned(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    _, warnings = draft_by_values(request(tmp_path / "t.csv", public=True), lambda done: None)
    assert message in warnings[0]


def test_public_needs_data():
    with pytest.raises(InputError, match="no data to look at"):
        draft_by_values(Request(None, None, public=True), lambda done: None)


def test_progress_is_reported(people):
    reported: list[float] = []
    draft_by_values(request(people, public=True), reported.append)
    assert reported[-1] == 1.0


plain = st.text("abcXYZ 0123456789+-.<>_/é", min_size=1, max_size=6)
integers = st.integers(-500, 500)
dates = st.dates(date(1970, 1, 1), date(2030, 1, 1))
KINDS = {
    "texts": plain,
    "words": st.sampled_from(["Male", "male", "MALE", "F", "female", "M", "New York", "New_York"]),
    "integers": integers.map(str),
    "floats": integers.map(lambda number: f"{number}.0"),
    "codes": st.integers(0, 40).map(lambda number: f"{number:03}"),
    "reals": st.floats(-1e6, 1e6).map(lambda number: f"{number:.3f}"),
    "amounts": st.integers(0, 10**7).map(lambda number: f"${number:,}"),
    "european": st.integers(0, 10**7).map(
        lambda number: f"{number:,},5".replace(",", ".", number >= 1000).replace("..", ".")
    ),
    "booleans": st.sampled_from(["yes", "no", "TRUE", "0"]),
    "iso": dates.map(str),
    "german": dates.map(lambda day: day.strftime("%d.%m.%Y")),
    "american": dates.map(lambda day: f"{day.month}/{day.day}/{day.year}"),
    "short": dates.map(lambda day: day.strftime("%d-%b-%y")),
    "compact": dates.map(lambda day: day.strftime("%Y%m%d")),
    "stamps": st.datetimes(datetime(1980, 1, 1), datetime(2030, 1, 1)).map(
        lambda moment: f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    ),
    "times": st.times().map(lambda moment: f"{moment:%H:%M}"),
    "clock": st.times().map(lambda moment: f"{moment:%I:%M %p}"),
}
gaps = st.sampled_from(["NA", "", "-9", "?", "null", "oops"])


@st.composite
def columns(draw):
    """A column of sixty records, of which a few are missing or wrong."""
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    texts = draw(st.lists(kind, min_size=1, max_size=60))
    texts = (texts * 60)[: draw(st.integers(50, 60))]
    return texts + draw(st.lists(gaps, min_size=60 - len(texts), max_size=60 - len(texts)))


@given(st.lists(columns(), min_size=1, max_size=4))
def test_a_proposed_domain_holds_every_value(tmp_path_factory, columns):
    directory = tmp_path_factory.mktemp("proposed")
    path = directory / "t.csv"
    header = [f"c{at}" for at in range(len(columns))]
    records = [",".join(f'"{text}"' for text in record) for record in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join(header), *records]) + "\n", encoding="utf-8")
    draft = by_values(path)
    if not draft.attributes:
        return
    (directory / "spec.yaml").write_text(render(draft), encoding="utf-8")
    spec = Spec.load(directory / "spec.yaml")
    tables = count(open_source(path), spec.schema, [(name,) for name in spec.schema])
    assert {int(table.sum()) for table in tables} == {60}


HEADERLESS = {
    "numbers and words": "39, State-gov, Male, 2174\n50, Private, Male, 0\n38, State-gov, Female, 0\n",
    "dates and words": "2021-03-01,F,NY\n2021-03-02,M,NY\n2021-03-05,F,CA\n",
    "words": "F,NY\nM,NY\nF,NY\n",
}


@pytest.mark.parametrize("text", HEADERLESS.values(), ids=HEADERLESS)
def test_a_first_line_that_is_a_record_is_no_header(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match="the first line seems to be a record; write a header"):
        by_values(tmp_path / "t.csv")


def test_a_name_that_is_also_a_value_is_still_a_name(tmp_path):
    (tmp_path / "t.csv").write_text("male,smoker,age\nmale,no,3\nfemale,yes,4\n")
    assert len(by_values(tmp_path / "t.csv").attributes) == 3


DATES = {
    "which is first is not known": ("01/02/2021 03/04/2021", True),
    "a month of 13 tells": ("01/02/2021 03/13/2021", False),
    "a year first tells": ("2021/02/01 2021/04/03", False),
}


@pytest.mark.parametrize(("texts", "unclear"), DATES.values(), ids=DATES)
def test_an_order_of_day_and_month_that_is_a_guess_is_called_one(tmp_path, texts, unclear):
    (tmp_path / "t.csv").write_text("day\n" + "\n".join(texts.split() * 20) + "\n")
    text = render(by_values(tmp_path / "t.csv"))
    assert ("may also be written as %d/%m/%Y" in text) is unclear


@pytest.mark.parametrize("word", ["<NA>", "NaT", "\\N", "(null)", "#NULL!"])
def test_what_programs_write_for_a_missing_value_is_one(tmp_path, word):
    (tmp_path / "t.csv").write_text("age\n" + "".join(f"{at % 60}\n{word}\n" for at in range(200)))
    (proposed,) = by_values(tmp_path / "t.csv").attributes
    assert proposed.domain["missing"] == [word]
