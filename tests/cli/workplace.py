"""A small spec with its records, and what commands leave in a directory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
RELEASE = ["release", "spec.plan", "people.csv", "--no-ledger", "-o", "out"]


@dataclass(frozen=True)
class Done:
    code: Any
    out: str
    err: str


def everything(directory: Path) -> dict[str, bytes | None]:
    """Every file and directory below, with its bytes."""
    paths = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None for path in paths}


def refused(run, workplace: Path, arguments: list[str], message: str) -> Done:
    """A mistake of the user: exit code 2, one clear sentence, and nothing written."""
    before = everything(workplace)
    done: Done = run(*arguments)
    assert done.code == 2
    assert message in " ".join((done.out + done.err).replace("│", " ").split())
    assert everything(workplace) == before
    return done


SPENT = (
    "spent ε = 1; wrote 2 tables to out\n"
    "whether records were dropped is private: `hdmm check SPEC DATA` reports it to you alone\n"
)
"""What a release prints."""
