"""What is measured: blocks of integer queries, and how much one person can change their answers."""

from hdmm.strategy.block import Block
from hdmm.strategy.sensitivity import Change, sensitivity
from hdmm.strategy.strategy import Family, Strategy

__all__ = ["Block", "Change", "Family", "Strategy", "sensitivity"]
