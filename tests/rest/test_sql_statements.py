"""Number of SQL statements of frequent requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.contracts.statement_count import Statements, count_statements, statements_taken
from tests.rest.world import AGENT, DAY, MEMBER, NOW, STRANGER, SUPERUSER, World, a_world, report


class Counting(NamedTuple):
    world: World
    statements: Statements

    def looked(self, reason: str, *reports: dict[str, Any]) -> int:
        """Return the number of statements that read after a batch was refused for this reason and
        stored.
        """
        answer = self.world.ask("POST", "/job/bulk", AGENT, json={"reports": reports})
        assert [each["refusal"]["reason"] for each in answer.json()["data"]] == [reason] * len(
            reports
        ), answer.text
        looks = sum(
            each.startswith("SELECT") for each in self.statements[self.statements.index("COMMIT") :]
        )
        self.statements.clear()
        return looks

    def questions(self) -> int:
        """Return the number of statements that read, repeated ones included."""
        asked = sum(each.lstrip().startswith(("SELECT", "WITH")) for each in self.statements)
        self.statements.clear()
        return asked

    def balances(self, uid: int, query: str) -> tuple[int, int]:
        """Return the number of balances of a request, and of its statements."""
        answer = self.world.ask("GET", f"/balance?{query}", uid)
        assert answer.status_code == 200, answer.text
        return len(answer.json()["data"]), statements_taken(self.statements)


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    url = f"sqlite:///{tmp_path}/fairbank.sqlite"
    migrate(url)
    with count_statements(monkeypatch) as statements, a_world(open_store(url)) as world:
        world.context.services.project_cache.refresh()
        statements_taken(statements)
        yield Counting(world, statements)


def test_balance_of_an_account_takes_one_statement(counting: Counting) -> None:
    assert counting.balances(SUPERUSER, "account=chem") == (1, 1)
    assert counting.balances(SUPERUSER, "") == (2, 1)


def test_filter_by_account_shows_users_no_more(counting: Counting) -> None:
    assert counting.balances(MEMBER, "account=chem") == (1, 2)
    assert counting.balances(MEMBER, "account=bio") == (0, 2)
    assert counting.balances(STRANGER, "account=chem") == (0, 2)


def test_a_page_of_debits_takes_one_statement(counting: Counting) -> None:
    for query in ("", f"?owner_uid={MEMBER}&limit=1", "?account=chem"):
        assert counting.world.ask("GET", f"/debit{query}", SUPERUSER).status_code == 200
        assert statements_taken(counting.statements) == 1


@pytest.mark.parametrize("query", ["account=nobody", "gname=chem", "account=chem&gid=1"])
def test_uncached_account_is_read_from_the_store(counting: Counting, query: str) -> None:
    assert counting.balances(SUPERUSER, query)[1] == 2


def test_expired_project_cache_is_not_used(counting: Counting) -> None:
    counting.world.ticks.at += 60
    assert counting.balances(SUPERUSER, "account=chem") == (1, 3), (
        "the project, the balance, all projects"
    )


def test_nearest_allocations_of_a_batch_take_one_statement(counting: Counting) -> None:
    assert counting.looked("INSUFFICIENT_CREDIT", report(1, amount=10**12)) == 0
    missed = [
        report(
            each,
            account=("chem", "bio")[each % 2],
            start=NOW - each * DAY,
            submitted=NOW - each * DAY,
        )
        for each in range(100, 160)
    ]
    assert counting.looked("NO_ALLOCATION", missed[0]) == 1
    assert counting.looked("NO_ALLOCATION", *missed[1:], report(2, resource="tape")) == 1


def test_statement_page_takes_constant_sql_statements(counting: Counting) -> None:
    """The allocation, its entries, their runs; from the middle on the entry before them, too."""
    own = counting.world.own["allocation"]
    for number in range(200, 240):
        answer = counting.world.ask(
            "POST",
            "/job",
            AGENT,
            json=report(number, amount=60, start=NOW - 60, submitted=NOW - 60),
        )
        assert answer.status_code == 201, answer.text
    counting.statements.clear()
    page = f"/alloc/{own}/statement?since={NOW - 100 * DAY}"
    for query, most in (
        ("limit=5", 3),
        ("limit=40", 3),
        ("limit=5&after=20", 4),
        ("limit=20&after=20", 4),
    ):
        answer = counting.world.ask("GET", f"{page}&{query}", SUPERUSER)
        assert str(len(answer.json()["data"]["entries"])) in query, answer.text
        assert counting.questions() == most, query


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/job", 1),
        ("/failure", 1),
        ("/activity", 2),
        ("/credit", 1),
        ("/predebit", 2),
        ("/alloc", 1),
        ("/project", 1),
    ],
)
def test_list_page_takes_constant_sql_statements(counting: Counting, path: str, most: int) -> None:
    for limit in (1, 100):
        answer = counting.world.ask("GET", f"{path}?limit={limit}", SUPERUSER)
        assert answer.status_code == 200, answer.text
        assert counting.questions() == most
