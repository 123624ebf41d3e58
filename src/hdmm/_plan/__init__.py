"""The Plan artefact, its file and its description."""

from hdmm._plan.plan import USUAL, Candidate, Plan, excess, objective_of, rmse

__all__ = ["USUAL", "Candidate", "Plan", "excess", "objective_of", "rmse"]
