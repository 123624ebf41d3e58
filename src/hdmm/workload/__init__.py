"""What is asked: predicate sets, products, unions of products, and their encoding as implicit matrices."""

from hdmm.workload.encoded import Encoded, EncodedProduct
from hdmm.workload.groups import By, Level
from hdmm.workload.marginals import marginals
from hdmm.workload.ordered import AllRange, Prefix, Ranges, Width
from hdmm.workload.predicates import Not, Permuted, Predicates, Union
from hdmm.workload.products import Product, Workload
from hdmm.workload.values import Custom, Identity, Total, Values, Where

__all__ = [
    "AllRange",
    "By",
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
