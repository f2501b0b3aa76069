"""Figures: styles, axes, and the plots that runs, comparisons, sweeps and papers share."""
