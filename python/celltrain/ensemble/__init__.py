"""Ensembles: cases times seeds, the table of their results, and the summaries that commands show."""
