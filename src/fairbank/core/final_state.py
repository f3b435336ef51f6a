"""Final states of a run, in Slurm's words. The price of a run depends on them."""

from __future__ import annotations

import re
from typing import Literal, get_args

FinalState = Literal[
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LOST", "NODE_FAIL",
    "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "REVOKED", "TIMEOUT",
]  # fmt: skip
"""Final states of sacct(1). REQUEUED ends this run of its job; LOST is Fairbank's own, for a run
that Slurm does not know.
"""

FINAL_STATES: tuple[FinalState, ...] = get_args(FinalState)
REQUEUED, LOST = "REQUEUED", "LOST"

PATTERN = rf"^({'|'.join(FINAL_STATES)})(\+| by [0-9]{{1,10}})?$"
"""Form in which sacct writes them: also `CANCELLED by 1000`, and `CANCELLED+` if the column is
narrow.
"""

_FORM = re.compile(PATTERN, re.ASCII)


def final_state(text: str) -> str | None:
    """Return the bare final state, or None if `text` is not a final state.

    >>> final_state("CANCELLED by 1000"), final_state("RUNNING")
    ('CANCELLED', None)
    """
    match = _FORM.fullmatch(text)
    return None if match is None else match[1]
