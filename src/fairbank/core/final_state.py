"""The states in which a run of a job may end, in Slurm's words: what a run costs hangs on them, so no other word is taken."""

from __future__ import annotations

import re
from typing import Literal, get_args

FinalState = Literal[
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LOST", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "REVOKED",
    "TIMEOUT",
]  # fmt: skip
"""Those of sacct(1) in which nothing runs any more. REQUEUED ends this run of its job; LOST is ours, of a run that Slurm does not know."""

FINAL_STATES: tuple[FinalState, ...] = get_args(FinalState)
REQUEUED, LOST = "REQUEUED", "LOST"

PATTERN = rf"^({'|'.join(FINAL_STATES)})(\+| by [0-9]{{1,10}})?$"
"""How sacct writes them: it also says `CANCELLED by 1000`, and cuts `CANCELLED+`."""

_SAID = re.compile(PATTERN, re.ASCII)


def final_state(said: str) -> str | None:
    """The bare state, where this is a final one.

    >>> final_state("CANCELLED by 1000"), final_state("RUNNING")
    ('CANCELLED', None)
    """
    match = _SAID.fullmatch(said)
    return None if match is None else match[1]
