"""The weights of marginals."""
