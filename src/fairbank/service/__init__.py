"""One method a use case: read, let the pure core decide, write, in one transaction. No HTTP, no terminal."""
