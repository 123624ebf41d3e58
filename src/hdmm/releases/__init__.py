"""Releases: measured once, published, and read again; tables, statistics and synthetic records made from them."""

from hdmm.releases.release import Release

__all__ = ["Release"]
