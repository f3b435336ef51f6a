"""Reports from the future, caused by a wrong clock: refused and stored, and accepted when repeated
later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.time import Instant
from fairbank.store.memory.store import MemoryStore
from tests.rest.responses import refused
from tests.rest.world import AGENT, NOW, SUPERUSER, World, a_world, report

TOLERANCE = Policy().clock_tolerance_seconds
FAR = 3_976_214_400  # 2096


@pytest.fixture
def centre() -> Iterator[World]:
    """Bank with the default settings."""
    with a_world(policy=Policy()) as made:
        yield made


def _ended(job: int, end: int, **more: Any) -> dict[str, Any]:
    return report(
        job, **{"do": "complete", "end": end, "elapsed": 60, "state": "COMPLETED", **more}
    )


def _figures(world: World) -> dict[str, Any]:
    card = world.ask("GET", f"/alloc/{world.own['allocation']}", SUPERUSER).json()["data"]
    return {name: card[name] for name in ("held", "charged", "available")}


def test_report_within_clock_tolerance_is_accepted(centre: World) -> None:
    start = NOW + TOLERANCE
    assert (
        centre.ask("POST", "/job", AGENT, json=report(1, start=start, submitted=start)).status_code
        == 201
    )
    assert (
        centre.ask(
            "POST", "/job", AGENT, json=_ended(1, start, start=start, submitted=start)
        ).status_code
        == 201
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (report(1, start=NOW + 20 * 86_400), "start is"),
        (report(1, start=NOW + TOLERANCE + 1), "start is"),
        (report(1, submitted=NOW + TOLERANCE + 1), "submitted is"),
        (
            report(1, do="adjust", start=NOW + 86_400),
            None,
        ),  # without a hold it changes nothing anyway
        (_ended(1, FAR), "end is 2096-01-01T00:00:00Z"),
        (_ended(1, FAR, state="NODE_FAIL"), "end is"),
        (_ended(1, NOW, submitted=FAR), "submitted is"),
    ],
)
def test_report_from_the_future_is_refused_and_stored(
    centre: World, body: dict[str, Any], field: str | None
) -> None:
    before = _figures(centre)
    answer = centre.ask("POST", "/job", AGENT, json={**body, "key": "k"})
    no = answer.json()["refusal"]
    if field is not None:
        assert (answer.status_code, no["reason"]) == (409, "TIMESTAMP_IN_FUTURE")
        assert field in answer.json()["detail"]
        assert f"at most {TOLERANCE} s ahead" in answer.json()["detail"]
        assert "clocks" in answer.json()["remedy"]
    assert centre.ask("GET", f"/failure/{no['entry']}", SUPERUSER).json()["data"]["job_id"] == 1
    assert _figures(centre) == before


def test_limit_change_from_the_future_leaves_the_hold(centre: World) -> None:
    centre.ask("POST", "/job", AGENT, json=report(1))
    before = _figures(centre)
    answer = centre.ask(
        "POST", "/job", AGENT, json=report(1, do="adjust", start=NOW + 86_400, time_limit=7_200)
    )
    assert answer.json()["refusal"]["reason"] == "TIMESTAMP_IN_FUTURE"
    assert _figures(centre) == before


@pytest.mark.parametrize("held", [True, False])
def test_refused_end_is_accepted_when_repeated_later(centre: World, held: bool) -> None:
    """The same report under the same key, as an agent sends it again."""
    if held:
        centre.ask("POST", "/job", AGENT, json=report(1))
    end = {**_ended(1, NOW + 3_600), "key": "end"}
    (row,) = centre.ask("POST", "/job/bulk", AGENT, json={"reports": [end]}).json()["data"]
    assert (row["status"], row["refusal"]["reason"], row["refusal"]["asked"]) == (
        409,
        "TIMESTAMP_IN_FUTURE",
        1,
    )
    before = _figures(centre)
    centre.clock.at = Instant(NOW + 3_600 - TOLERANCE)
    assert centre.ask("POST", "/job", AGENT, json=end).status_code == 201
    assert _figures(centre)["charged"] == before["charged"] + 1
    assert _figures(centre)["held"] == before["held"] - 60 * held


def test_repeated_report_gets_its_answer_at_any_time(centre: World) -> None:
    centre.ask("POST", "/job", AGENT, json=report(1))
    end = _ended(1, NOW + 60)
    assert centre.ask("POST", "/job", AGENT, json=end).status_code == 201
    centre.clock.at = Instant(NOW - 86_400)
    assert centre.ask("POST", "/job", AGENT, json=end).status_code == 200


def test_observing_bank_stores_the_refusal_and_lets_the_job_run() -> None:
    store = MemoryStore()
    with a_world(store), a_world(store, empty=False, policy=Policy(enforce=False)) as centre:
        answer = centre.ask("POST", "/job", AGENT, json=report(1, start=NOW + 86_400))
        assert answer.status_code == 201
        (kept,) = centre.ask("GET", "/failure?job_id=1", SUPERUSER).json()["data"]
        assert kept["reason"] == "TIMESTAMP_IN_FUTURE"
        assert "only observes" in kept["detail"]


def test_clock_tolerance_is_a_setting() -> None:
    with a_world(policy=Policy(clock_tolerance_seconds=0)) as centre:
        assert centre.ask("POST", "/job", AGENT, json=report(1, start=NOW + 1)).status_code == 409


@pytest.mark.parametrize("do", ["hold", "adjust"])
def test_start_long_before_submission_is_refused(centre: World, do: str) -> None:
    refused(
        centre,
        AGENT,
        "POST",
        "/job",
        400,
        "submitted",
        json=report(1, do=do, submitted=NOW, start=NOW - 3_601),
    )
    assert (
        centre.ask(
            "POST", "/job", AGENT, json=report(1, submitted=NOW, start=NOW - 3_600)
        ).status_code
        == 201
    )  # a clock set right


def test_end_is_charged_despite_its_submission_time(centre: World) -> None:
    assert (
        centre.ask("POST", "/job", AGENT, json=_ended(1, NOW, start=NOW - 7_200)).status_code == 201
    )
