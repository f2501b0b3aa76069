"""Scenarios: their types, reading, checking and writing, and the measures of a run."""
