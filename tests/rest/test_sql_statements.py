"""Number of SQL statements of frequent requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.contracts.statement_count import Statements, count_statements, statements_taken
from tests.rest.world import (
    AGENT,
    DAY,
    MEMBER,
    NOW,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    report,
)


class StatementCounter(NamedTuple):
    world: World
    statements: Statements

    def reads_after_refusal(self, reason: str, *reports: dict[str, Any]) -> int:
        """Return the number of statements that read after a batch was refused for this reason and
        stored.
        """
        answer = self.world.ask("POST", "/job/bulk", AGENT, json={"reports": reports})
        assert [row["refusal"]["reason"] for row in answer.json()["data"]] == [reason] * len(
            reports
        ), answer.text
        reads = sum(
            statement.startswith("SELECT")
            for statement in self.statements[self.statements.index("COMMIT") :]
        )
        self.statements.clear()
        return reads

    def count_reads(self) -> int:
        """Return the number of statements that read, repeated ones included."""
        reads = sum(
            statement.lstrip().startswith(("SELECT", "WITH")) for statement in self.statements
        )
        self.statements.clear()
        return reads

    def count_balances(self, uid: int, query: str) -> tuple[int, int]:
        """Return the number of balances of a request, and of its statements."""
        answer = self.world.ask("GET", f"/balance?{query}", uid)
        assert answer.status_code == 200, answer.text
        return len(answer.json()["data"]), statements_taken(self.statements)


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementCounter]:
    url = f"sqlite:///{tmp_path}/fairbank.sqlite"
    migrate(url)
    with count_statements(monkeypatch) as statements, create_world(open_store(url)) as world:
        world.context.services.project_cache.refresh()
        statements_taken(statements)
        yield StatementCounter(world, statements)


def test_balances_take_a_statement_for_each_table(counter: StatementCounter) -> None:
    """They read the allocations and the user's sums, and the entries of those not active."""
    assert counter.count_balances(SUPERUSER, "account=chem&state=active") == (1, 2)
    assert counter.count_balances(SUPERUSER, "state=active") == (2, 2)
    assert counter.count_balances(SUPERUSER, "account=chem") == (2, 3)


def test_filter_by_account_shows_users_no_more(counter: StatementCounter) -> None:
    """One statement more reads the memberships."""
    assert counter.count_balances(MEMBER, "account=chem&state=active") == (1, 3)
    assert counter.count_balances(MEMBER, "account=bio") == (0, 2)
    assert counter.count_balances(STRANGER, "account=chem") == (0, 2)


def test_page_of_debits_takes_one_statement(counter: StatementCounter) -> None:
    for query in ("", f"?owner_uid={MEMBER}&limit=1", "?account=chem"):
        assert counter.world.ask("GET", f"/debit{query}", SUPERUSER).status_code == 200
        assert statements_taken(counter.statements) == 1


@pytest.mark.parametrize("query", ["account=nobody", "gname=chem", "account=chem&gid=1"])
def test_uncached_account_is_read_from_the_store(counter: StatementCounter, query: str) -> None:
    balances, statements = counter.count_balances(SUPERUSER, f"{query}&state=active")
    assert statements == (3 if balances else 2)


def test_expired_project_cache_is_not_used(counter: StatementCounter) -> None:
    counter.world.ticks.at += 60
    assert counter.count_balances(SUPERUSER, "account=chem&state=active") == (1, 4), (
        "the project, the allocation, its user, all projects"
    )


def test_facts_about_a_batch_of_refusals_take_a_statement_of_each_kind(
    counter: StatementCounter,
) -> None:
    """The open holds of exhausted allocations, these, and what their users may use; the nearest
    allocations, and the entries of those that are not active.
    """
    much = [report(number, amount=10**12) for number in range(1, 60)]
    assert counter.reads_after_refusal("INSUFFICIENT_CREDIT", *much) == 3
    without_allocation = [
        report(
            number,
            account=("chem", "bio")[number % 2],
            start=NOW - number * DAY,
            submitted=NOW - number * DAY,
        )
        for number in range(100, 160)
    ]
    assert counter.reads_after_refusal("NO_ALLOCATION", without_allocation[0]) <= 2
    many = (*without_allocation[1:], report(2, resource="tape"))
    assert counter.reads_after_refusal("NO_ALLOCATION", *many) <= 2


def test_statement_page_takes_constant_sql_statements(counter: StatementCounter) -> None:
    """They read the allocation with its user's sums, its entries, their runs, and the entry before
    the page; and what undid a deposit, a charge and the like.
    """
    own = counter.world.own["allocation"]
    for number in range(200, 240):
        answer = counter.world.ask(
            "POST",
            "/job",
            AGENT,
            json=report(number, amount=60, start=NOW - 60, submitted=NOW - 60),
        )
        assert answer.status_code == 201, answer.text
    path, deposit = f"/alloc/{own}/deposit", {"amount": 60, "comment": "call 2"}
    assert counter.world.ask("POST", path, SUPERUSER, json=deposit).status_code == 201
    counter.statements.clear()
    page = f"/alloc/{own}/statement?since={NOW - 100 * DAY}"
    for query, most in (
        ("limit=5", 6),
        ("limit=40", 6),
        ("limit=5&after=40", 5),
        ("limit=20&after=40", 5),
    ):
        answer = counter.world.ask("GET", f"{page}&{query}", SUPERUSER)
        assert str(len(answer.json()["data"]["entries"])) in query, answer.text
        assert counter.count_reads() == most, query


def test_entries_with_those_that_undid_them_take_three_sql_statements(
    counter: StatementCounter,
) -> None:
    for limit in (20, 1_000):
        answer = counter.world.ask("GET", f"/entry?limit={limit}", SUPERUSER)
        assert "charge" in {row["kind"] for row in answer.json()["data"]}
        assert counter.count_reads() == 3


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/job", 2),  # and the resources of their allocations
        # And the later runs of their jobs, what their allocations have and hold, and their users.
        ("/failure", 5),
        ("/activity", 2),
        ("/credit", 1),
        ("/predebit", 2),
        ("/alloc?state=active", 2),
        ("/alloc?state=planned", 3),
        ("/project", 1),
    ],
)
def test_list_page_takes_constant_sql_statements(
    counter: StatementCounter, path: str, most: int
) -> None:
    for limit in (1, 100):
        page = f"{path}{'&' if '?' in path else '?'}limit={limit}"
        answer = counter.world.ask("GET", page, SUPERUSER)
        assert answer.status_code == 200, answer.text
        assert counter.count_reads() == most
