"""Frames between the PrEp plug-in and the agent: bytes to values and back, refusing what is not exactly one (decision 0012).

A frame is four bytes of length and a body. A body is a word for its kind, then `key=value` lines in any order, each key once.
"""

from fairbank.slurm.frames.grammar import ANSWER_MAX, BODY_MAX, HEAD, TEXT_MAX, bodies, shortened
from fairbank.slurm.frames.reading import answer, question
from fairbank.slurm.frames.salvage import Unread, salvaged
from fairbank.slurm.frames.writing import encode

__all__ = [
    "ANSWER_MAX",
    "BODY_MAX",
    "HEAD",
    "TEXT_MAX",
    "Unread",
    "answer",
    "bodies",
    "encode",
    "question",
    "salvaged",
    "shortened",
]
