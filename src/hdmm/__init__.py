"""hdmm: publish counts about people without exposing any of them.

Declare a schema and the questions, see the error before any budget is spent, measure the data once with differentially
private noise, and get consistent answers with margins of error::

    person = hdmm.Schema(sex=["F", "M"], age=range(115))
    workload = hdmm.Workload(person).add("by sex and age", sex=hdmm.Identity(), age=hdmm.Prefix())
    plan = hdmm.select(workload, noise="laplace")
    release = hdmm.release(plan, "people.csv", hdmm.Budget(epsilon="1"), ledger=None)
    release.table("by sex and age")
"""

from typing import Any as _Any

from hdmm import baselines, errors, estimators, operators
from hdmm.accuracy.predict import Accuracy
from hdmm.errors import HdmmError
from hdmm.inspection import CheckReport, check
from hdmm.plans import Plan
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import AlreadyPublished, Amount, Entry, Grant, Leak, Ledger, Verified
from hdmm.privacy.unit import Unit
from hdmm.progress import Progress
from hdmm.releases import Release
from hdmm.releases.publish import DatabaseTable, release
from hdmm.releases.ratio import Ratio
from hdmm.releases.statistics import Quantile
from hdmm.schema import Bins, Boolean, Dates, Integers, Listed, Merged, Schema, Times
from hdmm.selection import select
from hdmm.spec import Spec
from hdmm.workload import (
    AllRange,
    By,
    Custom,
    Identity,
    Level,
    Permuted,
    Prefix,
    Product,
    Ranges,
    Total,
    Values,
    Where,
    Width,
    Workload,
    marginals,
)
from hdmm.workload.targets import Target

__version__ = "0.1.0"

__all__ = [
    "Accuracy",
    "AllRange",
    "AlreadyPublished",
    "Amount",
    "Bins",
    "Boolean",
    "Budget",
    "By",
    "CheckReport",
    "Custom",
    "DatabaseTable",
    "Dates",
    "Entry",
    "Grant",
    "HdmmError",
    "Identity",
    "Integers",
    "Leak",
    "Ledger",
    "Level",
    "Listed",
    "Merged",
    "Permuted",
    "Plan",
    "Prefix",
    "Product",
    "Progress",
    "Quantile",
    "Ranges",
    "Ratio",
    "Release",
    "Schema",
    "Spec",
    "Target",
    "Times",
    "Total",
    "Unit",
    "Values",
    "Verified",
    "Where",
    "Width",
    "Workload",
    "__version__",
    "baselines",
    "check",
    "errors",
    "estimators",
    "marginals",
    "operators",
    "release",
    "select",
]

for _name in __all__:  # tracebacks and help name what a user imports, not where it is written
    if getattr(globals()[_name], "__module__", "").startswith("hdmm."):
        globals()[_name].__module__ = "hdmm"


def __getattr__(name: str) -> _Any:
    if name == "Table":
        from warnings import warn

        warn("hdmm.Table is called hdmm.DatabaseTable now; the old name goes away in 0.3", DeprecationWarning, 2)
        return DatabaseTable
    raise AttributeError(f"module 'hdmm' has no attribute {name!r}")
