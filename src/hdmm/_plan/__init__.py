"""The Plan artefact, its file and its description."""

from hdmm._plan.plan import REFERENCE, Candidate, Plan

__all__ = ["REFERENCE", "Candidate", "Plan"]
