"""Memory is estimated from shapes, work arrays that are too large go to files, and what fits nowhere is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from errno import ENOSPC, EOPNOTSUPP

import numpy as np
import pytest

import hdmm
from hdmm.errors import FaultError, InputError, TooLargeError
from hdmm.estimators.joint import JointLeastSquares
from hdmm.estimators.least_squares import local_least_squares
from hdmm.matrix import Dense, Identity, Kron, Prefix, Spiked
from hdmm.memory import limit, workspace
from hdmm.memory.limit import memory_allowed, memory_size, more_memory
from hdmm.plans import footprint
from hdmm.plans.footprint import _surely_fits, check_disk, check_memory, needed
from hdmm.strategy import Block, Strategy

GB = 10**9


def encoded(*sizes):
    schema = hdmm.Schema({f"a{i}": range(n) for i, n in enumerate(sizes)})
    return hdmm.Workload(schema).add("first", a0=hdmm.Identity()).encoded


def estimator(family, n, rows=None):
    if family == "joint":
        return JointLeastSquares(estimator("union", n))
    return local_least_squares(strategy(family, n, rows))


def strategy(family, n, rows):
    sizes = (n, n, n)
    square = Dense(np.ones((rows or n, n), int) + np.eye(rows or n, n, dtype=int))
    block = Block((0, 1, 2), (square,) * 3)
    if family == "kron":
        return Strategy(sizes, (block,), "kron")
    if family == "identity":
        return Strategy(sizes, (Block((0, 1, 2), (Identity(n),) * 3),), "kron")
    if family == "union":
        return Strategy(sizes, (block, Block((0, 1), (square,) * 2)), "union")
    if family == "marginal":
        return Strategy(sizes, (Block((0, 1, 2), (Identity(n),) * 3), Block((0,), (Identity(n),))), "marginal")
    return Strategy(sizes, (Block((0, 1, 2), (Spiked.centred(n),) * 3),), "residual")


def check(estimator, workload, limit, check=check_memory):
    with memory_allowed(limit):
        check(estimator, workload)


def check_small(workload):
    with memory_allowed(10**6):
        footprint.check_workload(workload, all_tables=True)


FAMILIES = ["kron", "identity", "union", "joint", "marginal", "residual"]


@pytest.mark.parametrize("family", FAMILIES)
def test_more_cells_need_more_and_more_answers_no_less(family):
    found = [needed(estimator(family, n), encoded(n, n, n), 100 * GB).memory for n in (50, 100, 200, 400)]
    assert found == sorted(set(found))
    assert found[-1] >= 2 * 8 * 400**3  # counts, as they were counted and as they are capped


def test_factors_that_grow_need_more():
    grown = [needed(estimator("kron", 200, rows), encoded(200, 200, 200), 100 * GB).memory for rows in (200, 220, 300)]
    assert grown == sorted(set(grown))


def test_work_arrays_of_more_than_half_of_the_memory_are_files():
    plan, work = estimator("kron", 400, 450), encoded(400, 400, 400)
    roomy, tight = needed(plan, work, 100 * GB), needed(plan, work, GB)
    assert roomy.disk == 0
    assert tight.disk >= 8 * 450**3
    assert tight.memory < roomy.memory


@pytest.mark.parametrize("family", FAMILIES)
def test_too_large_is_refused_and_says_what_would_fit(family):
    check(estimator(family, 300), encoded(300, 300, 300), 16 * GB)
    with pytest.raises(TooLargeError, match=r"27,000,000 cells over 3 attributes.*limit is 300 MB.*memory=\"8GB\""):
        check(estimator(family, 300), encoded(300, 300, 300), 300 * 10**6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("query", [hdmm.Identity(), hdmm.AllRange()])
def test_what_surely_fits_does_fit(family, query):
    schema = hdmm.Schema({f"a{i}": range(20) for i in range(3)})
    workload = hdmm.Workload(schema).add("two", a0=query, a1=query).encoded
    needs = needed(estimator(family, 20), workload, 100 * GB).memory
    limits = [limit for limit in range(needs // 2, 2 * needs, needs // 50) if limit < needs]
    assert not any(_surely_fits(estimator(family, 20).strategy.blocks, workload, limit) for limit in limits)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_said_to_fit_does(family):
    limit = 600 * 10**6
    with pytest.raises(TooLargeError) as refused:
        check(estimator(family, 300), encoded(300, 300, 300), limit)
    told = re.search(r"about ([\d,]+) cells", str(refused.value))
    assert told is not None
    cells = int(told[1].replace(",", ""))
    n = int((0.98 * cells) ** (1 / 3))
    check(estimator(family, n), encoded(n, n, n), limit)


def test_less_than_the_program_itself_is_refused():
    with pytest.raises(TooLargeError, match=r"the program itself takes .* the limit is 1 MB"):
        check(estimator("kron", 30), encoded(30, 30, 30), 10**6)


def test_the_limit_is_what_is_allowed():
    with memory_allowed("300MB"), pytest.raises(TooLargeError):
        check_memory(estimator("kron", 300), encoded(300, 300, 300))
    with memory_allowed("16GB"), memory_allowed(None):
        check_memory(estimator("kron", 300), encoded(300, 300, 300))


def test_files_that_do_not_fit_are_refused_before_anything_is_charged(monkeypatch):
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(10**6))
    with pytest.raises(TooLargeError, match="TMPDIR"):
        check(estimator("kron", 400, 450), encoded(400, 400, 400), GB, check_disk)
    check(estimator("kron", 400, 450), encoded(400, 400, 400), 100 * GB, check_disk)


@pytest.mark.parametrize(("text", "size"), [("8GB", 8 * GB), (" 500 mb", 5 * 10**8), ("1.5GiB", 3 << 29), (77, 77)])
def test_sizes(text, size):
    assert memory_size(text) == size


@pytest.mark.parametrize(
    ("limit", "needed", "advice"),
    [
        (300 * 10**6, None, ', or allow more memory (memory="8GB")'),
        (13 * GB, None, ', or allow more memory (memory="26GB")'),
        (13 * GB, 100 * GB, ', or allow more memory (memory="100GB")'),
        (13 * GB, 10**18, ""),
    ],
)
def test_more_memory_is_advised_if_it_is_more_and_would_help(limit, needed, advice):
    with memory_allowed(limit):
        assert more_memory(needed) == advice


@pytest.mark.parametrize("text", ["", "8", "GB", "-1GB", "0GB", "8 gigs", 0, -5, True, 1.5])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError, match='memory="8GB"'):
        memory_size(text)


@pytest.mark.parametrize("factor", [Dense(np.arange(12).reshape(4, 3)), Dense(np.arange(12).reshape(3, 4)), Prefix(4)])
def test_products_in_files_are_those_in_memory(factor, tmp_path, monkeypatch):
    monkeypatch.setattr("hdmm.matrix.kronecker.PIECE", 5)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    product = Kron([factor] * 4)
    x = np.random.default_rng(0).integers(-9, 9, product.shape[1])
    expected = product.apply(x)
    with memory_allowed(16):
        found = product.apply(x)
        held = workspace.empty(100, np.dtype(float))
    assert found.tolist() == expected.tolist()
    assert isinstance(held.base, np.memmap)
    assert not list(tmp_path.iterdir())  # nobody else can open what has no name


def test_a_full_disk_is_a_fault_that_names_the_remedy(monkeypatch):
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(10))
    with memory_allowed(16), pytest.raises(FaultError, match="set TMPDIR"):
        workspace.empty(100, np.dtype(float))


def test_a_disk_that_fills_up_at_the_last_moment_is_a_fault_too(monkeypatch):
    def full(file, start, size):
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    with memory_allowed(16), pytest.raises(FaultError, match="No space left on device; set TMPDIR"):
        workspace.empty(100, np.dtype(float))


def test_a_file_system_that_reserves_nothing_will_do(monkeypatch):
    def cannot(file, start, size):
        raise OSError(EOPNOTSUPP, os.strerror(EOPNOTSUPP))

    monkeypatch.setattr("os.posix_fallocate", cannot, raising=False)
    with memory_allowed(16):
        assert workspace.empty(100, np.dtype(float)).size == 100


def test_a_release_is_refused_before_the_data_are_opened(tmp_path):
    schema = hdmm.Schema({name: range(200) for name in "abc"})
    workload = hdmm.Workload(schema).add("one", a=hdmm.Identity(), b=hdmm.Total())
    workload = workload.add("two", b=hdmm.Identity(), c=hdmm.Identity())
    plan = hdmm.select(workload, operators=[hdmm.baselines.Identity()])
    for size, message in {"250MB": "8,000,000 cells.*limit is 250 MB", "much": "expected a size"}.items():
        with pytest.raises(InputError, match=message):
            hdmm.release(plan, tmp_path / "none.csv", hdmm.Budget(epsilon="1"), ledger=None, memory=size)


HUGE = {
    "identity of 2·10⁹ values": ("a=hdmm.Integers(0, 1_999_999_999)", "a=hdmm.Identity()"),
    "prefix of 2·10⁹ values": ("a=hdmm.Integers(0, 1_999_999_999)", "a=hdmm.Prefix()"),
    "prefix beside other values": ("a=hdmm.Integers(0, 1_999_999_999, other=True)", "a=hdmm.Prefix()"),
    "widths of 10⁸ values": ("a=hdmm.Integers(0, 99_999_999)", "a=hdmm.Width(10)"),
    "ranges of 2·10⁹ values": ("a=hdmm.Integers(0, 1_999_999_999)", "a=hdmm.Ranges([(0, 9)])"),
    "a condition on 2·10⁹ values": ("a=hdmm.Integers(0, 1_999_999_999)", "a=hdmm.Where('a > 5')"),
    "values under a condition": ("a=hdmm.Integers(0, 1_999_999_999)", "a=hdmm.Identity(where='a > 5')"),
    "a negation of 2·10⁹ values": ("a=hdmm.Integers(0, 1_999_999_999)", "a=~hdmm.Identity()"),
    "ranges of nobody": ("a=range(9), b=range(100_000)", "a=~hdmm.Total(), b=hdmm.AllRange()"),
    "two large attributes": ("a=range(100_000), b=range(100_000)", "a=hdmm.Prefix(), b=hdmm.Where('b > 9')"),
    "a condition across": ("a=range(100_000), b=range(100_000)", "where='a > 9 OR b > 9'"),
    "a condition across huge attributes": ("a=hdmm.Integers(0, 1 << 40), b=range(9)", "where='a > 9 OR b > 7'"),
}
FITS = {
    "prefixes of 50,000 values": ("a=range(50_000)", "a=hdmm.Prefix()"),
    "negated ranges of twenty values": ("a=range(20)", "a=~hdmm.AllRange()"),
    "widths of 50,000 values": ("a=range(50_000)", "a=hdmm.Width(10)"),
    "all ranges of 50,000 values": ("a=hdmm.Integers(0, 49_999)", "a=hdmm.AllRange()"),
    "no ranges of 50,000 values": ("a=hdmm.Integers(0, 49_999)", "a=~hdmm.AllRange()"),
    "all ranges by age": ("a=hdmm.Integers(0, 99_999), b=range(15)", "a=hdmm.AllRange(), b=hdmm.Identity()"),
    "two ranges of 50,000 values": ("a=range(50_000)", "a=hdmm.Ranges([(0, 9), (5, 50)])"),
    "values and their total": ("a=range(50_000)", "a=hdmm.Identity() | hdmm.Total()"),
    "custom queries of 50,000 values": ("a=range(50_000)", "a=hdmm.Custom([range(50_000)])"),
    "an attribute of 2·10⁹ values that nothing asks for": (
        "a=hdmm.Integers(0, 1_999_999_999), b=range(9)",
        "b=hdmm.Identity()",
    ),
    "values by age": ("a=range(50_000), b=range(9)", "a=hdmm.Identity(), b=hdmm.Prefix()"),
}
SIZES = """
import json, resource, sys
import hdmm
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
noise, cases = sys.argv[1], json.loads(sys.argv[2])
budget = hdmm.Budget(epsilon="1", delta=None if noise == "laplace" else "1e-6")
said = {}
for name, (schema, product) in cases.items():
    try:
        workload = eval(f"hdmm.Workload(hdmm.Schema({schema})).add('q', {product})")
        hdmm.select(workload, noise, restarts=0).describe(budget)
        said[name] = "planned"
    except hdmm.errors.TooLargeError as error:
        said[name] = str(error)
print(json.dumps(said))
"""


def tried(cases, noise):
    """What becomes of workloads in a process of three gibibytes."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # whose stacks take room too
    command = [sys.executable, "-c", SIZES, noise, json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_what_no_plan_can_answer_is_refused_from_its_shape(noise):
    for name, said in tried(HUGE, noise).items():
        assert said.startswith("product 'q'"), (name, said)
        assert re.search("bins|fewer attributes", said), (name, said)
        assert re.search(r"fit|the limit is", said), (name, said)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_what_fits_is_planned(noise):
    assert tried(FITS, noise) == dict.fromkeys(FITS, "planned")


@pytest.mark.parametrize("query", [hdmm.Identity(), hdmm.AllRange(), hdmm.Where("a0 > 1")])
def test_what_a_workload_is_said_to_hold_fits(query):
    def workload(n):
        return hdmm.Workload(hdmm.Schema(a0=hdmm.Integers(0, n - 1))).add("q", a0=query).encoded

    with pytest.raises(TooLargeError) as refused:
        check_small(workload(100_000))
    told = re.search(r"about ([\d,]+) (predicates|values)", str(refused.value))
    assert told is not None
    fitting, what = told.groups()
    count = int(0.99 * int(fitting.replace(",", "")))
    n = int((2 * count) ** 0.5) - 1 if isinstance(query, hdmm.AllRange) else count
    check_small(workload(n))
    assert what == ("values" if isinstance(query, hdmm.Where) else "predicates")


def test_a_plan_whose_answers_would_not_fit_is_not_loaded(tmp_path):
    schema = hdmm.Schema(a=range(2000))
    plan = hdmm.select(hdmm.Workload(schema).add("q", a=hdmm.Identity()), operators=[hdmm.baselines.Plain()])
    plan.save(tmp_path / "a.plan")
    with pytest.raises(InputError, match=r"2,000 predicates .* the limit is 100 KB"):
        hdmm.Plan.load(tmp_path / "a.plan", memory="100KB")


def test_an_operator_that_runs_out_of_memory_stands_aside(monkeypatch):
    def full(*given, **more):
        raise MemoryError

    monkeypatch.setattr("hdmm.operators.kron.opt0_laplace", full)
    workload = hdmm.Workload(hdmm.Schema(a=range(9))).add("q", a=hdmm.Prefix())
    assert hdmm.select(workload).operator in ("Identity", "Plain")
    with pytest.raises(TooLargeError, match="Kron ran out of memory"):
        hdmm.select(workload, operators=[hdmm.operators.Kron()])


def test_a_container_or_a_limited_process_has_less_memory(monkeypatch):
    monkeypatch.setattr(limit, "container_memory", lambda: 10**6)
    assert limit.physical_memory() == 10**6
    assert limit.memory_limit() == 10**6 // 2
    monkeypatch.setattr(limit, "_process_memory", lambda: 77)
    assert limit.physical_memory() == 77
