"""The pages of docs/ that are drawn from the code, each a function that returns its text."""
