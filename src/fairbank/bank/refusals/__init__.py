"""Refusals of the bank: reasons, the figures of one refusal, its message and its remedies."""

from fairbank.bank.refusals.messages import longest_that_fits, remedies, sentence
from fairbank.bank.refusals.reasons import Detail, Reason, ReasonInfo
from fairbank.bank.refusals.refusal import (
    NOTHING_KNOWN,
    Alternative,
    Facts,
    Figures,
    Refusal,
    RemedyFacts,
    Resolution,
    nearest,
    refusal_of,
)

__all__ = [
    "NOTHING_KNOWN",
    "Alternative",
    "Detail",
    "Facts",
    "Figures",
    "Reason",
    "ReasonInfo",
    "Refusal",
    "RemedyFacts",
    "Resolution",
    "longest_that_fits",
    "nearest",
    "refusal_of",
    "remedies",
    "sentence",
]
