"""The working set of one transaction: the rows that a batch of wishes needs, and what judging them changed.

The store fills it under its locks, the ledger judges against it in memory, the store writes what changed.
"""

from fairbank.bank.working_set.changes import Changes, Office, OfficeNeeded
from fairbank.bank.working_set.writing import WorkingSet

__all__ = ["Changes", "Office", "OfficeNeeded", "WorkingSet"]
