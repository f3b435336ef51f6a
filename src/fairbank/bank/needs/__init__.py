"""Which rows a batch of wishes needs: computed before any of them is read, so that each is locked once and in order."""

from fairbank.bank.needs.rows import Needs, told_by
from fairbank.bank.needs.wishes import needs_of

__all__ = ["Needs", "needs_of", "told_by"]
