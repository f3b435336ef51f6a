"""Ends and changes that are not those of their holds: of another user or project, or priced by another partition (docs/decisions/0024)."""

from __future__ import annotations

from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Adjust, Charge, Ending

_PRICED = (Charge, Adjust)  # made once: a union takes as long to make as all that is compared here


def told_otherwise(known: RunRecord, wish: Ending | Adjust) -> str | None:
    """In which field the wish contradicts what the books have of its run, and how; None where in none that it tells."""
    if wish.owner is not None and wish.owner != known.owner:
        return f"owner_uid is {wish.owner}, but its run is one of user {known.owner}"
    if wish.account is not None:
        return f"account is {wish.account!r}, which no project has, but its run is one of project {known.project}"
    if wish.line and wish.line[0] != known.project:
        return f"account is that of project {wish.line[0]}, but its run is one of project {known.project}"
    if (
        isinstance(wish, _PRICED)
        and wish.priced_in is not None
        and wish.priced_in != known.partition
    ):
        return f"partition is {wish.priced_in!r}, but its run started in {known.partition!r}"
    return None
