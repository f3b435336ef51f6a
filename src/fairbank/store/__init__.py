"""Storage of the bank: one contract (`contract`), three stores (`memory`, `sqlite`, `postgres`)."""
