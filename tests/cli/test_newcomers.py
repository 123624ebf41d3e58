"""The mistakes of a first attempt: each is refused with what to do next, in the words of the command line."""

import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from hdmm import Budget, Ledger, Unit
from tests.cli.workplace import RELEASE, SECRETS, SPEC, refused

ASK = [*RELEASE, "--epsilon", "1"]
EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600
LINE = "sex,age,state"

FILES: dict[str, tuple[str, bytes, str]] = {
    "semicolons": ("p.csv", b"sex;age;state\n", "its fields are separated by ';': state --delimiter ';'"),
    "tabs": ("p.csv", b"sex\tage\tstate\n", "its fields are separated by tabs: state --delimiter tab"),
    "bars": ("p.csv", b"sex|age|state|x\n", "its fields are separated by '|': state --delimiter '|'"),
    "capitals": (
        "p.csv",
        b"Sex,AGE,State\n",
        "its columns are 'Sex', 'AGE', 'State'; 'Sex' may be 'sex'; 'AGE' may be",
    ),
    "a typo": ("p.csv", b"sex,agee,state\n", "its columns are 'sex', 'agee', 'state'; 'agee' may be 'age'."),
    "another name": (
        "p.csv",
        b"gender,age,state\n",
        "there is no column for 'sex'; its columns are 'gender', 'age', 'st",
    ),
    "one name alike": ("p.csv", b"Sex,x,y\n", "there is 'Sex' instead"),
    "Latin-1": ("p.csv", b"sex,\xe2ge,state\n", "is not UTF-8: state its encoding, for example --encoding latin-1"),
    "UTF-16": ("p.csv", LINE.encode("utf-16"), "the file is UTF-16: state --encoding utf-16"),
    "UTF-16 without a mark": ("p.csv", LINE.encode("utf-16-le"), "the file is UTF-16: state --encoding utf-16"),
    "an empty file": ("p.csv", b"", "the file is empty"),
    "a blank line": ("p.csv", b"\nsex,age,state\n", "its first line is empty; the header must be the first line"),
    "a title": ("p.csv", b"People of 2020\nsex,age,state\n", "If the file has no header, or lines above it"),
    "Excel": ("p.xlsx", b"PK\x03\x04", "it is a spreadsheet, not text; save the sheet as CSV (UTF-8)"),
    "old Excel": ("p.dat", EXCEL, "it is a spreadsheet, not text; save the sheet as CSV (UTF-8)"),
    "zip": ("p.zip", b"PK\x03\x04", "it is compressed; unpack it first"),
    "compressed": ("p.dat", gzip.compress(b"sex,age,state\n"), "it is compressed; give it a name that ends in .csv.gz"),
    "SPSS": ("p.sav", b"$FL2@(#) SPSS", "it is a file of a statistics program; export it as CSV"),
    "R": ("p.rds", b"X", "it is a file of R; write the data with write.csv(data, file, row.names = FALSE)"),
    "Arrow": ("p.dat", b"ARROW1\0\0", "it is an Arrow file; write it as Parquet"),
    "Parquet by another name": ("p.csv", b"PAR1\0", "it is a Parquet file; give it a name that ends in .parquet"),
    "text called Parquet": ("p.parquet", b"sex,age,state\n", "is not a Parquet file, whatever its name says"),
    "JSON": ("p.json", b"[\n", "it is JSON; write the records as CSV or Parquet"),
    "JSON by another name": (
        "p.txt",
        json.dumps([{"sex": "F", "age": 1, "state": "CA"}]).encode(),
        "it is JSON; write the records as CSV or Parquet",
    ),
}


@pytest.mark.parametrize(("name", "content", "message"), FILES.values(), ids=FILES)
def test_a_file_that_is_not_as_expected_is_explained(run, planned, workplace: Path, name: str, content: bytes, message):
    (workplace / name).write_bytes(content)
    refused(run, workplace, ["release", "spec.plan", name, *ASK[3:]], message)


RECORDS = {
    "no field is a name": ",".join(SECRETS),
    "one field is a name": f"sex,{','.join(SECRETS)}",
    "another delimiter": ";".join(SECRETS),
    "bad bytes": ",".join(SECRETS) + ",\udcff",
    "in braces": '{"' + '", "'.join(SECRETS) + '"}',
}


@pytest.mark.parametrize("line", RECORDS.values(), ids=RECORDS)
def test_a_first_line_that_may_be_a_record_is_not_shown(run, planned, workplace: Path, line: str):
    (workplace / "people.csv").write_bytes(line.encode(errors="surrogateescape") + b"\nF,1,CA\n")
    done = refused(run, workplace, ASK, "there is no column for")
    assert [secret for secret in SECRETS if secret in done.out + done.err] == []


def test_what_is_said_of_a_first_record_depends_on_names_alone(run, planned, workplace: Path):
    explanations = set()
    for line in (b"F,1,CA", b"Zx9;2", b"\xff,\xfe", b'"', b"{", b"sex", b"age,1,2", b"1\t2\t3", b"[1, 2]"):
        (workplace / "people.csv").write_bytes(line + b"\nF,1,CA\n")
        explanations.add(run(*ASK).err.partition("; ")[2])
    assert len(explanations) == 1


SPECS: dict[str, tuple[str, str]] = {
    "epsilon in privacy": (
        SPEC.replace("noise: laplace", "epsilon: 1"),
        "privacy.epsilon: unknown key 'epsilon'; the bu",
    ),
    "epsilon": (
        SPEC + "epsilon: 1\n",
        "the budget is no part of a spec: give it to hdmm show and hdmm release, as --eps",
    ),
    "a budget": (SPEC + "budget: {epsilon: 1}\n", "the budget is no part of a spec"),
    "delta in the unit": (SPEC.replace("noise: laplace", "unit: {delta: 1}"), "the budget is no part of a spec"),
    "rho of a table": (SPEC.replace("name: states", "rho: 1, name: states"), "the budget is no part of a spec"),
    "a ledger": (SPEC + "ledger: budget.db\n", "give it to hdmm release, as --ledger budget.db"),
    "rows at the top": (SPEC + "rows: 1\n", "write privacy: {unit: {rows: 1, id: patient}}"),
    "an attribute beside the name": (
        SPEC.replace("product: {state: identity}", "state: identity"),
        "'state' is an attribute; write product: {state: identity}",
    ),
    "group_by": (
        SPEC.replace("product: {state: identity}", "group_by: [state]"),
        "write product: {sex: identity}, or sql",
    ),
    "a mapping of tables": (SPEC.split("workload")[0] + "workload: {a: b}\n", "write each table after a dash: - {name"),
    "a list of attributes": (SPEC.split("workload")[0] + "workload: [sex]\n", "write each table after a dash: - {name"),
    "no workload": (SPEC.split("workload")[0], "the key 'workload' is missing; write the sections `schema:`"),
    "a type": (
        SPEC.replace("{min: 0, max: 9}", "int"),
        "'int' does not say which values there are; write {min: 0, max",
    ),
    "a type as a key": (SPEC.replace("{min: 0, ", "{type: int, min: 0, "), "is declared by its values, not by a type"),
    "a range": (SPEC.replace("{min: 0, max: 9}", "0-9"), "write {min: 0, max: 9} for integers"),
    "Boolean": (SPEC.replace("[F, M]", "Boolean"), "did you mean 'boolean'?"),
    "a tab": (SPEC.replace("  sex", "\tsex"), "a tab cannot stand there: indent with spaces"),
    "an open quote": (SPEC.replace("[F, M]", '["F, M]'), "a quote or a bracket that was opened before is not closed"),
    "an open bracket": (SPEC.replace("[F, M]", "[F, M"), "close the bracket on the line before"),
    "no blank": (
        SPEC.replace("min: 0", "min:0"),
        "the key 'min:0' has no value; write a blank after the colon: min: 0",
    ),
    "SQL without quotes": (
        SPEC.replace("product: {state: identity}", "sql: SELECT sex, COUNT(*) FROM t GROUP BY sex"),
        "put a text with a comma into quotes",
    ),
    "a sign without quotes": (SPEC.replace("name: states", "name: @states"), "a sign at its beginning into quotes"),
    "indented too far": (SPEC.replace("  age", "   age"), "check how far this one is indented"),
    "a value in another case": (
        SPEC.replace("[F, M]", "[Female, Male]").replace("{state: identity}", "{sex: {values: [male]}}"),
        "value 'male' is not in the domain; did you mean 'Male'?",
    ),
    "a plan": ('{"hdmm": "plan", "format": 1}', "is a file that hdmm wrote, not a spec"),
    "a table": ("sex,age\nF,1\n", "this is no spec; write the sections"),
}


@pytest.mark.parametrize(("text", "message"), SPECS.values(), ids=SPECS)
def test_a_spec_that_is_not_as_expected_is_explained(run, workplace: Path, text: str, message: str):
    (workplace / "spec.yaml").write_text(text)
    refused(run, workplace, ["plan", "spec.yaml"], message)


COMMANDS: dict[str, tuple[str, str]] = {
    "a spec for a plan": (
        "show spec.yaml --epsilon 1",
        "if it is a spec, make a plan of it first: hdmm plan spec.yaml",
    ),
    "data before the plan": (
        "release people.csv spec.plan --no-ledger -o out --epsilon 1",
        "give the plan, before any data",
    ),
    "no budget": ("show spec.plan", "--epsilon: give a budget, for example --epsilon 1"),
    "a decimal comma": (
        "show spec.plan --epsilon 0,5",
        "--epsilon '0,5': expected a positive decimal; write for example --eps",
    ),
    "too much memory": (
        "show spec.plan --epsilon 1 --memory lots",
        "--memory 'lots': expected a size, for example --memory 8GB",
    ),
    "no restarts": (
        "plan spec.yaml --force --restarts -1",
        "--restarts -1: expected an integer from 0, for example --rest",
    ),
    "no time": (
        "plan spec.yaml --force --time-limit -1",
        "--time-limit -1.0: expected seconds, for example --time-limit 60",
    ),
    "a plan in no directory": ("plan spec.yaml -o no/a.plan", "-o no/a.plan: its parent directory does not exist"),
    "a pattern without files": (
        "release spec.plan q*.csv --no-ledger -o out --epsilon 1",
        "no file matches this pattern",
    ),
    "a web address": (
        "release spec.plan https://a/b.csv --no-ledger -o out --epsilon 1",
        "copy them here, and give their pa",
    ),
    "a server without a table": (
        "release spec.plan postgresql://a:Zx9QkWv@b/c --no-ledger -o out --epsilon 1",
        "is a database; name its table, for example --table people",
    ),
    "text with a table": (
        "release spec.plan people.csv --table people --no-ledger -o out --epsilon 1",
        "If it is a text or Parquet file, leave --table out",
    ),
    "a delimiter of two characters": (
        "release spec.plan people.csv --delimiter ;; --no-ledger -o out --epsilon 1",
        "--delimiter ';;': expected one ASCII character, no quote, for example --delimiter ';', or the word tab",
    ),
    "a plan for a release": ("tables spec.plan -o t", "spec.plan: is a file, not a release; give the directory"),
    "no release": ("tables nowhere -o t", "nowhere: there is no such directory; give the one that hdmm release wrote"),
    "rows of a ledger": (
        "ledger create b.db --epsilon 1 --rows 0",
        "--rows 0: expected an integer from 1 to 1,000,000, such",
    ),
    "a column of a ledger": ("ledger create b.db --epsilon 1 --id-column= ", "--id-column ''"),
    "a ledger without a budget": ("ledger create b.db", "--epsilon: give a budget, for example --epsilon 1"),
}


@pytest.mark.parametrize(("arguments", "message"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_is_not_as_expected_is_explained(run, planned, workplace: Path, arguments: str, message: str):
    refused(run, workplace, arguments.split(), message)


def test_a_workbook_is_recognised_by_its_name_and_a_zip_file_by_its_bytes(run, planned, workplace: Path):
    with zipfile.ZipFile(workplace / "p.dat", "w") as packed:
        packed.writestr("people.csv", "sex,age,state\n")
    refused(run, workplace, ["release", "spec.plan", "p.dat", *ASK[3:]], "it is compressed; unpack it first")


def test_a_database_lists_its_tables(run, planned, workplace: Path):
    with closing(sqlite3.connect(workplace / "p.db")) as connection:
        connection.execute("CREATE TABLE people (sex, age, state)")
    command = ["release", "spec.plan", "p.db", *ASK[3:]]
    refused(run, workplace, command, "name its table, for example --table people; its tables are 'people'")
    refused(run, workplace, [*command, "--table", "peopel"], "there is no table 'peopel'; did you mean 'people'?")


def test_a_spent_ledger_says_how_its_grant_is_raised(run, planned, workplace: Path):
    ledger = Ledger.create("budget.db", Budget("1"), Unit())
    command = ["release", "spec.plan", "people.csv", "--ledger", "budget.db", "-o"]
    assert run(*command, "out", "--epsilon", "0.75").code == 0
    enough = "has ε = 0.25 left of ε = 1; spend no more than that, or, if whoever is responsible for these data decides"
    refused(run, workplace, [*command, "more", "--epsilon", "0.5"], enough)
    assert run(*command, "rest", "--epsilon", "0.25").code == 0
    nothing = (
        "has nothing left of ε = 1; if whoever is responsible for these data decides to allow more, raise the grant: "
    )
    refused(run, workplace, [*command, "more", "--epsilon", "0.5"], nothing + "hdmm ledger grant budget.db --epsilon 1")
    raised = run("ledger", "grant", "budget.db", "--epsilon", "0.5", "--note", "the board")
    assert (raised.code, raised.out) == (0, "budget.db: grants ε = 1.5 now, ε = 0.5 more than before\n")
    assert run(*command, "more", "--epsilon", "0.5").code == 0
    assert "the board" in run("ledger", "show", "budget.db").out
    assert ledger.verify().steps == 7


GRANTS = {
    "no budget": ([], "--epsilon: give a budget"),
    "another kind": (["--rho", "1"], "cannot be raised by ρ = 1, which is of another kind"),
    "a delta": (["--epsilon", "1", "--delta", "1e-6"], "which is of another kind"),
    "a note of two lines": (
        ["--epsilon", "1", "--note", "a\nb"],
        "--note 'a\\nb': expected 1 to 500 printable characters",
    ),
    "too much": (["--epsilon", "500"], "above 500 nothing is protected"),
}


@pytest.mark.parametrize(("options", "message"), GRANTS.values(), ids=GRANTS)
def test_a_grant_that_does_not_fit_is_refused(run, workplace: Path, options: list[str], message: str):
    Ledger.create("budget.db", Budget("1"), Unit())
    refused(run, workplace, ["ledger", "grant", "budget.db", *options], message)


def test_tables_have_other_digits_on_request(run, planned, workplace: Path):
    assert run(*ASK, "--format", "csv", "--digits", "full").code == 0
    run("tables", "out", "--format", "csv", "-o", "short")
    run("tables", "out", "--format", "csv", "--digits", "full", "-o", "full")
    short, full = (next((workplace / name).glob("*states*")).read_text() for name in ("short", "full"))
    assert next((workplace / "out" / "tables").glob("*states*")).read_text() == full
    assert len(short) < len(full)
    asked = ["answer", "out", "SELECT state, COUNT(*) FROM t GROUP BY state", "-o"]
    run(*asked, "short.csv")
    run(*asked, "full.csv", "--digits", "full")
    assert ((workplace / "short.csv").read_text(), (workplace / "full.csv").read_text()) == (short, full)
    shown = [row.split(",")[1:] for row in short.splitlines()[1:]]
    printed = [row.split()[1:] for row in run(*asked[:-1]).out.splitlines()[2:-1]]
    assert [[float(cell) for cell in row] for row in printed] == [[float(cell) for cell in row] for row in shown]


DECLARATIONS = {
    "a month of 13": ("{date: [2021-13-01, 2021-12-31]}", "date: '2021-13-01': expected a date"),
    "a range that is empty": ("{date: [2021-12-31, 2021-01-01]}", "[2021-12-31, 2021-01-01]: the domain is empty"),
    "a format without a year": ('{date: [2021, 2022], format: "%d/%m"}', "format: '%d/%m': a year is missing"),
    "a format without a day": ('{date: [2021, 2022], format: "%m/%Y"}', "or declare by: month"),
    "an unknown size": (
        "{date: [2021, 2022], by: fortnight}",
        "by: 'fortnight': expected a size of cells; known: 'day'",
    ),
    "a point of integers": ('{min: 0, max: 9, point: ","}', "leave it out, or add decimals: true"),
    "two meanings": ('{min: 0, max: 9, thousands: ".", decimals: true}', 'declare another point, such as point: ","'),
    "edges": ("{bins: [0, 10, 5]}", "edges 10, 5: edges must increase"),
    "a missing value that is one": ("{values: [F, M], missing: [M]}", "missing: 'M': is also the value 'M'"),
}


@pytest.mark.parametrize(("declaration", "message"), DECLARATIONS.values(), ids=DECLARATIONS)
def test_a_declaration_is_refused_in_the_words_of_a_spec(run, workplace: Path, declaration: str, message: str):
    (workplace / "spec.yaml").write_text(SPEC.replace("[F, M]", declaration))
    refused(run, workplace, ["plan", "spec.yaml"], message)
