"""What is asked: predicate sets, products, unions of products, and their encoding as implicit matrices."""

from hdmm.workload.encode import Encoded, EncodedProduct
from hdmm.workload.marginals import marginals
from hdmm.workload.predicates import (
    AllRange,
    Custom,
    Identity,
    Level,
    Not,
    Permuted,
    Predicates,
    Prefix,
    Ranges,
    Total,
    Union,
    Values,
    Where,
    Width,
)
from hdmm.workload.products import Product, Workload

__all__ = [
    "AllRange",
    "Custom",
    "Encoded",
    "EncodedProduct",
    "Identity",
    "Level",
    "Not",
    "Permuted",
    "Predicates",
    "Prefix",
    "Product",
    "Ranges",
    "Total",
    "Union",
    "Values",
    "Where",
    "Width",
    "Workload",
    "marginals",
]
