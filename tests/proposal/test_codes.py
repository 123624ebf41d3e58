"""Code lists of every format, good and bad."""

import json

import pytest

from hdmm.errors import InputError
from hdmm.proposal.attribute import LeftOut
from hdmm.proposal.codes import read_codes
from hdmm.proposal.codes.csvw import _strptime

COLUMNS = ["county", "sex", "age", "wage", "born"]


@pytest.fixture
def codes(tmp_path):
    def read(content: str | bytes | dict, name: str = "county.csv", column: str | None = None):
        path = tmp_path / name
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_codes([str(path) if column is None else f"{column}={path}"], COLUMNS)

    return read


def schema(**field):
    return {"fields": [{"name": "age", **field}]}


def csvw(**column):
    return {"@context": "http://www.w3.org/ns/csvw", "tableSchema": {"columns": [{"name": "age", **column}]}}


def test_a_list_of_codes_has_values_and_labels(codes):
    domain = codes("code,label\n001,Alameda\n041,Marin\n")["county"].domain
    assert (domain["values"], domain["labels"]) == (["001", "041"], {"001": "Alameda", "041": "Marin"})


def test_a_list_of_codes_needs_no_labels(codes):
    assert codes("code\na\nb\n")["county"].domain == {"values": ["a", "b"], "missing": True}


def test_parents_that_are_no_codes_are_groups(codes):
    domain = codes("code,label,state\n001,Alameda,CA\n047,Kings,NY\n041,Marin,CA\n")["county"].domain
    assert domain["levels"] == {"state": {"CA": ["001", "041"], "NY": ["047"]}}


def test_parents_that_are_codes_are_groups_with_their_labels(codes):
    text = "code,label,parent\n1,Farming,\n11,Crops,1\n111,Oil,11\n112,Vegetables,11\n12,Animals,1\n2,Mining,\n"
    domain = codes(text)["county"].domain
    assert domain["values"] == ["111", "112", "12", "2"]
    assert domain["levels"] == {
        "county level 2": {"Crops": ["111", "112"], "Farming": ["12"], "Mining": ["2"]},
        "county level 1": {"Farming": ["111", "112", "12"], "Mining": ["2"]},
    }


def test_records_with_the_code_of_a_group_count_as_other(codes):
    assert codes("code,label,parent\n1,Farming,\n11,Crops,1\n")["county"].domain["other"] is True


def test_a_value_called_like_an_earlier_group_stays_a_value(codes):
    domain = codes("code,label,parent\na,,\nb,,x\nx,,y\n")["county"].domain
    assert domain["levels"]["county level 1"]["a"] == [["a", "a"]]


def test_columns_may_stand_in_any_order(codes):
    assert codes("Name;Code\nAlameda;001\n")["county"].domain["labels"] == {"001": "Alameda"}


def test_a_list_belongs_to_the_column_of_its_name(codes):
    assert list(codes("code\na\nb\n", "Sex.csv")) == ["sex"]


def test_a_list_belongs_to_the_column_that_is_named(codes):
    assert list(codes("code\na\nb\n", "list.csv", "sex")) == ["sex"]


def test_a_table_schema_has_categories_with_labels(codes):
    categories = [{"value": 1, "label": "Male"}, {"value": 2, "label": "Female"}]
    domain = codes(schema(type="integer", categories=categories), "s.json")["age"].domain
    assert domain == {"values": ["1", "2"], "labels": {"1": "Male", "2": "Female"}, "missing": True}


@pytest.mark.parametrize(
    ("field", "domain"),
    [
        ({"type": "string", "constraints": {"enum": ["F", "M"], "required": True}}, {"values": ["F", "M"]}),
        ({"type": "integer", "constraints": {"minimum": 0, "maximum": "114"}}, {"min": 0, "max": 114, "missing": True}),
        ({"type": "boolean"}, {"boolean": True, "missing": True}),
        (
            {"type": "boolean", "trueValues": ["Y", "Yes"], "falseValues": ["N"]},
            {"values": ["N", "Y"], "aliases": {"Y": ["Yes"]}, "missing": True},
        ),
        ({"type": "time"}, {"time": ["00:00", "24:00"], "by": "hour", "missing": True}),
        (
            {"type": "date", "format": "%d/%m/%Y", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
            {"date": ["2020-01-01", "2020-12-31"], "by": "day", "format": "%d/%m/%Y", "missing": True},
        ),
        (
            {"type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "missingValues": ["", "NA", "-9"]},
            {"min": 0, "max": 9, "missing": ["NA", "-9"]},
        ),
    ],
)
def test_fields_of_a_table_schema_become_domains(codes, field, domain):
    assert codes(schema(**field), "s.json")["age"].domain == domain


def test_numbers_of_a_table_schema_become_bins(codes):
    field = {"type": "number", "groupChar": ",", "constraints": {"minimum": 0, "maximum": 250000}}
    domain = codes(schema(**field), "s.json")["age"].domain
    assert (len(domain["bins"]), domain["closed"], domain["thousands"]) == (11, True, ",")


def test_a_field_without_limits_is_left_out(codes):
    assert isinstance(codes(schema(type="number"), "s.json")["age"], LeftOut)


def test_missing_values_of_the_whole_schema_count(codes):
    data = {"fields": [{"name": "age", "type": "boolean"}], "missingValues": ["", "NA"]}
    assert codes(data, "s.json")["age"].domain["missing"] == ["NA"]


def test_a_data_package_has_schemas(codes):
    package = {"resources": [{"name": "people", "schema": schema(type="boolean")}]}
    assert list(codes(package, "datapackage.json")) == ["age"]


@pytest.mark.parametrize(
    ("column", "domain"),
    [
        ({"datatype": {"base": "integer", "minimum": 0, "maximum": "120"}}, {"min": 0, "max": 120, "missing": True}),
        ({"datatype": "boolean", "required": True}, {"boolean": True}),
        ({"datatype": {"base": "boolean", "format": "Y|N"}, "null": ["-"]}, {"values": ["N", "Y"], "missing": ["-"]}),
        (
            {
                "datatype": {
                    "base": "date",
                    "format": "dd/MM/yyyy",
                    "minInclusive": "2020-01-01",
                    "maximum": "2029-12-31",
                }
            },
            {"date": ["2020-01-01", "2029-12-31"], "by": "month", "format": "%d/%m/%Y", "missing": True},
        ),
    ],
)
def test_columns_of_csvw_become_domains(codes, column, domain):
    assert codes(csvw(**column), "m.json")["age"].domain == domain


def test_null_of_csvw_is_inherited(codes):
    assert codes({**csvw(datatype="boolean"), "null": "NA"}, "m.json")["age"].domain["missing"] == ["NA"]


def test_a_title_of_csvw_is_the_name_in_the_header(codes):
    column = {"name": "x1", "titles": {"en": ["Wage", "wage"]}, "datatype": "boolean"}
    assert list(codes({"tableSchema": {"columns": [column]}}, "m.json")) == ["wage"]


@pytest.mark.parametrize(("pattern", "format"), [("yyyy-MM-dd", None), ("M/d/yyyy", "%m/%d/%Y"), ("HH:mm", None)])
def test_patterns_of_csvw_become_formats(pattern, format):
    assert _strptime(pattern) == format


BAD = {
    "empty": ("", "c.csv", "is empty"),
    "no codes": ("code,label\n", "c.csv", "holds no codes"),
    "duplicate": ("code\na\na\n", "c.csv", "line 3: the code 'a' stands twice"),
    "circle": ("code,label,parent\na,,b\nb,,a\nc,,\n", "c.csv", "go round in a circle"),
    "chain": ("code,label,parent\n" + "".join(f"{at},,{at + 1}\n" for at in range(30)), "c.csv", "more than 12 groups"),
    "empty code": ("code,label\n,x\n", "c.csv", "line 2: the code is empty"),
    "latin": (b"code\ncaf\xe9\n", "c.csv", "not UTF-8"),
    "long": ("code\n" + "".join(f"{at}\n" for at in range(60_000)), "c.csv", "more than 50,000 codes"),
    "longer": ("code\n" + "1\n" * 3_000_000, "c.csv", "lines; a code list is shorter"),
    "huge": (b"x" * (33 << 20), "c.csv", "at most 32 MiB"),
    "no json": ("hello", "c.json", "is not JSON"),
    "nan": ('{"fields": [{"name": "age", "minimum": NaN}]}', "c.json", "is not JSON"),
    "deep": ("[" * 200_000 + "]" * 200_000, "c.json", "nested too deeply"),
    "wide": ("[" + "{}," * 4_000_000 + "1]", "c.json", "too many values"),
    "other json": ('{"a": 1}', "c.json", "is neither a Table Schema"),
    "nameless": ('{"fields": [1]}', "c.json", 'a field has no "name"'),
    "field twice": ('{"fields": [{"name": "age"}, {"name": "age"}]}', "c.json", "stands twice"),
    "value twice": ({"fields": [{"name": "age", "constraints": {"enum": ["a", "a"]}}]}, "c.json", "stands twice"),
    "elsewhere": ('{"resources": [{"schema": "s.json"}]}', "c.json", "in another file"),
    "csvw elsewhere": ('{"tables": [{"tableSchema": "s.json"}]}', "c.json", "in another file"),
    "untitled": ('{"tableSchema": {"columns": [{}]}}', "c.json", "neither a name nor a title"),
    "foreign": ({"fields": [{"name": "x"}]}, "c.json", "describes no column of the data"),
}


@pytest.mark.parametrize(("content", "name", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_with_a_reason(codes, content, name, message):
    with pytest.raises(InputError, match=message):
        codes(content, name, "county" if name.endswith(".csv") else None)


ODD = [
    {"type": ["x"], "constraints": [1], "categories": {"a": 1}, "missingValues": 5, "format": 7},
    {"type": "integer", "constraints": {"minimum": 1e300, "maximum": {}}},
    {"type": "date", "constraints": {"minimum": "2020-13-01", "maximum": []}},
    {"type": "number", "constraints": {"minimum": 5, "maximum": 1}},
]


@pytest.mark.parametrize("field", ODD, ids=str)
def test_a_field_that_makes_no_sense_is_left_out(codes, field):
    assert isinstance(codes(schema(**field), "s.json")["age"], LeftOut)


@pytest.mark.parametrize("data", [{"base": ["a"], "format": [1]}, 5, None, {"base": None}], ids=str)
def test_a_column_of_csvw_that_makes_no_sense_is_left_out(codes, data):
    assert isinstance(codes(csvw(datatype=data, null={"a": 1}), "m.json")["age"], LeftOut)


def test_a_file_that_fits_no_column_is_refused(codes):
    with pytest.raises(InputError, match="write --codes COLUMN="):
        codes("code\na\n", "list.csv")


def test_an_unknown_column_is_refused(codes):
    with pytest.raises(InputError, match="did you mean 'county'"):
        codes("code\na\n", "list.csv", "conty")


def test_two_lists_for_one_column_are_refused(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("code\na\n")
    with pytest.raises(InputError, match="another code list for column 'sex'"):
        read_codes([f"sex={tmp_path / 'a.csv'}", f"sex={tmp_path / 'b.csv'}"], COLUMNS)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_codes([f"sex={tmp_path / 'none.csv'}"], COLUMNS)
