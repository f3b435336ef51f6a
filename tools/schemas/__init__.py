"""Published JSON Schemas: what a reader or a client may rely on, and the check that it stays."""
