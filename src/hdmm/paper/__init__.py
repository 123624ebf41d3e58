"""The paper's experiments: its workloads as functions, its tables as data, and checks of what it prints."""

from hdmm.paper.census import sf1, sf1_plus, sf1_plus_sql, sf1_sql
from hdmm.paper.workloads import (
    adult_marginals,
    adult_prefix,
    cps_marginals,
    cps_prefix,
    loans_small,
    loans_small_prefix,
    one_d,
)

__all__ = [
    "adult_marginals",
    "adult_prefix",
    "cps_marginals",
    "cps_prefix",
    "loans_small",
    "loans_small_prefix",
    "one_d",
    "sf1",
    "sf1_plus",
    "sf1_plus_sql",
    "sf1_sql",
]
