"""hdmm: publish counts about people without exposing any of them.

Declare a schema and the questions, see the error before any budget is spent, measure the data once with differentially
private noise, and get consistent answers with margins of error::

    person = hdmm.Schema(sex=["F", "M"], age=range(115))
    workload = hdmm.Workload(person).add("by sex and age", sex=hdmm.Identity(), age=hdmm.Prefix())
    plan = hdmm.select(workload, noise="laplace")
    release = hdmm.release(plan, "people.csv", hdmm.Budget(epsilon="1"), ledger=None)
    release.table("by sex and age")
"""

from hdmm import baselines, errors, operators
from hdmm._plan import Plan
from hdmm._release import Release
from hdmm._select import Progress, select
from hdmm.errors import HdmmError
from hdmm.privacy.budget import Budget
from hdmm.privacy.ledger import Ledger
from hdmm.privacy.unit import Unit
from hdmm.publish import Table, release
from hdmm.schema import Bins, Boolean, Integers, Listed, Merged, Schema
from hdmm.workload import (
    AllRange,
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
from hdmm.workload.spec import Spec
from hdmm.workload.targets import Target

__version__ = "0.1.0"

__all__ = [
    "AllRange",
    "Bins",
    "Boolean",
    "Budget",
    "Custom",
    "HdmmError",
    "Identity",
    "Integers",
    "Ledger",
    "Level",
    "Listed",
    "Merged",
    "Permuted",
    "Plan",
    "Prefix",
    "Product",
    "Progress",
    "Ranges",
    "Release",
    "Schema",
    "Spec",
    "Table",
    "Target",
    "Total",
    "Unit",
    "Values",
    "Where",
    "Width",
    "Workload",
    "__version__",
    "baselines",
    "errors",
    "marginals",
    "operators",
    "release",
    "select",
]
