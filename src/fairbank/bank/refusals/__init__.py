"""Refusals of the bank: reasons, the figures of one refusal, its message and its remedies.

A rule returns a `Refusal`. Its texts are templates in `job_reasons`, `ledger_reasons` and
`project_reasons`, which `sentence` and `remedies` fill. `rest.problems` sends them with the status
of their kind; a bulk report has one status per row. Commands print them, and the agent shortens
them for squeue. The submission policy in Lua refuses before the bank is asked, with texts of its
own.
"""

from fairbank.bank.refusals.message import longest_that_fits, remedies, sentence
from fairbank.bank.refusals.reason_info import Detail
from fairbank.bank.refusals.refusal import (
    CREDIT_REASONS,
    NOTHING_KNOWN,
    Alternative,
    Facts,
    Figures,
    Reason,
    Refusal,
    RemedyFacts,
    Resolution,
    nearest,
    refusal_of,
)

__all__ = [
    "CREDIT_REASONS",
    "NOTHING_KNOWN",
    "Alternative",
    "Detail",
    "Facts",
    "Figures",
    "Reason",
    "Refusal",
    "RemedyFacts",
    "Resolution",
    "longest_that_fits",
    "nearest",
    "refusal_of",
    "remedies",
    "sentence",
]
