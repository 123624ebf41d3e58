"""Mistakes of the user: exit code 2, one clear sentence, and nothing charged or written."""

from pathlib import Path

import pytest

from tests.cli.workplace import RELEASE, SECRETS, SPEC, refused

BUDGETS: dict[str, tuple[list[str], str]] = {
    "no budget": ([], "epsilon"),
    "zero": (["--epsilon", "0"], "--epsilon '0': expected a positive decimal; write for example --epsilon 0.5"),
    "negative": (["--epsilon=-1"], "--epsilon '-1': expected a positive decimal"),
    "NaN": (["--epsilon", "NaN"], "--epsilon 'NaN': expected a positive decimal"),
    "infinite": (["--epsilon", "inf"], "--epsilon 'inf': expected a positive decimal"),
    "text": (["--epsilon", "abc"], "--epsilon 'abc': expected a positive decimal"),
    "empty": (["--epsilon", ""], "--epsilon '': expected a positive decimal"),
    "delta with Laplace noise": (["--epsilon", "1", "--delta", "1e-6"], "--delta: Laplace noise takes --epsilon alone"),
    "delta of zero": (["--epsilon", "1", "--delta", "0"], "--delta '0': expected a positive decimal"),
    "delta of one": (["--epsilon", "1", "--delta", "1"], "--delta '1': expected a decimal between 0 and 1"),
    "delta alone": (["--delta", "1e-6"], "epsilon"),
    "rho with Laplace noise": (["--rho", "1"], "--rho: Laplace noise takes --epsilon; --rho is for Gaussian noise"),
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


OPTIONS: dict[str, tuple[str, str]] = {
    "a seed": ("release spec.plan people.csv --no-ledger -o out --epsilon 1 --seed 1", "No such option: --seed"),
    "a seed on a plan": ("show spec.plan --epsilon 1 --seed 1", "No such option: --seed"),
    "neither ledger nor saying so": (
        "release spec.plan people.csv -o out --epsilon 1",
        "--ledger: give the ledger to charge, or --no-ledger to keep account of the budget yourself",
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
    "a missing plan": ("release nowhere.plan people.csv --no-ledger -o out", "nowhere.plan: there is no such file"),
    "a plan that is none": ("release spec.yaml people.csv --no-ledger -o out", "is not an hdmm plan file"),
    "an existing output": ("release spec.plan people.csv --no-ledger -o people.csv", "exists already"),
    "an output in no directory": (
        "release spec.plan people.csv --no-ledger -o no/out",
        "its parent directory does not",
    ),
    "show a missing plan": ("show nowhere.plan", "nowhere.plan: there is no such file"),
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
    "a unit outside its section": (
        SPEC + "unit: {rows: 3}\n",
        "'unit' belongs in the section `privacy`; write privacy",
    ),
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
        "sub-queries are not supported; write the values one by one",
    ),
    "SQL": (
        SPEC.replace("product: {state: identity}", "sql: SELECT state FROM p"),
        "nothing is counted; select COUNT(*) beside the columns",
    ),
    "an empty workload": (
        "schema: {sex: [F, M]}\nworkload: []\n",
        "the workload is empty; ask for at least one product",
    ),
    "no YAML": ("schema: [", "spec.yaml, line 1"),
    "unknown noise": (SPEC.replace("laplace", "laplase"), "unknown word 'laplase'; did you mean 'laplace'?"),
    "no rows a person": (
        SPEC.replace("{noise: laplace}", "{unit: {rows: 0}}"),
        "rows: 0: expected an integer from 1 to 1,000,000, such as rows: 1",
    ),
    "people told apart by what is published": (
        SPEC.replace("{noise: laplace}", "{unit: {id: state}}"),
        "id: 'state': is a column of the schema",
    ),
    "a condition on 10^13 cells": (
        "schema: {a: {min: 1, max: 10000000000000}}\nworkload: [{name: x, product: {a: {where: a > 5}}}]\n",
        "'a' has 10,000,000,000,000 values, and these predicates look at each of them",
    ),
    "nesting beyond any use": ("[" * 1000, "spec.yaml"),
    "text that no file can hold": ('schema: {a: ["\\ud800"]}\nworkload: [{name: t}]\n', "spec.yaml, line 1"),
}


@pytest.mark.parametrize(("text", "message"), SPECS.values(), ids=SPECS)
def test_a_mistake_in_a_spec_is_refused(run, workplace: Path, text: str, message: str) -> None:
    (workplace / "spec.yaml").write_text(text, encoding="utf-8")
    refused(run, workplace, ["plan", "spec.yaml"], message)


def test_a_missing_spec_is_refused(run, workplace: Path) -> None:
    refused(run, workplace, ["plan", "nowhere.yaml"], "nowhere.yaml: there is no such file")


@pytest.mark.parametrize("attributes", [30, 400])
def test_a_product_of_more_cells_than_any_memory_is_refused(run, workplace: Path, attributes: int) -> None:
    names = [f"a{i}" for i in range(attributes)]
    schema = "".join(f"  {name}: {{min: 0, max: 9}}\n" for name in names)
    product = ", ".join(f"{name}: identity" for name in names)
    (workplace / "spec.yaml").write_text(f"schema:\n{schema}workload:\n  - {{name: all, product: {{{product}}}}}\n")
    done = refused(run, workplace, ["plan", "spec.yaml"], "declare bins or coarser domains")
    assert "--memory" not in done.out + done.err


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


def test_a_mistake_does_not_lose_what_an_earlier_search_has_found(run, workplace: Path) -> None:
    (workplace / "spec.plan.partial").write_text("what was found")
    assert run("plan", "spec.yaml", "--target", "nobody=40@95%").code == 2
    assert (workplace / "spec.plan.partial").read_text() == "what was found"


@pytest.mark.parametrize("command", [["answer", "out", "SELECT COUNT(*) FROM people"], ["synthesize", "out"]])
@pytest.mark.parametrize(
    ("name", "message"), [("spec.yaml", "exists already"), ("new.txt", "ends in .csv or .parquet")]
)
def test_an_output_is_refused_before_anything_is_read(run, workplace: Path, command, name: str, message: str) -> None:
    refused(run, workplace, [*command, "-o", name], message)


def test_a_ledger_or_none_must_be_said_not_both(run, planned: Path, workplace: Path) -> None:
    refused(run, workplace, [*RELEASE, "--epsilon", "1", "--ledger", "budget.db"], "not both")
    refused(run, workplace, [*RELEASE, "--epsilon", "1", "--id", "x"], "give --ledger")
