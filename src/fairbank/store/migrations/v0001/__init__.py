"""What the first migration makes, written down once: later migrations change it, nobody edits it."""
