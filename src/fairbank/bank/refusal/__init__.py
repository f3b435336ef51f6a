"""How the bank says no: why, with which figures, and what would help."""

from fairbank.bank.refusal.figures import Figures, Refusal, Resolution, refusal_of, sentence
from fairbank.bank.refusal.helping import NOTHING_KNOWN, Alternative, Help, nearest
from fairbank.bank.refusal.reason import KINDS, Reason
from fairbank.bank.refusal.remedies import (
    IN_USE,
    TAKEN_BACK,
    UNDER_IT,
    WAS_REMOVED,
    longest_that_fits,
    remedies,
    usual_remedy,
)

__all__ = [
    "IN_USE",
    "KINDS",
    "NOTHING_KNOWN",
    "TAKEN_BACK",
    "UNDER_IT",
    "WAS_REMOVED",
    "Alternative",
    "Figures",
    "Help",
    "Reason",
    "Refusal",
    "Resolution",
    "longest_that_fits",
    "nearest",
    "refusal_of",
    "remedies",
    "sentence",
    "usual_remedy",
]
