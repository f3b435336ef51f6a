"""Progress of long operations, as they report it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with the amount done and the total. The last call has the total twice."""

StageProgress = Callable[[str, int, int], None]
"""Called with the name of the stage, the amount done in it, and the total or an estimate of it."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress.

    Args:
        stage: name of the stage.
        done: amount done in it.
        total: total amount, or an estimate of it.
    """
