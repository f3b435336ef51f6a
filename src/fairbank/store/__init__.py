"""Where the bank sleeps: one contract (`contract`), three stores that keep it (`memory`, `sqlite`, `postgres`)."""
