"""Numbers in rows as what they stand for: runs as their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairbank.bank.query import Page, RunQuery
from fairbank.bank.run import RunRecord
from fairbank.rest.asking import Asking


def runs_by_id(request: Asking, numbers: Iterable[int | None]) -> Mapping[int | None, RunRecord]:
    """The records of runs that entries name. Who may see the entry may see its run."""
    wanted = frozenset(each for each in numbers if each is not None)
    if not wanted:
        return {}
    return {
        each.id: each
        for each in request.services.runs.find(RunQuery(ids=wanted), Page(len(wanted)))
    }
