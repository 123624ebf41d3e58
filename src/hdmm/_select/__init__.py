"""Selection (OPT_HDMM): run operators, keep the strategy with the least error. Data is out of reach from here."""

from hdmm._select.select import Progress, select

__all__ = ["Progress", "select"]
