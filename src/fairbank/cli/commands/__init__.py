"""One module per command, in a directory per audience."""
