"""The audit: a book read again from its first entry, and every row that does not follow from it.

The rows of allocations, runs, users, projects, members and tokens hold nothing that the journal does not say; here that is checked.
`chain` looks at how the entries hang together, `runs` and `registry` at the rows they leave behind, `run_rows` at where journal and rows
agree; `fold` reads a book through all of them, and looks at the sums; what is wrong becomes a `finding`,
`telling` has its words.
"""

from fairbank.bank.audit.finding import Finding, Head, cut_off
from fairbank.bank.audit.fold import Fold

__all__ = ["Finding", "Fold", "Head", "cut_off"]
