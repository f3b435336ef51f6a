"""SQL stores compared with the store in memory: the same requests get the same answers, and the
same ledgers the same query results.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.bank.policy import Policy
from fairbank.bank.query import AllocationQuery, Page
from fairbank.bank.requests import Amend, Request, SubmittedRequest, Undo
from fairbank.bank.rules import Done, Outcome
from fairbank.core.time import Instant
from fairbank.service.ledger import Ledger
from fairbank.store.contract import Reader, Store
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from tests.bank import requests
from tests.contracts.questions import Question, questions
from tests.contracts.site import contents, copied, everything
from tests.support.postgres import PostgresServer

QUARTER = settings(
    max_examples=settings().max_examples // 4
)  # a transaction on disk takes its time


@pytest.fixture(scope="module", params=["sqlite", "postgres18"])
def twin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Yield an SQL store that is emptied for every example by an empty restore."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("twin") / "books.sqlite"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        yield from _opened(f"sqlite:///{path}")
    else:
        server: PostgresServer = request.getfixturevalue("postgres18")
        with server.fresh_database(request.getfixturevalue("template18")) as name:
            yield from _opened(server.url(name))


def _opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    yield store
    store.close()


def emptied(store: Store) -> Store:
    with store.restoring(replace=True):
        return store


def _names_no_entry(asked: SubmittedRequest) -> bool:
    """Return True if the request names no entry. Entries have other numbers in each store;
    test_undoing covers them.
    """
    return not isinstance(asked.request, Undo)


arriving = requests.arriving(st.one_of(requests.of_runs, requests.of_anything)).filter(
    _names_no_entry
)
batches = st.lists(st.lists(arriving, min_size=1, max_size=6), min_size=1, max_size=6)


def play(store: Store, story: Sequence[Sequence[SubmittedRequest]]) -> list[Outcome]:
    bank, answers = Ledger(store, Policy()), []
    before = [
        [requests.asked_by(0, None, request) for request in batch]
        for batch in (requests.PROJECTS, requests.GRANTS)
    ]
    for at, batch in enumerate([*before, *story]):
        answers += bank.apply(
            [
                msgspec.structs.replace(
                    each, request=_of_its_fund(store, each.request), at=Instant(10 * at)
                )
                for each in batch
            ]
        )
    return answers


def _of_its_fund(store: Store, request: Request) -> Request:
    """Return the amendment with its project and resource, which a route looks up."""
    if not isinstance(request, Amend):
        return request
    with store.reading() as reader:
        found = reader.allocations(AllocationQuery(ids=frozenset({request.allocation})), Page())
    return (
        msgspec.structs.replace(request, project=found[0].project, resource=found[0].resource)
        if found
        else request
    )


@QUARTER
@given(story=batches)
def test_same_requests_give_the_same_answers_and_ledger_in_every_store(
    twin: Store, story: list[list[SubmittedRequest]]
) -> None:
    memory = MemoryStore()
    assert _renumbered(play(emptied(twin), story)) == _renumbered(play(memory, story))
    assert _without_numbers(contents(twin)) == _without_numbers(contents(memory))


def _renumbered(answers: list[Outcome]) -> list[Any]:
    """Return answers with entries and runs numbered by first appearance: databases number with
    gaps.
    """
    order: dict[int | None, int] = {None: -1}
    told = []
    for each in answers:
        fields = msgspec.structs.asdict(each)
        for name in ("entry", "run") if isinstance(each, Done) else ("entry",):
            fields[name] = order.setdefault(fields[name], len(order))
        told.append(fields)
    return told


def _without_numbers(books: tuple[Sequence[Any], ...]) -> list[Any]:
    """Return all rows without the numbers of entries and runs, and without the links that cover
    them.
    """
    told: list[Any] = []
    for table in books:
        for row in table:
            fields = msgspec.structs.asdict(row)
            fields.pop("link", None)
            if "seq" in fields and "kind" in fields:
                fields |= {"id": None, "run": None}
            if "elapsed_seconds" in fields:
                fields |= {"id": None, "set_by": None}
            told.append(fields)
    return sorted(told, key=repr)


@QUARTER
@given(story=batches, asked=st.lists(questions, min_size=10, max_size=30))
def test_same_ledger_is_read_alike_in_every_store(
    twin: Store, story: list[list[SubmittedRequest]], asked: list[Question]
) -> None:
    memory = MemoryStore()
    play(memory, story)
    copied(memory, twin)
    with memory.reading() as here, twin.reading() as there:
        assert everything(there) == everything(here)
        for question, about in asked:
            assert _answer(there, question, about) == _answer(here, question, about), (
                question,
                about,
            )


def _answer(reader: Reader, question: str, about: tuple[Any, ...]) -> Any:
    return getattr(reader, question)(*about)


def test_a_template_is_left_empty(migrated_file: Path) -> None:
    """Other tests copy the template, so nothing may be written to it."""
    assert all(not table for table in contents(open_store(f"sqlite:///{migrated_file}"))[:6])
