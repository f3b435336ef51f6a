"""Ends of tasks in Slurm's words, and the exit code that follows from them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from fairbank.core.hostlist import compress
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS


def exit_code(status: int) -> int:
    """Return the exit code of srun for a status of wait(2)."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def tasks_text(ranks: Iterable[int]) -> str:
    """Return ranks as Slurm writes them: `task 3`, `tasks 0-3`."""
    texts = [str(rank) for rank in sorted(ranks)]
    return f"task{'s' if len(texts) > 1 else ''} {compress(texts).strip('[]')}"


def end_text(status: int) -> str:
    """Return how a task ended, in Slurm's words."""
    if status == OUT_OF_MEMORY_STATUS:
        return "Out Of Memory"
    if os.WIFSIGNALED(status):
        text = signal.strsignal(os.WTERMSIG(status)) or f"signal {os.WTERMSIG(status)}"
        return f"{text} (core dumped)" if os.WCOREDUMP(status) else text
    return f"Exited with exit code {os.WEXITSTATUS(status)}"
