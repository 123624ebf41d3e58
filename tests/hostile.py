"""Hostile files and arguments, each tried in a process of its own that may use little memory and time.

``python -m tests.hostile DIRECTORY`` prints a line of JSON for each: what was raised, and how much memory it took. With
a number n behind it, only every n-th is tried.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import hdmm
from hdmm.files import artefact as _artefact
from hdmm.memory import limit as memory
from hdmm.schema import Bins, Integers, Listed, Merged, Schema
from hdmm.workload import Identity, Permuted, Prefix, Ranges, Values, Where, Width, Workload

CPU_SECONDS = 20
"""A case that uses more of a processor is taken to hang: most need less than a second."""
WALL_SECONDS = 600
"""A case that waits longer is taken to hang."""
ADDRESSES = 8 << 30
"""The most bytes of addresses of a case."""
SMALL = hdmm.Workload(Schema(a=["x", "y"], b=range(10))).add("q", a=Identity()).add("r", b=Prefix())
HUGE = {"zeros": "1e300000000", "nothing": "1e-300000000", "digits": "9" * 10_000_000, "ratio": "1/" + "3" * 1_000_000}
CASES: dict[str, Callable[..., object]] = {}


def case(name: str, run: Callable[..., object]) -> None:
    assert name not in CASES
    CASES[name] = run


def signed(kind: str, content: Any) -> bytes:
    payload = content if isinstance(content, bytes) else json.dumps(content).encode()
    header = {"hdmm": kind, "format": 1, "bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return json.dumps(header).removesuffix("}").encode() + b', "content":\n' + payload + b"\n}\n"


def plan_with(change: Callable[..., object]) -> Callable[[Path], object]:
    def run(directory: Path) -> object:
        held = json.loads((directory / "good.plan").read_bytes())["content"]
        change(held)
        (directory / "bad.plan").write_bytes(signed("plan", held))
        return hdmm.Plan.load(directory / "bad.plan")

    return run


def release_with(change: Callable[..., object]) -> Callable[[Path], object]:
    def run(directory: Path) -> object:
        held = json.loads((directory / "out/release.json").read_bytes())["content"]
        change(held)
        (directory / "out/release.json").write_bytes(signed("release", held))
        return hdmm.Release.load(directory / "out")

    return run


def spec_with(text: str) -> Callable[[Path], object]:
    def run(directory: Path) -> object:
        (directory / "bad.yaml").write_text(text)
        return hdmm.Spec.load(directory / "bad.yaml").workload.encoded

    return run


def ledger_with(change: dict[str, Any]) -> Callable[[Path], object]:
    """A ledger whose chain of hashes is right, whatever it grants."""

    def run(directory: Path) -> object:
        text = json.dumps(
            {"hdmm": "ledger", "format": 1, "granted": {"epsilon": "1"}, "unit": {"rows": 1}, "time": "", **change},
            sort_keys=True,
            separators=(",", ":"),
        )
        digest = hashlib.sha256(text.encode()).hexdigest()
        with closing(sqlite3.connect(directory / "budget.db")) as connection, connection:
            connection.execute("UPDATE ledger SET content = ?, hash = ?", (text, digest))
            connection.execute("UPDATE tip SET hash = ?", (digest,))
        return hdmm.Ledger.open(directory / "budget.db")

    return run


def scalar(attribute: str) -> str:
    return f"schema: {{a: {attribute}}}\nworkload: [{{name: t}}]\n"


def entry(text: str) -> str:
    return f"schema: {{a: {{min: 0, max: 9}}, b: [x, y]}}\nworkload:\n  - {{name: q, {text}}}\n"


for name, text in HUGE.items():
    case(
        f"plan, weight of a product: {name}",
        plan_with(lambda held, t=text: held["spec"]["workload"][0].update(weight=t)),
    )
    case(
        f"plan, weight of a block: {name}",
        plan_with(lambda held, t=text: held["strategy"]["blocks"][0].update(weight=t)),
    )
    case(f"plan, budget: {name}", plan_with(lambda held, t=text: held.update(budget={"epsilon": t})))
    case(f"plan, rows: {name}", plan_with(lambda held, t=text: held["spec"]["privacy"]["unit"].update(rows=t)))
    case(f"plan, largest integer: {name}", plan_with(lambda held, t=text: held["spec"]["schema"]["b"].update(max=t)))
    case(f"plan, an edge: {name}", plan_with(lambda held, t=text: held["spec"]["schema"].update(b={"bins": [0, t]})))
    case(f"release, budget: {name}", release_with(lambda held, t=text: held.update(budget={"epsilon": t})))
    case(f"ledger, grant: {name}", ledger_with({"granted": {"epsilon": text}}))
    case(f"spec, weight: {name}", spec_with(entry(f"weight: {text}")))
    case(f"spec, max: {name}", spec_with(scalar(f"{{min: 0, max: {text}}}")))
    case(f"spec, bins: {name}", spec_with(scalar(f"{{bins: [0, {text}]}}")))
    case(f"spec, where: {name}", spec_with(entry(f'product: {{a: {{where: "a > {text}"}}}}')))
    case(f"spec, width: {name}", spec_with(entry(f"product: {{a: {{width: {text}}}}}")))
    case(f"spec, custom: {name}", spec_with(entry(f"product: {{b: {{custom: [[1, {text}]]}}}}")))
    case(f"spec, target: {name}", spec_with(entry("product: {}") + f"targets: {{q: {text}}}\n"))
    case(f"spec, marginals: {name}", spec_with(entry(f"marginals: {{k: {text}}}")))
    case(f"argument, epsilon: {name}", lambda _, t=text: hdmm.Budget(t))
    case(f"argument, weight: {name}", lambda _, t=text: SMALL.add("w", weight=t))
    case(f"argument, memory: {name}", lambda _, t=text: memory.memory_size(f"{t}GB"))
case("spec, an edge beyond every exponent", spec_with(scalar("{bins: [0, 9e999999999999999999]}")))
case("spec, min beyond", spec_with(scalar("{min: 1e9999999, max: 1e99999999}")))
case("argument, epsilon of a billion digits", lambda _: hdmm.Budget("1e999999999"))
case("argument, memory with an exponent", lambda _: memory.memory_size("1e99999GB"))
NUMBERS = {
    "Decimal": Decimal("1e999999999"),
    "small Decimal": Decimal("1e-999999999"),
    "int": 10**5000,
    "Fraction": Fraction(10**5000, 10**5001 + 1),
}
for name, number in NUMBERS.items():
    case(f"Python number, epsilon: {name}", lambda _, n=number: hdmm.Budget(n))
    case(f"Python number, weight: {name}", lambda _, n=number: SMALL.add("w", weight=n))
    case(f"Python number, edge: {name}", lambda _, n=number: Bins([0, n]))
for name, run in {
    "weight inf": lambda _: SMALL.add("w", weight=float("inf")),
    "rows": lambda _: hdmm.Unit(10**5000),
    "memory": lambda _: memory.memory_size(10**5000),
    "max": lambda _: Integers(0, 10**5000),
    "range": lambda _: Schema(a=range(10**5000)),
    "listed": lambda _: Listed([10**5000]),
    "width": lambda _: SMALL.add("w", b=Width(10**5000)),
    "ranges": lambda _: SMALL.add("w", b=Ranges([(0, 10**5000)])),
    "values": lambda _: SMALL.add("w", b=Values([10**5000])),
    "marginals": lambda _: hdmm.marginals(SMALL.schema, 10**5000),
    "levels": lambda _: Integers(0, 9, levels={"l": {"x": range(10**5000)}}),
}.items():
    case(f"Python number, {name}", run)

PLACES = {
    "plan": ("good.plan", lambda d: hdmm.Plan.load(d / "good.plan")),
    "spec": ("good.yaml", lambda d: hdmm.Spec.load(d / "good.yaml")),
    "ledger": ("budget.db", lambda d: hdmm.Ledger.open(d / "budget.db")),
    "ledger's journal": ("budget.db-journal", lambda d: hdmm.Ledger.open(d / "budget.db")),
    "manifest": ("out/release.json", lambda d: hdmm.Release.load(d / "out")),
    "plan of a release": ("out/plan.hdmm", lambda d: hdmm.Release.load(d / "out")),
    "measurements": ("out/measurements/000.npy", lambda d: hdmm.Release.load(d / "out")),
    "table": ("out/tables/001-q.parquet", lambda d: hdmm.Release.load(d / "out")),
}


def bind(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.chdir(here)


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a directory": os.mkdir,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to /dev/urandom": lambda path: path.symlink_to("/dev/urandom"),
    "a socket": bind,
    "a link to itself": lambda path: path.symlink_to(path),
}
for place, (file, read) in PLACES.items():
    for kind, make in KINDS.items():
        if place != "ledger's journal" or kind in ("a pipe", "a link to /dev/zero"):

            def irregular(directory: Path, file: str = file, read: Any = read, make: Any = make) -> object:
                (directory / file).unlink(missing_ok=True)
                make(directory / file)
                return read(directory)

            case(f"{place} that is {kind}", irregular)


def view(directory: Path) -> object:
    with closing(sqlite3.connect(directory / "budget.db")) as connection, connection:
        connection.execute("DROP TABLE ledger")
        numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
        connection.execute(f"CREATE VIEW ledger AS {numbers} SELECT i AS number, 'x' AS content, '' AS hash FROM n")
    return hdmm.Ledger.open(directory / "budget.db")


case("ledger that is a view without end", view)

MEGABYTES = 28 << 20
JUNK = {
    "empty objects": b"[" + b"{}," * (MEGABYTES // 3) + b"0]",
    "empty lists": b"[" + b"[]," * (MEGABYTES // 3) + b"0]",
    "small objects": b"[" + b'{"a":{}},' * (MEGABYTES // 9) + b"0]",
    "texts": b"[" + b'"ab",' * (MEGABYTES // 5) + b"0]",
    "numbers": b"[" + b"1e5," * (MEGABYTES // 4) + b"0]",
    "depth": b"[" * (MEGABYTES // 2) + b"]" * (MEGABYTES // 2),
    "backslashes": b'"' + b"\\\\" * (MEGABYTES // 2) + b'"',
    "digits": b"9" * 10_000_000,
}


def json_of(kind: str, place: str, junk: bytes) -> Callable[[Path], object]:
    def run(directory: Path) -> object:
        (directory / place).unlink()
        (directory / place).write_bytes(signed(kind, b'{"tables":' + junk + b"}"))
        return hdmm.Plan.load(directory / place) if kind == "plan" else hdmm.Release.load(directory / "out")

    return run


for name, junk in JUNK.items():
    case(f"manifest of {name}", json_of("release", "out/release.json", junk))
    case(f"plan of {name}", json_of("plan", "good.plan", junk))


def sparse(directory: Path) -> object:
    with open(directory / "good.plan", "r+b") as file:
        file.truncate(_artefact.LARGEST)
    return hdmm.Plan.load(directory / "good.plan")


case("plan with a gigabyte of zeros behind it", sparse)
YAML = {
    "a long flow sequence": "schema: {a: [" + "1," * 4_000_000 + "1]}",
    "empty mappings": "a: [" + "{}," * 3_000_000 + "]",
    "anchors": "".join(f"a{i}: &a{i} [1]\n" for i in range(200_000)),
    "a billion laughs": "a: &a [x,x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)}]\n" for i in range(20)),
    "nested flow": "[" * 200_000,
    "nested blocks": "- " * 200_000 + "x",
    "zeros": "\0" * 1_000_000,
    "many lines": "a: 1\n" * 1_000_000,
    "hundred megabytes": "a: " + "x" * 100_000_000,
}
for name, text in YAML.items():
    case(f"spec of {name}", spec_with(text))

LARGE = Schema({f"x{i}": range(2) for i in range(40)})
WIDE = Schema(a=range(1 << 28), b=range(1 << 28), c=range(1 << 20), d=range(3000), e=range(3000))
VAST = Schema(a=Integers(0, (1 << 60) - 1), b=Integers(0, (1 << 60) - 1), c=Integers(0, (1 << 60) - 1, missing=True))
columns = ", ".join(f"x{i}" for i in range(26))
for name, run in {
    "CUBE of 26 columns": lambda _: Workload(LARGE).add_sql("q", f"SELECT COUNT(*) FROM t GROUP BY CUBE({columns})"),
    "CUBE three times": lambda _: Workload(LARGE).add_sql(
        "q", "SELECT COUNT(*) FROM t GROUP BY " + ", ".join(f"CUBE({columns[:35]})" for _ in range(3))
    ),
    "ROLLUP four times": lambda _: Workload(LARGE).add_sql(
        "q", "SELECT COUNT(*) FROM t GROUP BY " + ", ".join(f"ROLLUP({columns})" for _ in range(4))
    ),
    "GROUPING SETS thrice": lambda _: Workload(LARGE).add_sql(
        "q",
        "SELECT COUNT(*) FROM t GROUP BY "
        + ", ".join(f"GROUPING SETS ({', '.join(['(x1)'] * 100)})" for _ in range(4)),
    ),
    "a long ROLLUP": lambda _: Workload(LARGE).add_sql(
        "q", f"SELECT COUNT(*) FROM t GROUP BY ROLLUP({', '.join(['x1'] * 20000)})"
    ),
    "many CUBEs": lambda _: Workload(LARGE).add_sql(
        "q", ";".join([f"SELECT COUNT(*) FROM t GROUP BY CUBE({', '.join(f'x{i}' for i in range(14))})"] * 100)
    ),
    "long SQL": lambda _: Workload(LARGE).add_sql("q", "SELECT COUNT(*) FROM t WHERE x1 = 1" + " OR x1 = 1" * 10**6),
    "all marginals": lambda _: hdmm.marginals(LARGE, all=True),
    "marginals of 20000 attributes": lambda _: hdmm.marginals(Schema({f"x{i}": ["v"] for i in range(20000)}), k=10000),
    "marginals of attributes with one value": lambda _: hdmm.marginals(
        Schema({f"x{i}": ["v"] for i in range(400)}), max_cells=9
    ),
    "a condition on 2^28 values": lambda _: Workload(WIDE).add("q", a=Where("a > 5")),
    "values of 2^28 that satisfy a condition": lambda _: Workload(WIDE).add("q", a=Identity("a > 5")),
    "a condition across 2^28 values": lambda _: Workload(WIDE).add("q", where="a > 5 OR b > 5"),
    "a condition across 2^60 values": lambda _: Workload(VAST).add("q", where="a > 5 OR b > 5"),
    "a negation on 2^60 values": lambda _: Workload(VAST).add("q", a=~Identity()),
    "missing among 2^60 values": lambda _: Workload(VAST).add("q", c=Prefix()),
    "an order of 2^60 values": lambda _: Workload(VAST).add("q", a=Permuted(Prefix(), [1, 2])),
    "a range of 2^60 values": lambda _: hdmm.select(Workload(VAST).add("q", a=Ranges([(0, 5)]))),
    "prefixes of 2^60 values": lambda _: hdmm.select(Workload(VAST).add("q", a=Prefix()), "gaussian"),
    "every value of 2^60": lambda _: hdmm.select(Workload(VAST).add("q", a=Identity(), b=Identity(), c=Identity())),
    "comparisons of 2^20 values": lambda _: Workload(WIDE).add(
        "q", where=" OR ".join(f"c = {i}" for i in range(5000)) + " OR d = 1"
    ),
    "a diagonal": lambda _: Workload(WIDE).add("q", where=" OR ".join(f"(d = {i} AND e = {i})" for i in range(1500))),
    "nested parentheses": lambda _: Workload(WIDE).add("q", where="(" * 100_000 + "d = 1" + ")" * 100_000),
    "nested negations": lambda _: Workload(WIDE).add("q", where="NOT " * 100_000 + "d = 1"),
    "a condition of megabytes": lambda _: Workload(WIDE).add("q", where="d = 1" + " OR d = 1" * 1_000_000),
    "a word beyond any name": lambda _: Workload(WIDE).add("q", where="x" * 500_000 + " = 1"),
    "levels over ranges again and again": lambda _: Integers(
        0, (1 << 24) - 1, levels={"l": {"x": [(0, (1 << 24) - 1)] * 5000}}
    ),
    "many levels": lambda _: Integers(
        0, (1 << 24) - 1, levels={f"l{i}": {"x": [(0, (1 << 24) - 1)]} for i in range(50)}
    ),
    "millions of edges": lambda _: Bins(range(4_000_000)),
    "edges without end": lambda _: Bins(iter(int, 1)),
    "values without end": lambda _: Listed("x" for _ in iter(int, 1)),
    "merged parts": lambda _: Merged({f"p{i}": range(1 << 59) for i in range(400)}),
}.items():
    case(f"workload: {name}", run)


def prepare(directory: Path) -> None:
    """A plan, a spec, a release and a ledger that are as they should be."""
    plan = hdmm.select(SMALL, operators=[hdmm.baselines.Marginals()])
    plan.save(directory / "good.plan")
    hdmm.Spec(SMALL.schema, SMALL).save(directory / "good.yaml")
    (directory / "people.csv").write_text("a,b\nx,1\ny,2\n")
    hdmm.release(plan, directory / "people.csv", hdmm.Budget("1"), ledger=None, out=directory / "out")
    hdmm.Ledger.create(directory / "budget.db", hdmm.Budget("1"), hdmm.Unit())


def outcome(run: Callable[[Path], object], directory: Path) -> dict[str, Any]:
    try:
        run(directory)
    except BaseException as error:
        return {"raised": type(error).__name__, "code": getattr(error, "exit_code", 1), "message": str(error)[:3000]}
    return {"raised": None, "code": 0, "message": ""}


def tried(run: Callable[[Path], object], directory: Path) -> dict[str, Any]:
    """What becomes of a case in a process of its own, and the memory of that process in megabytes."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        signal.alarm(WALL_SECONDS)
        os.write(write, json.dumps(outcome(run, directory)).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    _, status, used = os.wait4(child, 0)
    told = json.loads(said) if said else {"raised": f"killed by signal {status & 127}", "code": -1, "message": ""}
    return told | {"megabytes": used.ru_maxrss / 1024, "seconds": used.ru_utime + used.ru_stime}


def main(directory: Path, every: int) -> None:
    import pyarrow.parquet  # noqa: F401
    import sqlglot  # noqa: F401
    from ruamel.yaml import YAML  # noqa: F401

    (directory / "good").mkdir()
    prepare(directory / "good")
    hdmm.Release.load(directory / "good/out")
    least = tried(lambda _: None, directory)["megabytes"]
    for name, run in list(CASES.items())[::every]:
        shutil.rmtree(directory / "now", ignore_errors=True)
        shutil.copytree(directory / "good", directory / "now")
        told = tried(run, directory / "now")
        print(json.dumps({"name": name, **told, "megabytes": told["megabytes"] - least}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
