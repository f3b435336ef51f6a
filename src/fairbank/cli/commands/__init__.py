"""One module per command, in a folder per audience."""
