"""Use cases of the bank. Each reads, lets the pure core decide, and writes in one transaction."""
