"""Requests to the bank, one class for each. `bank.rules` applies them."""

from fairbank.bank.requests.allocations import (
    Amend,
    Deposit,
    Expire,
    Open,
    SetCap,
    Transfer,
    Withdraw,
)
from fairbank.bank.requests.base import BaseRequest
from fairbank.bank.requests.registry import (
    AmendProject,
    AuditNote,
    CreateProject,
    IssueToken,
    RemoveProject,
    RevokeToken,
    SetMember,
)
from fairbank.bank.requests.runs import (
    Adjust,
    Charge,
    Ending,
    Hold,
    Lapse,
    Refund,
    Release,
    Unpriced,
)
from fairbank.bank.requests.submitted import Request, SubmittedRequest, digest
from fairbank.bank.requests.undo import Undo, undo_of

__all__ = [
    "Adjust",
    "Amend",
    "AmendProject",
    "AuditNote",
    "BaseRequest",
    "Charge",
    "CreateProject",
    "Deposit",
    "Ending",
    "Expire",
    "Hold",
    "IssueToken",
    "Lapse",
    "Open",
    "Refund",
    "Release",
    "RemoveProject",
    "Request",
    "RevokeToken",
    "SetCap",
    "SetMember",
    "SubmittedRequest",
    "Transfer",
    "Undo",
    "Unpriced",
    "Withdraw",
    "digest",
    "undo_of",
]
