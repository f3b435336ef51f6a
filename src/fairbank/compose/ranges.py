"""Why there is no range for a start, in a note for people."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.report.cells import counted
from fairbank.scheduling.explain.answer import Explanation, NoStartRange


def without_range(why: Explanation) -> Iterator[str]:
    """The note; none where there is a range, or where nobody asked for one."""
    match why.untold:
        case NoStartRange.NO_TURN:
            yield f"no likely start: it does not stand in the queue ({why.code})"
        case NoStartRange.TOO_FAR:
            ahead = f"with {counted(len(why.ahead), 'job')} ahead " if why.ahead else ""
            yield f"no likely start: {ahead}it is too far off to be rehearsed here"
        case NoStartRange.KEPT:
            yield f"no likely start: as far as the rehearsals went, {why.code} kept it waiting"
