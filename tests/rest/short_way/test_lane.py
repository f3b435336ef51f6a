"""The lane is only a shorter way: whoever asks gets the answer that the long way gives, and reports wait for no look at the books."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.time import ManualClock
from fairbank.rest.app import create_app
from fairbank.rest.asking import BODY_MAX
from fairbank.rest.house import furnish
from fairbank.service.services import services
from fairbank.store.contract import Transaction
from fairbank.store.memory.store import MemoryStore
from tests.rest.looked import Looked
from tests.rest.short_way.line import HUGE
from tests.rest.world import AGENT, MEMBER, NOW, OTHER_AGENT, PI, STAFF, SUPERUSER, a_world, report

SHORT, LONG = (
    {"Host": "bank.example.org:8080"},
    {"Host": "bank!"},
)  # an odd name, which the framework takes and the lane does not
JSON = {"Content-Type": "application/json"}


def said(body: object) -> dict[str, Any]:
    return {"content": json.dumps(body).encode(), "headers": JSON}


CASES: Mapping[str, tuple[str, int | None, dict[str, Any], int]] = {
    "a hold": ("/job", AGENT, said(report(1)), 201),
    "a superuser's": ("/job", SUPERUSER, said(report(1)), 201),
    "in bulk": (
        "/job/bulk",
        AGENT,
        said(
            {
                "reports": [
                    report(1),
                    report(2, account="nobody"),
                    {"do": "dance"},
                    report(3, **HUGE),
                ]
            }
        ),
        200,
    ),
    "a refusal": ("/job", AGENT, said(report(1, **HUGE)), 402),
    "an unknown account": ("/job", AGENT, said(report(1, account="nobody")), 404),
    "another's cluster": ("/job", OTHER_AGENT, said(report(1)), 403),
    "a member": ("/job", MEMBER, said(report(1)), 403),
    "nobody": ("/job", None, said(report(1)), 401),
    "as another": (
        "/job",
        SUPERUSER,
        {**said(report(1)), "headers": {**JSON, "X-Fairbank-As": str(PI)}},
        403,
    ),
    "a wrong token": (
        "/job",
        None,
        {**said(report(1)), "headers": {**JSON, "Authorization": "Bearer fbk_" + "x" * 43}},
        401,
    ),
    "an unknown field": ("/job", AGENT, said(report(1, colour="red")), 400),
    "a wrong type": ("/job", AGENT, said(report("one")), 400),  # type: ignore[arg-type]
    "no JSON": ("/job", AGENT, {"content": b"{", "headers": JSON}, 400),
    "no body": ("/job", AGENT, {"headers": JSON}, 400),
    "text": ("/job", AGENT, {"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
    "too large": ("/job/bulk", AGENT, {"content": b" " * (BODY_MAX + 1), "headers": JSON}, 413),
    "nothing in bulk": ("/job/bulk", AGENT, said({"reports": []}), 400),
}


def answer(
    host: dict[str, str], path: str, uid: int | None, more: dict[str, Any]
) -> tuple[Any, ...]:
    """Status, headers and body, in a world of its own."""
    with a_world() as world:
        came = world.ask("POST", path, uid, **{**more, "headers": {**host, **more["headers"]}})
        return came.status_code, sorted(came.headers.items()), came.content


@pytest.mark.parametrize("case", CASES)
def test_both_ways_give_one_answer(case: str) -> None:
    path, uid, more, status = CASES[case]
    short = answer(SHORT, path, uid, more)
    assert short[0] == status
    assert short == answer(LONG, path, uid, more)


def test_only_reports_have_a_lane() -> None:
    house = furnish(
        services(
            MemoryStore(),
            clock=ManualClock(NOW),
            staff=STAFF,
            clusters={},
            policy=Policy(),
            key=b"k" * 32,
        )
    )
    try:
        assert create_app(house).lane == {("POST", "/job"), ("POST", "/job/bulk")}
    finally:
        house.services.close()


@pytest.mark.parametrize(("path", "status"), [("/job?a=1", 400), ("/job/", 201), ("//job", 201)])
def test_what_is_not_plain_takes_the_long_way(path: str, status: int) -> None:
    with a_world() as world:
        assert world.ask("POST", f"http://bank{path}", AGENT, json=report(1)).status_code == status


def test_a_mistake_of_ours_is_told_by_its_number() -> None:
    class Broken(MemoryStore):
        broken = False

        @contextmanager
        def transaction(self) -> Iterator[Transaction]:
            if self.broken:
                raise ZeroDivisionError("secret")
            with super().transaction() as transaction:
                yield transaction

    store = Broken()
    with a_world(store) as world:
        store.broken = True
        came = world.ask("POST", "/job", AGENT, json=report(1))
        store.broken = False
    assert (came.status_code, came.json()["title"]) == (500, "failure")
    assert "secret" not in came.text


def test_reports_of_known_accounts_look_at_the_books_once_in_five_seconds() -> None:
    store = Looked()
    with a_world(store) as world:
        before = store.looks
        for job in (1, 2, 3):
            assert world.ask("POST", "/job", AGENT, json=report(job)).status_code == 201
        assert store.looks == before
        world.ticks.at += 5
        for job in (4, 5):
            assert world.ask("POST", "/job", AGENT, json=report(job)).status_code == 201
        assert store.looks == before + 1


def test_a_bulk_of_unknown_accounts_costs_one_look_at_the_books() -> None:
    store = Looked()
    with a_world(store) as world:
        before = store.looks
        world.ticks.at += 1
        came = world.ask(
            "POST",
            "/job/bulk",
            AGENT,
            json={"reports": [report(job, account=f"no{job}") for job in range(1, 6)]},
        )
        assert [each["status"] for each in came.json()["data"]] == [404] * 5
        assert store.looks == before + 1
