"""The ledger: every request judged against a working set. `judge` is the only way anything enters the books.

`runs` holds the rules of holds and charges, `unheld` those of runs without a hold, `drawing` what both share; `credit` those of deposits
and their like, `terms` those of allocations themselves, `registry` those of projects and members, `tokens` those of tokens; `undoing` how an
entry is taken back by the opposite of one of these. `refusing` says how runs are refused and where that is kept, `repeating` what is
answered to whom asks again.
"""

from fairbank.bank.rules.ledger import apply
from fairbank.bank.rules.outcome import Done, Outcome
from fairbank.bank.rules.undo import cannot_undo

__all__ = ["Done", "Outcome", "apply", "cannot_undo"]
