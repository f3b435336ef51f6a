"""Requests of the tests of projects: list them, find why one was refused, undo an entry."""

from __future__ import annotations

from fairbank.bank.project import Project
from fairbank.bank.query import EntryQuery, Page, ProjectQuery
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Undo, undo_of
from fairbank.bank.rules import Outcome
from fairbank.store.contract import Store


def all_projects(store: Store, removed: bool | None = None) -> list[Project]:
    with store.reading() as reader:
        return reader.projects(ProjectQuery(removed=removed), Page())


def reason_of(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Refusal), outcome
    return outcome.reason


def undo_request(store: Store, number: int) -> Undo:
    with store.reading() as reader:
        (entry,) = reader.entries(EntryQuery(ids=frozenset({number})), Page())
    return undo_of(entry, project=1)
