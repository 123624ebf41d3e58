"""Numerical optimisers, and how much effort a search may take."""
