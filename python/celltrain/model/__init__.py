"""Scenarios: their types, how they are read, checked and written, and the measures of a run."""
