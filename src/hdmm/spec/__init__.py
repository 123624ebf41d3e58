"""The spec: schema, workload and privacy, as YAML and as plain data."""

from hdmm.spec.spec import Spec

__all__ = ["Spec"]
