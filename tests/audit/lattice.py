"""Audit: what is released are integers, whatever the family of the plan."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

import hdmm
from hdmm import measure as measuring
from hdmm.privacy.calibrate import NoiseKind
from tests.audit.plans import CASES, SCHEMA, plan
from tests.audit.simulate import Noisy
from tests.audit.verdict import Audit, Verdict

BUDGETS = {"laplace": hdmm.Budget("1"), "gaussian": hdmm.Budget("1", "1e-6")}


def run(noisy: Noisy, releases: int) -> Verdict:
    """How many released values are not integers, over releases of all plans in turn from one file."""
    off = 0
    with TemporaryDirectory() as directory, mock.patch.object(measuring, "add_noise", noisy):
        people = _people(Path(directory) / "people.csv")
        for number in range(releases):
            operator, noise = CASES[number % len(CASES)]
            made = hdmm.release(plan(operator, noise), people, BUDGETS[noise], ledger=None)
            for block, values in zip(made.plan.mechanism.blocks, made.measurements, strict=True):
                whole = values == np.rint(values.astype(float)) if block.wide else values.dtype.kind == "i"
                off += values.size - int(np.sum(np.broadcast_to(whole, values.shape)))
    return Verdict("values off the lattice", off, "<=", 0)


def _people(path: Path) -> Path:
    random = np.random.default_rng(2)
    rows = [f"{'FM'[random.integers(2)]},{random.integers(8)},{'ft'[random.integers(2)]}" for _ in range(200)]
    path.write_text("\n".join([",".join(SCHEMA.names), *rows]) + "\n")
    return path


def floats(answers: np.ndarray, kind: NoiseKind, scale: Fraction) -> np.ndarray:
    """The fault: noise of the right size in floating point."""
    return answers.astype(float) + np.random.default_rng().laplace(scale=float(scale), size=answers.size)


AUDITS = [
    Audit(
        "integers on the declared lattice",
        run,
        measuring.add_noise,
        {"float noise": floats},
        51,
        17,
        "releases",
    )
]
