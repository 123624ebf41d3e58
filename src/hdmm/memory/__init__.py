"""Memory: one limit for everything, and work arrays that go to a temporary file if they would exceed it."""

from hdmm.memory.limit import memory_allowed, memory_limit, more_memory

__all__ = ["memory_allowed", "memory_limit", "more_memory"]
