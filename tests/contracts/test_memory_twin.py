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

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import Policy
from fairbank.bank.query import AllocationQuery, GroupPage, Page, Usage, UsageQuery
from fairbank.bank.requests import Amend, Request, SubmittedRequest, Undo
from fairbank.bank.rules import Done, Outcome
from fairbank.bank.run import RunRecord
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.service.ledger import Ledger
from fairbank.store.contract import Reader, Store
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from tests.bank import request_strategies as strategies
from tests.contracts.query_strategies import Query, queries, usage_queries
from tests.contracts.small_site import all_rows, contents, copy_ledger
from tests.support.postgres import PostgresServer

# A transaction on disk is slow: few examples by default, a quarter of them in a campaign.
CAMPAIGN_EXAMPLES = settings.get_profile("campaign").max_examples
FEW = settings(
    max_examples=CAMPAIGN_EXAMPLES // 4 if settings().max_examples >= CAMPAIGN_EXAMPLES else 6
)


@pytest.fixture(scope="module", params=["sqlite", "postgres18"])
def sql_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Yield an SQL store that is emptied for every example by an empty restore."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("twin") / "fairbank.sqlite"
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


def _is_no_undo(sample: SubmittedRequest) -> bool:
    """Return True if the request names no entry. Entries have other numbers in each store;
    test_undo covers them.
    """
    return not isinstance(sample.request, Undo)


arriving = strategies.submitted_requests(
    st.one_of(strategies.of_runs, strategies.of_anything)
).filter(_is_no_undo)
batches = st.lists(st.lists(arriving, min_size=1, max_size=6), min_size=1, max_size=6)


def play(
    store: Store, story: Sequence[Sequence[SubmittedRequest]], *, opens: bool = True, at: int = 0
) -> list[Outcome]:
    """Apply a story, after the requests that open the projects and allocations of all stories."""
    bank, answers = Ledger(store, Policy()), []
    before = [
        [strategies.submitted_by(0, None, request) for request in batch]
        for batch in (strategies.PROJECTS, strategies.GRANTS)
    ]
    for place, batch in enumerate([*(before if opens else ()), *story]):
        answers += bank.apply(
            [
                msgspec.structs.replace(
                    submitted,
                    request=_with_project(store, submitted.request),
                    at=Instant(at + 10 * place),
                )
                for submitted in batch
            ]
        )
    return answers


def _with_project(store: Store, request: Request) -> Request:
    """Return the amendment with its project and resource, which a route looks up."""
    if not isinstance(request, Amend):
        return request
    with store.reading() as reader:
        result = reader.allocations(AllocationQuery(ids=frozenset({request.allocation})), Page())
    return (
        msgspec.structs.replace(
            request, project=result[0].terms.project, resource=result[0].terms.resource
        )
        if result
        else request
    )


@FEW
@given(story=batches)
def test_same_requests_give_the_same_answers_and_ledger_in_every_store(
    sql_store: Store, story: list[list[SubmittedRequest]]
) -> None:
    memory = MemoryStore()
    assert _renumbered(play(emptied(sql_store), story)) == _renumbered(play(memory, story))
    assert _without_numbers(contents(sql_store)) == _without_numbers(contents(memory))


def _renumbered(answers: list[Outcome]) -> list[Any]:
    """Return answers with entries and runs numbered by first appearance: databases number with
    gaps.
    """
    order: dict[int | None, int] = {None: -1}
    output = []
    for answer in answers:
        fields = msgspec.structs.asdict(answer)
        for name in ("entry", "run") if isinstance(answer, Done) else ("entry",):
            fields[name] = order.setdefault(fields[name], len(order))
        output.append(fields)
    return output


def _without_numbers(journals: tuple[Sequence[Any], ...]) -> list[Any]:
    """Return all rows without the numbers of entries and runs, and without the links that cover
    them.
    """
    output: list[Any] = []
    for table in journals:
        for row in table:
            fields = msgspec.structs.asdict(row)
            fields.pop("link", None)
            if "seq" in fields and "kind" in fields:
                fields |= {"id": None, "run": None}
            if isinstance(row, RunRecord):
                fields |= {"id": None, "set_by": None}
            output.append(fields)
    return sorted(output, key=repr)


@FEW
@given(story=batches, sample=st.lists(queries, min_size=10, max_size=30))
def test_every_query_gives_the_same_answer_in_every_store(
    sql_store: Store, story: list[list[SubmittedRequest]], sample: list[Query]
) -> None:
    memory = MemoryStore()
    play(memory, story)
    copy_ledger(memory, sql_store)
    with memory.reading() as memory_reader, sql_store.reading() as sql_reader:
        assert all_rows(sql_reader) == all_rows(memory_reader)
        for query, arguments in sample:
            assert _answer(sql_reader, query, arguments) == _answer(
                memory_reader, query, arguments
            ), (query, arguments)


@FEW
@given(story=batches, queries_=st.lists(usage_queries, min_size=10, max_size=20), data=st.data())
def test_usage_is_the_same_wherever_sums_are_folded(
    sql_store: Store,
    story: list[list[SubmittedRequest]],
    queries_: list[Query],
    data: st.DataObject,
) -> None:
    """Charges, refunds and their undoing come before and after the sums were folded."""
    emptied(sql_store)
    for count in range(1, len(story) + 1):
        play(sql_store, story[count - 1 : count], opens=count == 1, at=10 * count)
        if data.draw(st.booleans()):
            while sql_store.fold_usage():
                pass
    memory = MemoryStore()
    copy_ledger(sql_store, memory)
    with memory.reading() as memory_reader, sql_store.reading() as sql_reader:
        for query, arguments in queries_:
            assert _answer(sql_reader, query, arguments) == _answer(
                memory_reader, query, arguments
            ), arguments


@FEW
@given(story=batches)
def test_usage_of_every_grouping_adds_up_in_each_unit(
    sql_store: Store, story: list[list[SubmittedRequest]]
) -> None:
    """The charges of a resource are those of its allocations, whatever the groups are."""
    play(emptied(sql_store), story)
    with sql_store.reading() as reader:
        charged: dict[str, int] = {}
        for allocation in reader.scan(Allocation):
            charged[allocation.terms.resource] = (
                charged.get(allocation.terms.resource, 0) + allocation.charged
            )
        (totals, *others) = [
            _sums_of_units(reader.usage(UsageQuery(), by, GroupPage(1_000))) for by in UsageBy
        ]
    assert others == [totals] * len(others)
    used = {resource: sums[2] for (resource, _), sums in totals.items()}
    assert used == {resource: sums for resource, sums in charged.items() if resource in used}
    assert not any(sums for resource, sums in charged.items() if resource not in used)


def _sums_of_units(rows: Sequence[Usage]) -> dict[tuple[str, str], list[int]]:
    units: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        sums = [int(figure) for figure in msgspec.structs.astuple(row)[3:-1]]
        unit = row.resource, row.clusters
        units[unit] = [a + b for a, b in zip(units.get(unit, [0] * len(sums)), sums, strict=True)]
    return units


def _answer(reader: Reader, query: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(reader, query)(*arguments)


def test_template_database_stays_empty(migrated_file: Path) -> None:
    """Other tests copy the template, so nothing may be written to it."""
    assert all(not table for table in contents(open_store(f"sqlite:///{migrated_file}"))[:6])
