"""The queries and weights of several blocks improved together, for least squares over all of them."""
