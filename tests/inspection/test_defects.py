"""A file with many defects: one check names all of them, and after doing what it says no record is dropped."""

import gzip
import random
import re

import pytest

import hdmm
from hdmm.spec.schema import read_schema

SPEC = """
schema:
  sex: [Female, Male]
  age: {min: 0, max: 114}
  city: [Zürich, Bern]
  income: {bins: [0, 1000, 5000, 10000]}
  note: [a, b]
workload:
  - {name: ages, product: {sex: identity, age: prefix}}
  - {name: cities, product: {city: identity, income: identity}}
"""
HEADER = "sex,age,city,income,note\n"


def lines():
    """Floats, NA, another case, Latin-1, a bad column that nobody asks about, row names, and amounts."""
    rng = random.Random(0)
    for number in range(300):
        fields = [
            str(number),
            rng.choice(["Female", "male", "Male", "FEMALE"]),
            rng.choice(["NA", f"{rng.randint(0, 99)}.0"]),
            rng.choice(["Zürich", "Bern"]),
            rng.choice(['"1,234"', '"$9,000"', "12", '"4,500"']),
            "??",
        ]
        yield ",".join(fields) + "\n"


def test_one_check_names_all_defects_and_its_advice_loses_no_record(tmp_path):
    path, spec_path = tmp_path / "people.csv", tmp_path / "spec.yaml"
    path.write_bytes((HEADER + "".join(lines())).encode("latin-1"))
    spec_path.write_text(SPEC, encoding="utf-8")
    report = hdmm.check(spec_path, path)
    assert report.findings is not None
    assert report.advice is not None
    assert (report.findings.records, report.findings.used) == (300, 0)
    text = str(report)
    for remedy in (
        "decimals: true",
        "missing: [NA]",
        "ignore_case: true",
        'encoding="cp1252"',
        "no question uses it",
        "row.names = FALSE",
        'thousands: ","',
        'currency: "$"',
    ):
        assert remedy in text

    path.write_bytes(("row," + HEADER + "".join(lines())).encode("latin-1"))  # a name for the names of rows
    declared = hdmm.Spec.load(spec_path).data()["schema"]
    declared |= {name: advice.declaration for name, advice in report.advice.items()}
    schema = read_schema(declared, ())
    mended = hdmm.Spec(schema, hdmm.Workload(schema, report.spec.workload.products))
    again = hdmm.check(mended, path, encoding="cp1252")
    assert again.clean
    assert again.findings is not None
    assert again.findings.used == 300
    plan = hdmm.select(mended.workload, "gaussian", restarts=1)
    release = hdmm.release(plan, path, hdmm.Budget(rho="1e5"), ledger=None, encoding="cp1252")
    total = release.answer(hdmm.Workload(schema).add("all"))["all"]["answer"][0].as_py()
    assert round(total) == 300


OTHER_SPEC = """
schema:
  gender: [Female, Male]
  years: {min: 0, max: 110}
  town: [Genève, Zürich, Basel]
  wage: {bins: [0, 100, 1000, 5000, 20000]}
  hired: {date: [2020-01-01, 2022-12-31], by: month}
workload: [{name: pairs, marginals: {up_to: 2}}]
"""
FILES = {
    "semicolons, row ends of Windows, cp1252": (";", "\r\n", "cp1252", b"", "d.csv"),
    "tabs, a byte order mark, packed": ("\t", "\n", "utf-8", b"\xef\xbb\xbf", "d.csv.gz"),
    "bars, a Mac": ("|", "\n", "mac-roman", b"", "d.csv"),
    "UTF-16 and semicolons": (";", "\n", "utf-16", b"", "d.csv"),
}


@pytest.mark.parametrize(("delimiter", "end", "encoding", "mark", "name"), FILES.values(), ids=FILES)
def test_a_delimiter_and_an_encoding_do_not_hide_other_defects(tmp_path, delimiter, end, encoding, mark, name):
    rng = random.Random(1)
    rows = [["gender", "years", "town", "wage", "hired"]]
    for _ in range(100):
        rows.append(
            [
                rng.choice(["FEMALE", "Male", "Femal"]),
                rng.choice(["NA", "41.0", "7"]),
                rng.choice(["Genève", "genève", "ZÜRICH"]),
                rng.choice(["1,250", "$2,000", "12,345.50", "9"]),
                rng.choice(["03/15/2021", "01/02/2022", ""]),
            ]
        )
    quoted = (delimiter.join(f'"{field}"' if delimiter in field else field for field in row) for row in rows)
    content = mark + "".join(f"{row}{end}" for row in quoted).encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "spec.yaml").write_text(OTHER_SPEC, encoding="utf-8")
    report = hdmm.check(tmp_path / "spec.yaml", path)
    assert report.advice is not None
    text = str(report)
    stated = [re.findall(f'{option}="(.*?)"', text) for option in ("delimiter", "encoding")]
    assert [len(options) for options in stated] == [1, int(encoding != "utf-8")]
    separator, known = ((options or [None])[0] for options in stated)
    declared = hdmm.Spec.load(tmp_path / "spec.yaml").data()["schema"]
    schema = read_schema(declared | {name: advice.declaration for name, advice in report.advice.items()}, ())
    mended = hdmm.Spec(schema, hdmm.Workload(schema, report.spec.workload.products))
    again = hdmm.check(mended, path, delimiter=separator, encoding=known)
    assert again.clean
    assert again.findings is not None
    assert again.findings.used == 100
