"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from hdmm.selection.select import select

__all__ = ["select"]
