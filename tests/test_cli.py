"""The command line: what it says, what it writes, and its exit codes: 0 done, 1 a fault, 2 a mistake of the user."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hdmm
from hdmm import cli, measure
from hdmm.schema import Listed

SPEC = """\
schema:
  sex: [F, M]
  age: {min: 0, max: 9}
  state: {values: [CA, NY], other: true}
workload:
  - {name: by sex and age, product: {sex: identity, age: prefix}}
  - {name: states, product: {state: identity}}
privacy: {noise: laplace}
"""
HEADER = b"sex,age,state\n"
GOOD = [b"F,1,CA", b"M,3,NY", b"F,9,TX", b"M,0,CA"]
SECRETS = ["Zx9QkWv", "Hb3TnLr", "8675309"]
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Done:
    code: Any
    out: str
    err: str


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a spec and a data file, in which commands run."""
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "people.csv").write_bytes(HEADER + b"\n".join(GOOD) + b"\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `hdmm` with some arguments, in this process."""

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["hdmm", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        return Done(left.value.code or 0, COLOURS.sub("", out), COLOURS.sub("", err))

    return command


@pytest.fixture(scope="module")
def plan_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The plan for the spec, made once."""
    directory = tmp_path_factory.mktemp("planned")
    (directory / "spec.yaml").write_text(SPEC, encoding="utf-8")
    command = [sys.executable, "-m", "hdmm", "plan", "spec.yaml"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return (directory / "spec.plan").read_bytes()


@pytest.fixture
def planned(workplace: Path, plan_bytes: bytes) -> Path:
    """A plan beside the spec."""
    (workplace / "spec.plan").write_bytes(plan_bytes)
    return workplace / "spec.plan"


def everything(directory: Path) -> dict[str, bytes | None]:
    """Every file and directory below, with its bytes."""
    paths = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in paths}


RELEASE = ["release", "spec.plan", "people.csv", "--no-ledger", "-o", "out"]


def test_without_arguments_the_help_is_shown(run) -> None:
    done = run()
    assert "Publish counts about people without exposing any of them." in done.out + done.err


@pytest.mark.parametrize("command", ["plan", "show", "release", "demo"])
def test_the_help_names_every_command(run, command: str) -> None:
    done = run("--help")
    assert (done.code, re.search(rf"\b{command}\b", done.out) is not None) == (0, True)


HELP = {
    "plan": ["Needs no data", "SPEC", "--output", "SPEC.plan"],
    "show": ["before any of it is spent", "PLAN", "--epsilon", "--delta", "--rho"],
    "release": ["Measure the data once", "PLAN", "DATA", "--output", "--epsilon", "--no-ledger", "--format"],
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
    assert (done.code, done.out, done.err) == (0, "spent ε = 1; wrote 2 tables to out\n", "")
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


def refused(run, workplace: Path, arguments: list[str], message: str) -> Done:
    """A mistake of the user: exit code 2, one clear sentence, and nothing written."""
    before = everything(workplace)
    done: Done = run(*arguments)
    assert done.code == 2
    assert message in " ".join((done.out + done.err).replace("│", " ").split())
    assert everything(workplace) == before
    return done


BUDGETS: dict[str, tuple[list[str], str]] = {
    "no budget": ([], "epsilon"),
    "zero": (["--epsilon", "0"], "epsilon='0': expected a positive decimal; write for example epsilon=\"0.5\""),
    "negative": (["--epsilon=-1"], "epsilon='-1': expected a positive decimal"),
    "NaN": (["--epsilon", "NaN"], "epsilon='NaN': expected a positive decimal"),
    "infinite": (["--epsilon", "inf"], "epsilon='inf': expected a positive decimal"),
    "text": (["--epsilon", "abc"], "epsilon='abc': expected a positive decimal"),
    "empty": (["--epsilon", ""], "epsilon='': expected a positive decimal"),
    "delta with Laplace noise": (["--epsilon", "1", "--delta", "1e-6"], "delta: Laplace noise takes epsilon alone"),
    "delta of zero": (["--epsilon", "1", "--delta", "0"], "delta='0': expected a positive decimal"),
    "delta of one": (["--epsilon", "1", "--delta", "1"], "delta='1': expected a decimal between 0 and 1"),
    "delta alone": (["--delta", "1e-6"], "epsilon"),
    "rho with Laplace noise": (["--rho", "1"], "rho: Laplace noise takes epsilon"),
    "rho beside epsilon": (["--epsilon", "1", "--rho", "1"], "epsilon"),
    "too small to measure": (["--epsilon", "1e-17"], "epsilon is too small for this strategy"),
}


@pytest.mark.parametrize(("budget", "message"), BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("command", [["show", "spec.plan"], RELEASE], ids=["show", "release"])
def test_a_bad_budget_is_refused(run, planned: Path, workplace: Path, command, budget: list[str], message: str) -> None:
    refused(run, workplace, [*command, *budget], message)


@pytest.mark.parametrize("budget", [["--epsilon", "1e400"], ["--epsilon", "1e300"], ["--epsilon", "1e-300"]])
def test_a_budget_beyond_floating_point_is_no_fault(run, planned: Path, budget: list[str]) -> None:
    assert run("show", "spec.plan", *budget).code in (0, 2)


@pytest.mark.parametrize("delta", [[], ["--delta", "0"], ["--delta", "1.5"], ["--delta", "NaN"]])
def test_gaussian_noise_needs_a_delta_between_0_and_1(run, workplace: Path, delta: list[str]) -> None:
    (workplace / "spec.yaml").write_text(SPEC.replace("laplace", "gaussian"))
    run("plan", "spec.yaml")
    refused(run, workplace, ["show", "spec.plan", "--epsilon", "1", *delta], "delta")


@pytest.mark.parametrize("budget", [["--epsilon", "1", "--delta", "1e-6"], ["--rho", "0.5"]])
def test_a_gaussian_plan_is_released(run, workplace: Path, budget: list[str]) -> None:
    (workplace / "spec.yaml").write_text(SPEC.replace("laplace", "gaussian"))
    run("plan", "spec.yaml")
    done = run(*RELEASE, *budget)
    assert (done.code, done.err) == (0, "")
    given = {option.removeprefix("--"): value for option, value in zip(budget[::2], budget[1::2], strict=True)}
    assert hdmm.Release.load(workplace / "out").budget == hdmm.Budget(**given)


OPTIONS: dict[str, tuple[str, str]] = {
    "a seed": ("release spec.plan people.csv --no-ledger -o out --epsilon 1 --seed 1", "No such option: --seed"),
    "a seed on a plan": ("show spec.plan --epsilon 1 --seed 1", "No such option: --seed"),
    "neither ledger nor saying so": (
        "release spec.plan people.csv -o out --epsilon 1",
        "--ledger: give the ledger that is charged, or say --no-ledger and account for the budget yourself",
    ),
    "no output": ("release spec.plan people.csv --no-ledger --epsilon 1", "Missing option '-o' / '--output'"),
    "no data": ("release spec.plan --no-ledger -o out --epsilon 1", "Missing argument"),
    "an unknown format": (
        "release spec.plan people.csv --no-ledger -o out --epsilon 1 --format xlsx",
        "'xlsx' is not one of 'parquet', 'csv'",
    ),
    "an unknown command": ("publish", "No such command 'publish'"),
}


@pytest.mark.parametrize(("arguments", "message"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_is_not_there_or_missing_is_refused(
    run, planned: Path, workplace: Path, arguments: str, message: str
) -> None:
    refused(run, workplace, arguments.split(), message)


HEADERS: dict[str, tuple[bytes, str]] = {
    "a missing column": (b"sex,state\nF,CA\n", "there is no column for 'age'"),
    "a column twice": (b"sex,age,state,age\nF,1,CA,2\n", "there is more than one column for 'age'"),
    "no header": (b"F,1,CA\nM,2,NY\n", "there is no column for 'sex', 'age', 'state'"),
    "an empty file": (b"", "there is no header"),
}


@pytest.mark.parametrize(("content", "message"), HEADERS.values(), ids=HEADERS)
def test_data_without_its_columns_are_refused(
    run, planned: Path, workplace: Path, content: bytes, message: str
) -> None:
    (workplace / "people.csv").write_bytes(content)
    refused(run, workplace, [*RELEASE, "--epsilon", "1"], message)


def test_a_header_is_refused_without_being_shown(run, planned: Path, workplace: Path) -> None:
    (workplace / "people.csv").write_text(",".join(SECRETS) + "\n" + ",".join(SECRETS) + "\n")
    done = refused(run, workplace, [*RELEASE, "--epsilon", "1"], "there is no column for")
    assert [secret for secret in SECRETS if secret in done.out + done.err] == []


PATHS: dict[str, tuple[str, str]] = {
    "missing data": ("release spec.plan nowhere.csv --no-ledger -o out", "nowhere.csv: there is no such file"),
    "data that are a directory": ("release spec.plan . --no-ledger -o out", "this is a directory"),
    "a missing plan": ("release nowhere.plan people.csv --no-ledger -o out", "nowhere.plan: cannot be read"),
    "a plan that is none": ("release spec.yaml people.csv --no-ledger -o out", "is not an hdmm plan file"),
    "an existing output": ("release spec.plan people.csv --no-ledger -o people.csv", "exists already"),
    "an output in no directory": (
        "release spec.plan people.csv --no-ledger -o no/out",
        "its parent directory does not",
    ),
    "show a missing plan": ("show nowhere.plan", "nowhere.plan: cannot be read: No such file"),
    "show a spec": ("show spec.yaml", "is not an hdmm plan file"),
}


@pytest.mark.parametrize(("arguments", "message"), PATHS.values(), ids=PATHS)
def test_a_path_that_does_not_lead_where_it_should_is_refused(
    run, planned: Path, workplace: Path, arguments: str, message: str
) -> None:
    refused(run, workplace, [*arguments.split(), "--epsilon", "1"], message)


def test_an_existing_release_is_left_as_it_is(run, planned: Path, workplace: Path) -> None:
    run(*RELEASE, "--epsilon", "1")
    refused(run, workplace, [*RELEASE, "--epsilon", "1"], "out: exists already and is never overwritten")


def test_an_existing_plan_is_left_as_it_is(run, planned: Path, workplace: Path) -> None:
    refused(run, workplace, ["plan", "spec.yaml"], "spec.plan: exists already")


SPECS: dict[str, tuple[str, str]] = {
    "an unknown attribute": (SPEC.replace("{sex: id", "{sxe: id"), "'sxe' is not in the schema; did you mean 'sex'?"),
    "an unknown word": (SPEC.replace("prefix", "prefx"), "unknown word 'prefx'; did you mean 'prefix'?"),
    "an unknown key": (SPEC.replace("product:", "produkt:"), "unknown key 'produkt'; did you mean 'product'?"),
    "an unknown value": (
        SPEC.replace("state: identity", "state: {values: [CB]}"),
        "value 'CB' is not in the domain; known: 'CA', 'NY'",
    ),
    "an unknown value in a condition": (
        SPEC.replace("state: identity", "state: {where: \"state = 'CB'\"}"),
        "value 'CB' is not in the domain; known: 'CA', 'NY'",
    ),
    "a sub-query": (
        SPEC.replace("age: prefix", 'age: {where: "age IN (SELECT 1)"}'),
        "use comparisons, IN, BETWEEN, IS NULL, AND, OR, NOT and parentheses",
    ),
    "SQL": (
        SPEC.replace("product: {state: identity}", "sql: SELECT state FROM p"),
        "a counting query selects COUNT(*) once",
    ),
    "an empty workload": (
        "schema: {sex: [F, M]}\nworkload: []\n",
        "the workload is empty; ask for at least one product",
    ),
    "no YAML": ("schema: [", "spec.yaml, line 1"),
    "unknown noise": (SPEC.replace("laplace", "laplase"), "unknown word 'laplase'; did you mean 'laplace'?"),
    "no rows a person": (SPEC.replace("{noise: laplace}", "{unit: {rows: 0}}"), "rows=0: expected an integer from 1"),
    "people told apart by what is published": (
        SPEC.replace("{noise: laplace}", "{unit: {id: state}}"),
        "id='state': is a column of the schema",
    ),
    "a condition on 10^13 cells": (
        "schema: {a: {min: 1, max: 10000000000000}}\nworkload: [{name: x, product: {a: {where: a > 5}}}]\n",
        "exceed",
    ),
    "nesting beyond any use": ("[" * 1000, "spec.yaml"),
    "text that no file can hold": ('schema: {a: ["\\ud800"]}\nworkload: [{name: t}]\n', "spec.yaml, line 1"),
}


@pytest.mark.parametrize(("text", "message"), SPECS.values(), ids=SPECS)
def test_a_mistake_in_a_spec_is_refused(run, workplace: Path, text: str, message: str) -> None:
    (workplace / "spec.yaml").write_text(text, encoding="utf-8")
    refused(run, workplace, ["plan", "spec.yaml"], message)


def test_a_missing_spec_is_refused(run, workplace: Path) -> None:
    refused(run, workplace, ["plan", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file")


@pytest.mark.parametrize("attributes", [30, 400])
def test_a_product_of_more_cells_than_any_memory_is_refused(run, workplace: Path, attributes: int) -> None:
    names = [f"a{i}" for i in range(attributes)]
    schema = "".join(f"  {name}: {{min: 0, max: 9}}\n" for name in names)
    product = ", ".join(f"{name}: identity" for name in names)
    (workplace / "spec.yaml").write_text(f"schema:\n{schema}workload:\n  - {{name: all, product: {{{product}}}}}\n")
    remedy = "ask for products of fewer attributes, declare coarser domains, or allow more memory (--memory)"
    refused(run, workplace, ["plan", "spec.yaml"], remedy)


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


LINES = {
    "an unknown category": b"Zx9QkWv,1,CA",
    "NaN": b"F,NaN,CA",
    "infinity": b"F,inf,CA",
    "a blank": b"F, ,CA",
    "out of range": b"F,8675309,CA",
    "an unbalanced quote": b'"Zx9QkWv,1,CA',
    "a NUL byte": b"F\0,1,CA",
    "bad UTF-8": b"\xff\xfe,1,CA",
    "too few fields": b"F,Zx9QkWv",
    "too many fields": b"F,1,CA,Zx9QkWv",
    "text in a numeric column": b"F,Hb3TnLr,CA",
    "a value that counts as other": b"F,1,Zx9QkWv",
    "an empty line": b"",
    "a very long field": b"Zx9QkWv" * 10_000 + b",1,CA",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_bad_record_changes_nothing_that_is_said(run, planned: Path, workplace: Path, line: bytes) -> None:
    (workplace / "people.csv").write_bytes(HEADER + b"\n".join([*GOOD, line, *GOOD]) + b"\n")
    done = run(*RELEASE, "--epsilon", "1")
    assert done == Done(0, "spent ε = 1; wrote 2 tables to out\n", "")


def test_no_records_are_no_mistake(run, planned: Path, workplace: Path) -> None:
    (workplace / "people.csv").write_bytes(HEADER)
    assert run(*RELEASE, "--epsilon", "1") == Done(0, "spent ε = 1; wrote 2 tables to out\n", "")


def explode(*_: object, **__: object) -> None:
    raise ValueError(f"could not convert {SECRETS[0]!r}")


FAULTS = {
    "while records are read": (Listed, "encode"),
    "while records are counted": (measure, "count"),
    "while noise is added": (measure, "discrete_laplace"),
    "while tables are made": (hdmm.Release, "rows"),
    "anywhere": (cli, "release"),
}


@pytest.mark.parametrize(("owner", "name"), FAULTS.values(), ids=FAULTS)
def test_an_unexpected_fault_is_told_without_its_message(
    run, planned: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    before = everything(workplace)
    monkeypatch.setattr(owner, name, explode)
    done = run(*RELEASE, "--epsilon", "1")
    assert (done.code, done.out) == (1, "")
    assert re.search(r"error: (a fault in hdmm|the records could not be counted) \(ValueError\)", done.err)
    assert SECRETS[0] not in done.err
    assert everything(workplace) == before


def test_a_fault_behind_a_fault_is_not_told_either(run, planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        try:
            explode()
        except ValueError as error:
            raise RuntimeError(SECRETS[1]) from error

    monkeypatch.setattr(cli, "release", fail)
    done = run(*RELEASE, "--epsilon", "1")
    assert done.code == 1
    assert [secret for secret in SECRETS if secret in done.out + done.err] == []


def test_a_full_disk_is_a_fault_of_the_machine(
    run, planned: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = everything(workplace)
    monkeypatch.setattr("os.fsync", full)
    done = run(*RELEASE, "--epsilon", "1")
    assert (done.code, "out: cannot be written: No space left on device" in done.err) == (1, True)
    assert everything(workplace) == before


def test_an_interrupt_publishes_nothing(run, planned: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = everything(workplace)
    monkeypatch.setattr(measure, "discrete_laplace", interrupt)
    assert run(*RELEASE, "--epsilon", "1").code not in (0, 2)
    assert everything(workplace) == before


def test_another_separator_is_read_when_it_is_said(run, planned: Path, workplace: Path) -> None:
    people = workplace / "people.csv"
    people.write_bytes(people.read_bytes().replace(b",", b";"))
    refused(run, workplace, [*RELEASE, "--epsilon", "1"], "another separator must be said (--delimiter)")
    assert run(*RELEASE, "--epsilon", "1", "--delimiter", ";").code == 0


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
    assert hdmm.Plan.load(workplace / "spec.plan").aim == "max"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("40@95%", "expected NAME=MARGIN@LEVEL"),
        ("nobody=40@95%", "no such product"),
        ("nobody=forty", "no such product"),
    ],
)
def test_a_target_that_cannot_be_meant_is_refused(run, workplace: Path, target: str, message: str) -> None:
    done = run("plan", "spec.yaml", "--target", target)
    assert done.code == 2
    assert message in done.err
    assert not (workplace / "spec.plan").exists()
    assert not (workplace / "spec.plan.partial").exists()


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


def test_a_ledger_or_none_must_be_said_not_both(run, planned: Path, workplace: Path) -> None:
    refused(run, workplace, [*RELEASE, "--epsilon", "1", "--ledger", "budget.db"], "not both")
    refused(run, workplace, [*RELEASE, "--epsilon", "1", "--id", "x"], "give --ledger")


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
