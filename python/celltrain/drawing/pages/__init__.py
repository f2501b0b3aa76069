"""What every page is made of: words, tables, figures and their look."""
