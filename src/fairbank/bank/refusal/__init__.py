"""How the bank says no: why, with which figures, and what would help."""

from fairbank.bank.refusal.figures import Figures, Refusal, Resolution, refusal_of, sentence
from fairbank.bank.refusal.reason import KINDS, Reason
from fairbank.bank.refusal.remedies import (
    IN_USE,
    TAKEN_BACK,
    UNDER_IT,
    WAS_REMOVED,
    Alternative,
    longest_that_fits,
    remedies,
    usual_remedy,
)

__all__ = [
    "IN_USE",
    "KINDS",
    "TAKEN_BACK",
    "UNDER_IT",
    "WAS_REMOVED",
    "Alternative",
    "Figures",
    "Reason",
    "Refusal",
    "Resolution",
    "longest_that_fits",
    "refusal_of",
    "remedies",
    "sentence",
    "usual_remedy",
]
