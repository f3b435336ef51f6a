"""Audit: read a journal from its first entry, and find every row that does not follow from it.

The rows of allocations, runs, users, projects, members and tokens contain nothing that the journal
does not. `fold` reads the journal of one allocation, or the registry, and checks the sums. `runs`
and `registry` compute the rows, `findings` has the results and their words.
"""

from fairbank.bank.audit.findings import Finding, Head, cut_off
from fairbank.bank.audit.fold import Fold

__all__ = ["Finding", "Fold", "Head", "cut_off"]
