"""Drafts of specs: domains and questions proposed from names, from code lists, or from data that is public."""

from __future__ import annotations

from hdmm.proposal.interview import Interview
from hdmm.proposal.propose import Request, columns_of, draft_by_name, draft_by_values, propose_by_name
from hdmm.proposal.render import render

__all__ = ["Interview", "Request", "columns_of", "draft_by_name", "draft_by_values", "propose_by_name", "render"]
