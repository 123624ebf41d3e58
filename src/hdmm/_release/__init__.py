"""The Release artefact: noisy measurements, the tables derived from them, and their files."""

from hdmm._release.release import Release

__all__ = ["Release"]
