"""Standard errors and margins of answers, from how they depend on the noise."""
