"""What the commands say and write."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import hdmm
from tests.cli.workplace import RELEASE, SPEC, SPENT, Done, everything, refused


def test_without_arguments_the_help_is_shown(run) -> None:
    done = run()
    assert "Publish counts about people without exposing any of them." in done.out + done.err


@pytest.mark.parametrize(
    "command", ["init", "plan", "show", "release", "answer", "tables", "synthesize", "ledger", "demo"]
)
def test_the_help_names_every_command(run, command: str) -> None:
    done = run("--help")
    assert (done.code, re.search(rf"\b{command}\b", done.out) is not None) == (0, True)


HELP = {
    "init": ["never a record", "DATA", "--public", "--codes", "--yes", "--output", "--table", "--encoding"],
    "plan": ["Needs no data", "SPEC", "--output", "SPEC.plan"],
    "show": ["before any of it is spent", "PLAN", "--epsilon", "--delta", "--rho"],
    "release": [
        "Measure the data once",
        "PLAN",
        "DATA",
        "--output",
        "--epsilon",
        "--no-ledger",
        "--format",
        "--memory",
    ],
    "answer": ["at no cost", "RELEASE", "SQL", "--level", "--estimator", "--output", "--memory"],
    "tables": ["costs nothing", "RELEASE", "--simultaneous", "--rounded", "--format", "--memory"],
    "synthesize": ["biased", "RELEASE", "--rows", "--seed", "--output", "--memory"],
    "demo": ["--epsilon", "--keep"],
}


@pytest.mark.parametrize("command", HELP)
def test_the_help_of_a_command_tells_its_arguments(run, command: str) -> None:
    done = run(command, "--help")
    text = " ".join(done.out.replace("│", " ").split())
    assert (done.code, [word for word in HELP[command] if word.lower() not in text.lower()]) == (0, [])


def test_the_version_is_shown(run) -> None:
    assert run("--version") == Done(0, f"hdmm {hdmm.__version__}\n", "")


def test_plan_writes_a_plan_beside_the_spec(run, workplace: Path) -> None:
    assert run("plan", "spec.yaml").code == 0
    assert hdmm.Plan.load(workplace / "spec.plan").workload == hdmm.Spec.load(workplace / "spec.yaml").workload


def test_plan_writes_to_the_given_file(run, workplace: Path) -> None:
    assert run("plan", "spec.yaml", "-o", "people.plan").code == 0
    assert sorted(everything(workplace)) == ["people.csv", "people.plan", "spec.yaml"]


def test_plan_tells_what_it_found(run) -> None:
    done = run("plan", "spec.yaml")
    assert "2 products, 23 queries, 60 cells" in done.out
    assert "has the least error; wrote spec.plan" in done.out


def test_plan_tells_the_next_command(run, planned: Path) -> None:
    done = run("plan", "spec.yaml", "-o", "again.plan")
    (following,) = re.findall("next: hdmm (.*)", done.out)
    assert run(*following.split()).code == 0


def test_show_tells_the_error_of_every_product(run, planned: Path) -> None:
    done = run("show", "spec.plan", "--epsilon", "0.5")
    assert (done.code, done.err) == (0, "")
    assert done.out.strip() == hdmm.Plan.load(planned).describe(hdmm.Budget("0.5"))


def test_show_takes_delta_or_rho_for_gaussian_plans(run, workplace: Path) -> None:
    (workplace / "spec.yaml").write_text(SPEC.replace("laplace", "gaussian"))
    run("plan", "spec.yaml")
    codes = [
        run("show", "spec.plan", *budget).code for budget in (["--epsilon", "1", "--delta", "1e-6"], ["--rho", "1"])
    ]
    assert codes == [0, 0]


def test_release_writes_every_table(run, planned: Path, workplace: Path) -> None:
    done = run(*RELEASE, "--epsilon", "1")
    assert (done.code, done.out, done.err) == (0, SPENT, "")
    assert [name for name, _ in hdmm.Release.load(workplace / "out").tables()] == ["by sex and age", "states"]


def test_release_writes_csv_on_request(run, planned: Path, workplace: Path) -> None:
    assert run(*RELEASE, "--epsilon", "1", "--format", "csv").code == 0
    assert sorted(path.suffix for path in (workplace / "out" / "tables").iterdir()) == [".csv", ".csv"]


def test_release_spends_the_given_budget(run, planned: Path, workplace: Path) -> None:
    run(*RELEASE, "--epsilon", "0.30")
    assert hdmm.Release.load(workplace / "out").budget == hdmm.Budget("0.3")


def test_the_command_runs_as_a_program(planned: Path, workplace: Path) -> None:
    program = [sys.executable, "-c", "from hdmm.cli import main; main()", *RELEASE[:-1], "people.csv", "--epsilon", "1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(hdmm.__file__).parents[1])}
    done = subprocess.run(program, env=environment, capture_output=True, check=False)
    message = b"error: people.csv: exists already and is never overwritten; choose another name"
    assert (done.returncode, done.stdout, done.stderr.strip()) == (2, b"", message)


@pytest.mark.parametrize("budget", [["--epsilon", "1", "--delta", "1e-6"], ["--rho", "0.5"]])
def test_a_gaussian_plan_is_released(run, workplace: Path, budget: list[str]) -> None:
    (workplace / "spec.yaml").write_text(SPEC.replace("laplace", "gaussian"))
    run("plan", "spec.yaml")
    done = run(*RELEASE, *budget)
    assert (done.code, done.err) == (0, "")
    given = {option.removeprefix("--"): value for option, value in zip(budget[::2], budget[1::2], strict=True)}
    assert hdmm.Release.load(workplace / "out").budget == hdmm.Budget(**given)


def test_small_products_over_a_domain_of_many_cells_are_planned(run, workplace: Path) -> None:
    schema = "".join(f"  a{i}: {{min: 0, max: 9}}\n" for i in range(30))
    (workplace / "spec.yaml").write_text(f"schema:\n{schema}workload:\n  - {{name: m, marginals: {{up_to: 1}}}}\n")
    assert run("plan", "spec.yaml").code == 0


def test_a_question_that_nobody_can_answer_yes_to_is_planned_shown_and_released(run, workplace: Path) -> None:
    (workplace / "spec.yaml").write_text(
        'schema: {age: {min: 0, max: 9}}\nworkload: [{name: x, product: {age: {where: "age > 20"}}}]\n'
    )
    commands = [["plan", "spec.yaml"], ["show", "spec.plan", "--epsilon", "1"], [*RELEASE, "--epsilon", "1"]]
    assert [run(*command).code for command in commands] == [0, 0, 0]


def test_another_separator_is_read_when_it_is_said(run, planned: Path, workplace: Path) -> None:
    people = workplace / "people.csv"
    people.write_bytes(people.read_bytes().replace(b",", b";"))
    refused(run, workplace, [*RELEASE, "--epsilon", "1"], "its fields are separated by ';': state --delimiter ';'")
    assert run(*RELEASE, "--epsilon", "1", "--delimiter", "semicolon").code == 0


def test_an_encoding_must_be_known_and_is_used(run, planned: Path, workplace: Path) -> None:
    path = workplace / "people.csv"
    path.write_bytes(path.read_text().encode("utf-16"))
    given = [*RELEASE, "--epsilon", "1", "--encoding"]
    refused(run, workplace, [*given, "utf-61"], "is not an encoding that text files are read in")
    refused(run, workplace, [*RELEASE, "--epsilon", "1"], "--encoding")
    assert run(*given, "utf-16").code == 0


def test_targets_give_the_least_budget(run, workplace: Path) -> None:
    name = hdmm.Spec.load(workplace / "spec.yaml").workload.products[0].name
    done = run("plan", "spec.yaml", "--target", f"{name}=40@90%", "--restarts", "1")
    assert done.code == 0
    assert "least budget that meets all targets: ε = " in done.out
    assert "all targets are met at this budget" in done.out
    (epsilon,) = re.findall(r"next: hdmm show spec.plan --epsilon (\S+)", done.out)
    plan = hdmm.Plan.load(workplace / "spec.plan")
    assert plan.least_budget() == hdmm.Budget(epsilon)
    shown = run("show", "spec.plan")
    assert f"ε = {epsilon}" in shown.out
    assert "all targets are met" in shown.out
    assert "NOT met" in run("show", "spec.plan", "--epsilon", "0.001").out


def test_the_largest_error_is_an_objective(run, workplace: Path) -> None:
    done = run("plan", "spec.yaml", "--objective", "max", "--restarts", "1")
    assert done.code == 0
    assert "largest standard error at ε = 1" in done.out
    assert hdmm.Plan.load(workplace / "spec.plan").goal.aim == "max"


def test_a_ledger_is_made_charged_shown_and_verified(run, planned: Path) -> None:
    assert run("ledger", "create", "budget.db", "--epsilon", "1").out == (
        "budget.db: grants ε = 1 for 1 row per person, add-remove\n"
    )
    charged = [*RELEASE[:3], "--ledger", "budget.db"]
    assert run(*charged, "-o", "one", "--epsilon", "0.75").code == 0
    again = run(*charged, "-o", "one", "--epsilon", "0.75")
    assert (again.code, again.out) == (0, "one: was published before under this id; nothing was spent\n")
    much = run(*charged, "-o", "two", "--epsilon", "0.5")
    assert (much.code, "has ε = 0.25 left of ε = 1" in much.err) == (2, True)
    named = run(*charged, "-o", "two", "--epsilon", "0.25", "--id", "a second one")
    assert named.code == 0
    shown = run("ledger", "show", "budget.db").out
    assert "a second one" in shown
    assert "published" in shown
    assert "2 entries" not in run("ledger", "verify", "budget.db").out  # each release is two steps
    assert "4 entries in order; spent ε = 1, left ε = 0" in run("ledger", "verify", "budget.db").out
    assert run("ledger", "abandon", "budget.db", "a second one").code == 2
    assert run("ledger", "create", "budget.db", "--epsilon", "1").code == 2
    assert run("ledger", "show", "none.db").code == 2


def test_new_questions_are_answered_from_a_release(run, planned: Path) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    asked = "SELECT sex, COUNT(*) FROM people WHERE age >= 4 GROUP BY sex"
    shown = run("answer", "out", asked)
    assert shown.code == 0
    assert shown.out.split()[:6] == ["sex", "age", "answer", "stderr", "low", "high"]
    kept = run("answer", "out", asked, "-o", "old.csv", "--level", "0.99")
    assert (kept.code, kept.out) == (0, "wrote old.csv; nothing was spent\n")
    assert len(planned.with_name("old.csv").read_text().splitlines()) == 3
    assert run("answer", "out", asked, "-o", "old.csv").code == 2
    assert run("answer", "out", asked, "-o", "old.txt").code == 2
    assert run("answer", "nowhere", asked).code == 2
    wrong = run("answer", "out", "SELECT SUM(age) FROM people")
    assert (wrong.code, "COUNT(*)" in wrong.err) == (2, True)


def test_questions_have_the_estimator_and_the_intervals_that_are_asked_for(run, planned: Path) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    asked = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    shown = run("answer", "out", asked, "--estimator", "nonnegative", "--rounded")
    assert (shown.code, shown.out.split()[:3]) == (0, ["sex", "answer", "estimator"])
    assert "non-negative least squares, rounded" in shown.out
    wide, narrow = (run("answer", "out", asked, *more).out for more in (["--simultaneous"], []))
    assert wide != narrow
    refused = run("answer", "out", asked, "--estimator", "nonnegative", "--simultaneous")
    assert (refused.code, "is biased and has no intervals" in refused.err) == (2, True)


def test_tables_are_written_in_other_ways(run, planned: Path) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    done = run("tables", "out", "--simultaneous", "--level", "0.9", "--format", "csv", "-o", "wide")
    assert (done.code, done.out) == (0, "wrote 2 tables to wide; nothing was spent\n")
    names = sorted(path.name for path in planned.with_name("wide").iterdir())
    assert names == ["001-by-sex-and-age.csv", "002-states.csv"]
    assert planned.with_name("wide").joinpath(names[1]).read_text().startswith('"state","answer","stderr","low","high"')
    assert run("tables", "out", "-o", "wide").code == 2
    assert run("tables", "out", "-o", "other", "--estimator", "median").code == 2
    assert run("tables", "nowhere", "-o", "other").code == 2
    assert not planned.with_name("other").exists()


def test_records_are_made_up_from_a_release(run, planned: Path) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    made = run("synthesize", "out", "-o", "made.csv", "--rows", "25", "--seed", "1")
    assert (made.code, made.out) == (0, "wrote 25 made-up records to made.csv; nothing was spent\n")
    lines = planned.with_name("made.csv").read_text().splitlines()
    assert (len(lines), lines[0]) == (26, '"sex","age","state"')
    assert run("synthesize", "out", "-o", "made.csv").code == 2


OPTIONS: dict[str, dict[str, Any]] = {
    "level": {"level": 0.8},
    "simultaneous": {"simultaneous": True},
    "local": {"estimator": "local"},
    "nonnegative": {"estimator": "nonnegative"},
    "exact": {"exact": True},
    "rounded": {"rounded": True},
}


@pytest.mark.parametrize("wishes", OPTIONS.values(), ids=OPTIONS)
def test_options_of_answers_reach_them(run, planned: Path, wishes: dict[str, Any]) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    release = hdmm.Release.load("out")
    words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in wishes.items()]
    assert run("tables", "out", *words, "-o", "new", "--memory", "1GB").code == 0
    expected = release.table("states", **wishes)
    found = pyarrow.parquet.read_table("new/002-states.parquet")
    assert found.to_pylist() == expected.to_pylist()
    asked = "SELECT state, COUNT(*) FROM people GROUP BY state"
    assert run("answer", "out", asked, *words, "-o", "new.parquet", "--memory", "1GB").code == 0
    assert pyarrow.parquet.read_table("new.parquet").to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("command", ["plan", "show", "release", "answer", "tables", "synthesize"])
def test_memory_is_what_is_said(run, planned: Path, command: str) -> None:
    assert run(*RELEASE, "--epsilon", "1").code == 0
    arguments = {
        "plan": ["spec.yaml", "-o", "new.plan"],
        "show": ["spec.plan", "--epsilon", "1"],
        "release": [*RELEASE[1:-1], "again", "--epsilon", "1"],
        "answer": ["out", "SELECT COUNT(*) FROM people"],
        "tables": ["out", "-o", "new"],
        "synthesize": ["out", "-o", "new.csv"],
    }
    done = run(command, *arguments[command], "--memory", "1MB")
    assert (done.code, "the program itself takes" in done.err) == (2, True)
    assert run(command, *arguments[command], "--memory", "1GB").code == 0
