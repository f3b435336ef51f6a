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
from tests.rest.world import AGENT, NOW, SUPERUSER, World, create_world, report

TOLERANCE = Policy().clock_tolerance_seconds
YEAR_2096 = 3_976_214_400


@pytest.fixture
def default_world() -> Iterator[World]:
    """Provide a world with default settings."""
    with create_world(policy=Policy()) as made:
        yield made


def _end_report(job: int, end: int, **more: Any) -> dict[str, Any]:
    return report(
        job, **{"do": "complete", "end": end, "elapsed": 60, "state": "COMPLETED", **more}
    )


def _amounts(world: World) -> dict[str, Any]:
    allocation = world.ask("GET", f"/alloc/{world.own['allocation']}", SUPERUSER).json()["data"]
    return {name: allocation[name] for name in ("held", "charged", "available")}


def test_report_within_clock_tolerance_is_accepted(default_world: World) -> None:
    start = NOW + TOLERANCE
    assert (
        default_world.ask(
            "POST", "/job", AGENT, json=report(1, start=start, submitted=start)
        ).status_code
        == 201
    )
    assert (
        default_world.ask(
            "POST", "/job", AGENT, json=_end_report(1, start, start=start, submitted=start)
        ).status_code
        == 201
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (report(1, start=NOW + 20 * 86_400), "start is"),
        (report(1, start=NOW + TOLERANCE + 1), "start is"),
        (report(1, submitted=NOW + TOLERANCE + 1), "submitted is"),
        (report(1, do="adjust", start=NOW + 86_400), None),  # without a hold it changes nothing
        (_end_report(1, YEAR_2096), "end is 2096-01-01T00:00:00Z"),
        (_end_report(1, YEAR_2096, state="NODE_FAIL"), "end is"),
        (_end_report(1, NOW, submitted=YEAR_2096), "submitted is"),
    ],
)
def test_report_from_the_future_is_refused_and_stored(
    default_world: World, body: dict[str, Any], field: str | None
) -> None:
    before = _amounts(default_world)
    answer = default_world.ask("POST", "/job", AGENT, json={**body, "key": "k"})
    refusal = answer.json()["refusal"]
    if field is not None:
        assert (answer.status_code, refusal["reason"]) == (409, "TIMESTAMP_IN_FUTURE")
        assert field in answer.json()["detail"]
        assert f"at most {TOLERANCE} s ahead" in answer.json()["detail"]
        assert "clocks" in answer.json()["remedy"]
    assert (
        default_world.ask("GET", f"/failure/{refusal['entry']}", SUPERUSER).json()["data"]["job_id"]
        == 1
    )
    assert _amounts(default_world) == before


def test_limit_change_from_the_future_leaves_the_hold(default_world: World) -> None:
    default_world.ask("POST", "/job", AGENT, json=report(1))
    before = _amounts(default_world)
    answer = default_world.ask(
        "POST", "/job", AGENT, json=report(1, do="adjust", start=NOW + 86_400, time_limit=7_200)
    )
    assert answer.json()["refusal"]["reason"] == "TIMESTAMP_IN_FUTURE"
    assert _amounts(default_world) == before


@pytest.mark.parametrize("held", [True, False])
def test_refused_end_is_accepted_when_repeated_later(default_world: World, held: bool) -> None:
    """The same report under the same key, as an agent sends it again."""
    if held:
        default_world.ask("POST", "/job", AGENT, json=report(1))
    end = {**_end_report(1, NOW + 3_600), "key": "end"}
    (row,) = default_world.ask("POST", "/job/bulk", AGENT, json={"reports": [end]}).json()["data"]
    assert (row["status"], row["refusal"]["reason"], row["refusal"]["requested"]) == (
        409,
        "TIMESTAMP_IN_FUTURE",
        1,
    )
    before = _amounts(default_world)
    default_world.clock.at = Instant(NOW + 3_600 - TOLERANCE)
    assert default_world.ask("POST", "/job", AGENT, json=end).status_code == 201
    assert _amounts(default_world)["charged"] == before["charged"] + 1
    assert _amounts(default_world)["held"] == before["held"] - 60 * held


def test_repeated_report_gets_its_answer_at_any_time(default_world: World) -> None:
    default_world.ask("POST", "/job", AGENT, json=report(1))
    end = _end_report(1, NOW + 60)
    assert default_world.ask("POST", "/job", AGENT, json=end).status_code == 201
    default_world.clock.at = Instant(NOW - 86_400)
    assert default_world.ask("POST", "/job", AGENT, json=end).status_code == 200


def test_observing_bank_stores_the_refusal_and_lets_the_job_run() -> None:
    store = MemoryStore()
    with (
        create_world(store),
        create_world(store, empty=False, policy=Policy(enforce=False)) as default_world,
    ):
        answer = default_world.ask("POST", "/job", AGENT, json=report(1, start=NOW + 86_400))
        assert answer.status_code == 201
        (stored,) = default_world.ask("GET", "/failure?job_id=1", SUPERUSER).json()["data"]
        assert stored["reason"] == "TIMESTAMP_IN_FUTURE"
        assert "only observes" in stored["detail"]


def test_clock_tolerance_is_a_setting() -> None:
    with create_world(policy=Policy(clock_tolerance_seconds=0)) as default_world:
        assert (
            default_world.ask("POST", "/job", AGENT, json=report(1, start=NOW + 1)).status_code
            == 409
        )


@pytest.mark.parametrize("do", ["hold", "adjust"])
def test_start_long_before_submission_is_refused(default_world: World, do: str) -> None:
    refused(
        default_world,
        AGENT,
        "POST",
        "/job",
        400,
        "submitted",
        json=report(1, do=do, submitted=NOW, start=NOW - 3_601),
    )
    assert (
        default_world.ask(
            "POST", "/job", AGENT, json=report(1, submitted=NOW, start=NOW - 3_600)
        ).status_code
        == 201
    )  # the clock was corrected


def test_end_is_charged_despite_its_submission_time(default_world: World) -> None:
    assert (
        default_world.ask(
            "POST", "/job", AGENT, json=_end_report(1, NOW, start=NOW - 7_200)
        ).status_code
        == 201
    )
