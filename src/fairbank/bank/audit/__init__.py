"""Audit: read a journal from its first entry, and find every row that does not follow from it.

The rows of allocations, runs, users, projects, members and tokens contain nothing that the journal
does not. The daily figures of fair share are Slurm's: no entry requires them, and they are not
compared. `fold` reads the journal of one allocation, or the registry, and checks the sums. `runs`
and `registry` compute the rows, `transfers` compares the halves of transfers, `findings` has the
results and their words.
"""

from fairbank.bank.audit.findings import Finding, Head, cut_off
from fairbank.bank.audit.fold import Fold
from fairbank.bank.audit.transfers import TRANSFER_KINDS, RecordedTransfer, is_whole

__all__ = ["TRANSFER_KINDS", "Finding", "Fold", "Head", "RecordedTransfer", "cut_off", "is_whole"]
