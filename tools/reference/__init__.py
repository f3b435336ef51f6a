"""Generator of the reference and manual pages, from the code."""
