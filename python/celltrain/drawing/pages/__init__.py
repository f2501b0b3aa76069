"""Parts of every page: words and tables."""
