"""`import hdmm` is quick because what is heavy is imported where it is used."""

import subprocess
import sys

import pytest

HEAVY = [
    "altair",
    "cryptography",
    "dp_accounting",
    "duckdb",
    "flint",
    "ibis",
    "jax",
    "joblib",
    "mbi",
    "pyarrow.dataset",
    "pydantic",
    "rich",
    "ruamel.yaml",
    "scipy.optimize",
    "sqlglot",
    "typer",
]


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    script = "import sys, hdmm; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", HEAVY)
def test_import_hdmm_does_not_load(module: str, loaded: set[str]):
    assert module not in loaded
