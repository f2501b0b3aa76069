"""Ensembles of runs (cases times seeds), the table of their results, and summaries for commands."""
