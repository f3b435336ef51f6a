"""Refusals of the bank: reasons, the figures of one refusal, its message and its remedies."""

from fairbank.bank.refusals.reason_info import Detail
from fairbank.bank.refusals.refusal import (
    NOTHING_KNOWN,
    Alternative,
    Facts,
    Figures,
    Reason,
    Refusal,
    RemedyFacts,
    Resolution,
    longest_that_fits,
    nearest,
    refusal_of,
    remedies,
    sentence,
)

__all__ = [
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
