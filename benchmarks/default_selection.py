"""The default selection on the paper's workloads: what it finds, and how long it takes.

On several attributes all eight workloads, on one attribute the four with 1,024 cells, and all ≤ 3-way marginals of a
hundred attributes of ten values. The RMSE is that of the plan, at ε = 1 (Gaussian: δ = 1e-6); beside it stands the
paper's, where it has one.

    python benchmarks/default_selection.py [--only Adult]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import cast

import hdmm
from hdmm.paper import workloads
from hdmm.paper.errors import WORKLOADS
from hdmm.paper.sections.printed import tables
from hdmm.privacy.calibrate import NoiseKind

TABLES: dict[NoiseKind, tuple[str, str]] = {
    "laplace": ("table_hd1_laplace", "table_opt01_laplace_1d"),
    "gaussian": ("table_hd2_gaussian", "table_opt02_gaussian_1d"),
}


def cases(noise: NoiseKind) -> Iterator[tuple[str, Callable[[], hdmm.Workload], float | None]]:
    """Every workload by its name, with the paper's RMSE."""
    several, one = TABLES[noise]
    for row in tables()[several]:
        key = (row["dataset"], row["workload"])
        yield " ".join(key), WORKLOADS[key], row["HDMM"]
    for row in tables()[one]:
        if row["domain"] == 1024:
            kind = cast(workloads.OneD, row["workload"])
            yield f"{kind} 1024", partial(workloads.one_d, kind, 1024), row["OPT_0"]
    if noise == "gaussian":
        schema = hdmm.Schema({f"a{i}": range(10) for i in range(100)})
        yield "100 attributes, <= 3D Marginals", partial(hdmm.marginals, schema, up_to=3), None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only workloads with this in their names")
    only = parser.parse_args().only
    print(f"{'noise':10}{'workload':38}{'seconds':>9}{'RMSE':>10}{'paper':>10}  operator, above optimal at most")
    for noise in TABLES:
        for name, build, printed in cases(noise):
            if only not in name:
                continue
            workload = build()
            assert workload.encoded.products  # reading the questions is not what is measured
            start = perf_counter()
            plan = hdmm.select(workload, noise)
            spent = perf_counter() - start
            budget = hdmm.Budget("1") if noise == "laplace" else hdmm.Budget("1", "1e-6")
            proved = "" if plan.certificate is None else f", {plan.certificate:.1e}"
            paper = "" if printed is None else f"{printed:,.2f}"
            print(
                f"{noise:10}{name:38}{spent:>9.1f}{plan.rmse(budget):>10,.2f}{paper:>10}  {plan.operator}{proved}",
                flush=True,
            )


if __name__ == "__main__":
    main()
