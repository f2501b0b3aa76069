"""Figures: styles, axes, and plots shared by runs, comparisons, sweeps and papers."""
