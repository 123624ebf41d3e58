"""The least largest error."""
