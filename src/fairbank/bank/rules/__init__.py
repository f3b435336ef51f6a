"""Rules that apply each request to the rows of a transaction. Only `apply` changes the ledger."""

from fairbank.bank.rules.context import Done, Outcome
from fairbank.bank.rules.ledger import apply
from fairbank.bank.rules.undo import cannot_undo

__all__ = ["Done", "Outcome", "apply", "cannot_undo"]
