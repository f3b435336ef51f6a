"""Commands for every user of the bank."""
