"""Releases: measured once, published and read again, with tables, statistics and synthetic records from them."""

from hdmm.releases.release import Release

__all__ = ["Release"]
