"""Commands for administrators and principal investigators."""
