"""The Plan artefact, its file and its description."""

from hdmm._plan.plan import REFERENCE, Candidate, Plan, excess, objective_of, rmse

__all__ = ["REFERENCE", "Candidate", "Plan", "excess", "objective_of", "rmse"]
