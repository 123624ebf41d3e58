"""A file with many defects: one check names all of them, and after doing what it says no record is dropped."""

import random

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
