"""Bad records change nothing that is said; faults have exit code 1, tell no value of the data, and publish nothing."""

import re
from pathlib import Path
from typing import Any

import pytest

import hdmm
from hdmm import cli, measure
from hdmm.releases.estimates import Estimates
from hdmm.schema import Listed
from tests.cli.workplace import GOOD, HEADER, RELEASE, SECRETS, SPENT, Done, everything

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
    assert done == Done(0, SPENT, "")


def test_no_records_are_no_mistake(run, planned: Path, workplace: Path) -> None:
    (workplace / "people.csv").write_bytes(HEADER)
    assert run(*RELEASE, "--epsilon", "1") == Done(0, SPENT, "")


def explode(*_: object, **__: object) -> None:
    raise ValueError(f"could not convert {SECRETS[0]!r}")


FAULTS = {
    "while records are read": (Listed, "encode"),
    "while records are counted": (measure, "count"),
    "while noise is added": (measure, "discrete_laplace"),
    "while tables are made": (Estimates, "rows"),
    "anywhere": (cli.release, "publish"),
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

    monkeypatch.setattr("hdmm.cli.release.publish", fail)
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
    done = run(*RELEASE, "--epsilon", "1")
    assert (done.code, done.err) == (130, "interrupted; anything that is not on disk was not published\n")
    assert everything(workplace) == before


def test_an_interrupt_after_the_charge_says_so(run, planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    assert run("ledger", "create", "budget.db", "--epsilon", "1").code == 0
    charged = [*RELEASE[:3], "--ledger", "budget.db", "-o", "out", "--epsilon", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("hdmm.releases.publish.check_new", interrupt)
        before = run(*charged)
    assert (before.code, "charged" in before.err) == (130, False)
    monkeypatch.setattr(measure, "discrete_laplace", interrupt)
    after = run(*charged)
    assert (after.code, "ε = 1 was charged before the interrupt and stays charged" in after.err) == (130, True)
    again = run(*charged)
    assert (again.code, "hdmm ledger abandon" in again.err) == (2, True)


def test_an_interrupted_search_keeps_its_best_plan_and_says_so(
    run, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hdmm.operators.MarginalPlus, "propose", interrupt)
        cut = run("plan", "spec.yaml")
    assert (cut.code, "wrote the best plan so far" in cut.out) == (130, True)
    assert (workplace / "spec.plan.partial").exists()
    assert hdmm.Plan.load("spec.plan").operator in cut.out
    assert run("plan", "spec.yaml", "--force").code == 0
    assert not (workplace / "spec.plan.partial").exists()


def test_running_out_of_memory_is_one_sentence_that_names_the_remedy(monkeypatch, capsys) -> None:
    def full(**_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert "error: out of memory; state the limit with --memory" in capsys.readouterr().err
