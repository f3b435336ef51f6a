"""What may be asked of the bank: one value for each wish. The ledger judges them; doors translate into them."""

from fairbank.bank.wish.asked import Asked, Request, digest
from fairbank.bank.wish.base import Wish
from fairbank.bank.wish.credit import Deposit, Transfer, Withdraw
from fairbank.bank.wish.office import (
    AmendProject,
    CreateProject,
    IssueToken,
    Note,
    RemoveProject,
    RevokeToken,
    SetMember,
)
from fairbank.bank.wish.runs import (
    Adjust,
    Charge,
    EndFacts,
    Ending,
    Hold,
    Lapse,
    Refund,
    Release,
    Unpriced,
)
from fairbank.bank.wish.terms import Amend, Expire, Open, SetCap
from fairbank.bank.wish.undoing import Undo, undo_of

__all__ = [
    "Adjust",
    "Amend",
    "AmendProject",
    "Asked",
    "Charge",
    "CreateProject",
    "Deposit",
    "EndFacts",
    "Ending",
    "Expire",
    "Hold",
    "IssueToken",
    "Lapse",
    "Note",
    "Open",
    "Refund",
    "Release",
    "RemoveProject",
    "Request",
    "RevokeToken",
    "SetCap",
    "SetMember",
    "Transfer",
    "Undo",
    "Unpriced",
    "Wish",
    "Withdraw",
    "digest",
    "undo_of",
]
