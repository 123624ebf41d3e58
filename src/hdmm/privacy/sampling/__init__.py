"""Integer noise from random bits."""
