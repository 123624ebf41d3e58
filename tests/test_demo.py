"""The demonstration goes the whole way, and what it keeps can be used."""

from contextlib import contextmanager
from functools import partial

import hdmm
from hdmm import demo


@contextmanager
def no_bars():
    yield lambda progress: None


def test_it_tells_the_error_and_what_it_keeps_reads_back(tmp_path, monkeypatch):
    """With one operator only: what a longer search finds is the question of other tests."""
    monkeypatch.setattr(demo, "select", partial(hdmm.select, operators=[hdmm.operators.Marginal()]))
    monkeypatch.setattr(demo, "PEOPLE", 2000)
    monkeypatch.setattr(demo.write_people, "__defaults__", (2000,))
    lines: list[str] = []
    kept = tmp_path / "kept"
    demo.run(hdmm.Budget(epsilon="1"), kept, lines.append, lambda progress: None, no_bars)
    told = "\n".join(lines)
    assert "predicted RMSE" in told
    assert "observed" in told
    spec = hdmm.Spec.load(kept / "spec.yaml")
    assert spec.workload == demo.demo_workload()
    assert hdmm.Plan.load(kept / "people.plan").workload == spec.workload
    assert hdmm.Release.load(kept / "release").table("sex").num_rows == 2


def test_the_people_are_the_same_every_time(tmp_path):
    for name in ("first", "second"):
        demo.write_people(tmp_path / name, 100)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
