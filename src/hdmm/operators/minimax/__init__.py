"""Searches for the least largest error."""
