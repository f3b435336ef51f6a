"""Stored refusals, found by the users concerned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from fairbank.core.time import show_duration
from fairbank.core.units import show_su
from tests.rest.responses import data, ids_of
from tests.rest.world import (
    ADMIN,
    AGENT,
    LATE_REPORTS_POLICY,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    report,
)


def test_refusals_are_found_by_job(world: World) -> None:
    for number in (143, 43):
        world.ask("POST", "/job", AGENT, json=report(number, billing=10**9))
    assert [row["job_id"] for row in data(world, "/failure?job_id=43")] == [43]
    assert data(world, "/failure?job_id=43&cluster=alpha") == data(world, "/failure?job_id=43")


def test_refusal_without_allocation_is_found_by_project(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(44, resource="tape"))
    assert [
        row["job_id"] for row in data(world, "/failure?account=chem&resource=tape", MEMBER)
    ] == [44]
    assert [row["job_id"] for row in data(world, "/failure?account=chem&resource=tape", PI)] == [44]
    assert data(world, "/failure?resource=tape", OTHER_PI) == []


def test_refusal_of_an_unknown_account_is_shown_to_owner_and_staff(world: World) -> None:
    refused = world.ask("POST", "/job", AGENT, json=report(46, account="nosuch"))
    assert (refused.status_code, refused.json()["refusal"]["reason"]) == (404, "UNKNOWN_PROJECT")
    number = refused.json()["refusal"]["entry"]
    for uid in (MEMBER, ADMIN, SUPERUSER):
        row = data(world, f"/failure/{number}", uid)
        assert (row["account"], row["project"], row["owner_uid"], row["job_id"]) == (
            "nosuch",
            None,
            MEMBER,
            46,
        )
        assert number in ids_of(data(world, "/failure", uid))
    for uid in (PI, OTHER_PI, STRANGER):
        assert world.ask("GET", f"/failure/{number}", uid).status_code == 404
        assert number not in ids_of(data(world, "/failure", uid))


def test_end_with_an_unknown_account_is_stored_under_that_name(world: World) -> None:
    ended = report(
        45, account="nosuch", do="complete", end=NOW + 600, elapsed=600, state="COMPLETED"
    )
    refused = world.ask("POST", "/job", AGENT, json=ended)
    assert (refused.status_code, refused.json()["refusal"]["reason"]) == (404, "UNKNOWN_PROJECT")
    assert (
        refused.json()["detail"] == "there is no such project: no project has the account 'nosuch'."
    )
    row = data(world, f"/failure/{refused.json()['refusal']['entry']}", MEMBER)
    assert (row["account"], row["project"], row["requested"], row["owner_uid"]) == (
        "nosuch",
        None,
        10,
        MEMBER,
    )
    assert data(world, "/failure?job_id=45", PI) == []


def test_refused_job_has_remedies(world: World) -> None:
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=1_000_000)).json()
    assert (
        refused["detail"]
        == "not enough credit: requested 1,000,000 SU, available 9,499 SU, short by 990,501 SU."
        " Of 10,000 SU 500 are used, 1 held by 1 running job, which ends by 2026-11-18T11:06:40Z"
        " at the latest."
    )
    row = data(world, f"/failure/{refused['refusal']['entry']}", MEMBER)
    assert (row["job_id"], row["cluster"], row["account"], row["reason"]) == (
        43,
        "alpha",
        "chem",
        "INSUFFICIENT_CREDIT",
    )
    assert row["remedies"] == refused["refusal"]["remedies"]
    assert ids_of(data(world, "/failure"))[0] == row["id"]
    assert data(world, f"/failure?owner_uid={PI}") == []


ONE_JOB = "1 held by 1 running job, which ends by 2026-11-18T11:06:40Z at the latest."


def message_of(world: World, refused: dict[str, Any]) -> str:
    return str(data(world, f"/failure/{refused['refusal']['entry']}", MEMBER)["detail"])


def test_jobs_that_hold_no_credit_are_not_counted(world: World) -> None:
    """Free jobs of 50 h would end later than the job that holds 1 SU."""
    free = {"amount": 0, "time_limit": 180_000}
    assert world.ask("POST", "/job", AGENT, json=report(50, **free)).status_code == 201
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=10**6)).json()
    assert refused["detail"].endswith(ONE_JOB)
    assert world.ask("POST", "/job", AGENT, json=report(51, **free)).status_code == 201
    assert message_of(world, refused).endswith(ONE_JOB)


def test_past_refusal_names_no_job_that_holds_as_much_since(world: World) -> None:
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=10**6)).json()
    first = report(1_000, submitted=NOW - 60, do="complete", end=NOW, elapsed=0, state="COMPLETED")
    ended = world.ask("POST", "/job", AGENT, json=first)
    assert ended.status_code == 201, ended.text
    assert message_of(world, refused).endswith(" Of 10,000 SU 500 are used, 1 held.")
    assert world.ask("POST", "/job", AGENT, json=report(52)).status_code == 201
    assert message_of(world, refused).endswith(" Of 10,000 SU 500 are used, 1 held.")


def test_refused_job_that_was_accepted_later_is_marked(world: World) -> None:
    """Job 43 requests 1,000,000 SU and is refused; its next request is smaller, and is charged."""
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=1_000_000)).json()
    path = f"/failure/{refused['refusal']['entry']}"
    assert (data(world, "/failure")[0]["later_state"], data(world, path)["later_state"]) == (
        None,
        None,
    )
    assert world.ask("POST", "/job", AGENT, json=report(43)).status_code == 201
    assert data(world, "/failure")[0]["later_state"] == "held"
    ended = report(43, do="complete", end=NOW + 600, elapsed=600, state="COMPLETED")
    assert world.ask("POST", "/job", AGENT, json=ended).status_code in (200, 201)
    assert (data(world, "/failure")[0]["later_state"], data(world, path)["later_state"]) == (
        "charged",
        "charged",
    )


def test_later_run_is_the_first_of_the_same_owner(world: World) -> None:
    """A cluster uses its numbers again, so the newest run of a number may be of anybody."""
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=10**6)).json()["refusal"]
    path = f"/failure/{refused['entry']}"
    of_other = report(43, account="bio", owner_uid=OTHER_PI, submitted=NOW + 1)
    assert world.ask("POST", "/job", AGENT, json=of_other).status_code == 201
    assert data(world, path)["later_state"] is None
    accepted = report(43, submitted=NOW)
    for later in (accepted, report(43, submitted=NOW + 2)):
        assert world.ask("POST", "/job", AGENT, json=later).status_code == 201
    ended = {**accepted, "do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED"}
    assert world.ask("POST", "/job", AGENT, json=ended).status_code in (200, 201)
    assert data(world, path)["later_state"] == "charged"


def test_run_accepted_before_the_refusal_is_not_a_later_one(world: World) -> None:
    """The limit of a running job cannot be raised: its run was accepted before."""
    assert world.ask("POST", "/job", AGENT, json=report(43)).status_code == 201
    longer = report(43, do="adjust", time_limit=7_200, billing=10**6)
    refused = world.ask("POST", "/job", AGENT, json=longer).json()["refusal"]
    assert data(world, f"/failure/{refused['entry']}")["later_state"] is None


def set_cap(world: World, cap: int) -> None:
    path = f"/alloc/{world.own['allocation']}/cap/{MEMBER}"
    assert world.ask("PUT", path, PI, json={"cap": cap}).status_code == 200


def test_job_is_submitted_again_only_if_the_cap_of_its_owner_pays_it(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    for number in (43, 44):  # the first lacks credit, the second exceeds the cap
        assert world.ask("POST", "/job", AGENT, json=report(number, billing=20_000)).is_error
        set_cap(world, 60)
    more = {"amount": 60 * 30_000, "comment": "call 3"}
    assert world.ask("POST", f"{path}/deposit", SUPERUSER, json=more).status_code == 201
    for number, reason in ((43, "INSUFFICIENT_CREDIT"), (44, "CAPPED")):
        set_cap(world, 60 * 10_000)
        (row,) = data(world, f"/failure?job_id={number}")
        assert row["reason"] == reason
        assert not [remedy for remedy in row["remedies"] if "again" in remedy]
        set_cap(world, 60 * 25_000)
        (row,) = data(world, f"/failure?job_id={number}")
        assert row["remedies"] == ["submit the job again: 24,499 SU are available now"]


def test_remedies_of_a_refusal_are_those_of_the_present_credit(world: World) -> None:
    """Since the refusal, another job took credit, and staff froze and ended the allocation."""

    def remedies() -> list[str]:
        (row,) = data(world, "/failure?job_id=43")
        texts: list[str] = row["remedies"]
        return texts

    def change(event: str) -> None:
        body = {"event": event, "comment": "audit"}
        assert world.ask("PATCH", path, SUPERUSER, json=body).status_code == 200

    number = world.own["allocation"]
    path = f"/alloc/{number}"
    assert world.ask("POST", "/job", AGENT, json=report(43, billing=20_000)).is_error
    assert world.ask("POST", "/job", AGENT, json=report(44, billing=600)).status_code == 201
    row = data(world, path)
    left = row["remaining"]
    limit = show_duration(left * 60 // 20_000 // 60 * 60)
    missing = -(-(20_000 * 60 - left) // 60)
    assert remedies() == [
        f"a shorter time limit: -t {limit} ({show_su(left)} SU are available now)",
        f"more credit, by staff: fairbank deposit {number} {missing} --reason '...'",
    ]
    set_cap(world, 60 * 1_200)  # of which the second job and one before have 1,101
    assert remedies()[-1] == (
        f"{show_su(left)} SU remain in all, so both are needed: a higher cap, by the PI, a"
        f" coordinator or staff: fairbank alloc cap {number} {MEMBER} 21101; and more credit, by"
        f" staff: fairbank deposit {number} {missing} --reason '...'"
    )
    set_cap(world, 60 * 21_101)
    deposit = {"amount": 60 * missing, "comment": "call 3"}
    assert world.ask("POST", f"{path}/deposit", SUPERUSER, json=deposit).status_code == 201
    assert remedies() == ["submit the job again: 20,000 SU are available now"]
    change("freeze")
    assert remedies() == [f"have it thawed, by staff: fairbank alloc thaw {number} --reason '...'"]
    change("end")
    assert remedies() == [
        f"allocation {number} is ended now; list what may pay: fairbank alloc list -A chem"
        " --state active"
    ]


def remedies_of(world: World, job_id: int) -> list[str]:
    (row,) = data(world, f"/failure?job_id={job_id}")
    shown: list[str] = data(world, f"/failure/{row['id']}")["remedies"]
    assert row["remedies"] == shown
    return shown


@pytest.fixture
def observing(world: World) -> Iterator[World]:
    """Provide a server on the same ledger whose bank only observes."""
    policy = msgspec.structs.replace(LATE_REPORTS_POLICY, enforce=False)
    with create_world(world.context.services.store, empty=False, policy=policy) as made:
        made.own = world.own
        yield made


@pytest.mark.parametrize("do", ["hold", "adjust"])
def test_job_that_ran_all_the_same_does_not_count_twice_in_its_remedies(
    observing: World, do: str
) -> None:
    """The bank only observes, so the hold of the job followed its refusal."""
    path = f"/alloc/{observing.own['allocation']}"
    if do == "adjust":
        assert observing.ask("POST", "/job", AGENT, json=report(43)).status_code == 201
    ran = observing.ask("POST", "/job", AGENT, json=report(43, do=do, billing=20_000))
    assert ran.status_code == 201
    (row,) = data(observing, "/failure?job_id=43")
    needed = [
        f"more credit, by staff: fairbank deposit {observing.own['allocation']}"
        f" {-(-row['shortfall'] // 60)} --reason '...'"
    ]
    assert remedies_of(observing, 43)[-1:] == needed
    deposit = {"amount": 60 * 100_000, "comment": "call 3"}
    assert observing.ask("POST", f"{path}/deposit", SUPERUSER, json=deposit).status_code == 201
    assert remedies_of(observing, 43)[-1:] == needed


def test_job_that_ran_all_the_same_is_not_submitted_again_after_a_thaw(observing: World) -> None:
    number = observing.own["allocation"]
    for event in ("freeze", "thaw"):
        body = {"event": event, "comment": "audit"}
        assert observing.ask("PATCH", f"/alloc/{number}", SUPERUSER, json=body).status_code == 200
        assert observing.ask("POST", "/job", AGENT, json=report(43)).status_code in (200, 201)
    assert remedies_of(observing, 43) == ["nothing is to do"]


def test_new_time_limit_is_paid_by_the_allocation_of_its_job_even_after_the_end(
    world: World,
) -> None:
    """Staff end the allocation while the job runs; only a deposit into it, or a cap, helps."""
    number = world.own["allocation"]
    path = f"/alloc/{number}"
    assert world.ask("POST", "/job", AGENT, json=report(43)).status_code == 201
    longer = report(43, do="adjust", billing=20_000)
    refused = world.ask("POST", "/job", AGENT, json=longer).json()["refusal"]
    needed = [
        f"more credit, by staff: fairbank deposit {number} {-(-refused['shortfall'] // 60)}"
        " --reason '...'"
    ]
    assert refused["remedies"] == needed
    ended = {"event": "end", "comment": "audit"}
    assert world.ask("PATCH", path, SUPERUSER, json=ended).status_code == 200
    assert remedies_of(world, 43) == needed
    deposit = {"amount": 60 * 20_000, "comment": "call 3"}
    assert world.ask("POST", f"{path}/deposit", SUPERUSER, json=deposit).status_code == 201
    assert remedies_of(world, 43)[0].startswith("change its time limit again: ")
    assert world.ask("POST", "/job", AGENT, json=longer).status_code == 201


def test_new_time_limit_is_changed_again_after_a_thaw(world: World) -> None:
    number = world.own["allocation"]
    assert world.ask("POST", "/job", AGENT, json=report(43)).status_code == 201

    def change(event: str) -> None:
        body = {"event": event, "comment": "audit"}
        assert world.ask("PATCH", f"/alloc/{number}", SUPERUSER, json=body).status_code == 200

    change("freeze")
    assert world.ask("POST", "/job", AGENT, json=report(43, do="adjust", billing=2)).is_error
    assert remedies_of(world, 43) == [
        f"have it thawed, by staff: fairbank alloc thaw {number} --reason '...'"
    ]
    change("thaw")
    assert remedies_of(world, 43) == ["change its time limit again: 9,498 SU are available now"]


def test_job_refused_by_a_freeze_is_not_helped_by_a_thaw_after_the_period(world: World) -> None:
    number = world.own["allocation"]

    def change(event: str) -> None:
        body = {"event": event, "comment": "audit"}
        assert world.ask("PATCH", f"/alloc/{number}", SUPERUSER, json=body).status_code == 200

    assert world.ask("POST", "/job", AGENT, json=report(44)).status_code == 201
    change("freeze")
    assert world.ask("POST", "/job", AGENT, json=report(43)).is_error
    assert world.ask("POST", "/job", AGENT, json=report(44, do="adjust", billing=2)).is_error
    thaw = [f"have it thawed, by staff: fairbank alloc thaw {number} --reason '...'"]
    assert (remedies_of(world, 43), remedies_of(world, 44)) == (thaw, thaw)
    change("end")
    ended = [
        f"allocation {number} is ended now; list what may pay: fairbank alloc list -A chem"
        " --state active"
    ]
    # A freeze outlives the end, and the running job is paid by no other allocation.
    assert (remedies_of(world, 43), remedies_of(world, 44)) == (ended, thaw)


def test_job_refused_by_a_freeze_needs_credit_that_was_withdrawn_since(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    for event in ("freeze", "thaw"):
        body = {"event": event, "comment": "audit"}
        assert world.ask("PATCH", path, SUPERUSER, json=body).status_code == 200
        if event == "freeze":
            assert world.ask("POST", "/job", AGENT, json=report(43)).is_error
    withdrawal = {"amount": data(world, path)["remaining"], "comment": "over"}
    assert world.ask("POST", f"{path}/withdraw", SUPERUSER, json=withdrawal).status_code == 201
    assert remedies_of(world, 43)[-1].startswith("more credit, by staff: fairbank deposit ")


@pytest.mark.parametrize("job_id", [43, 44])
def test_refusal_has_no_remedies_once_its_job_was_accepted_or_has_ended(
    world: World, job_id: int
) -> None:
    """The start of job 43 is refused, and a new time limit of the running job 44."""
    if job_id == 44:
        assert world.ask("POST", "/job", AGENT, json=report(44)).status_code == 201
    do = "hold" if job_id == 43 else "adjust"
    refused = world.ask("POST", "/job", AGENT, json=report(job_id, do=do, billing=10**6))
    assert refused.is_error
    (row,) = data(world, f"/failure?job_id={job_id}")
    assert (row["later_state"], len(row["remedies"]) > 0) == (None, True)
    if job_id == 43:
        assert world.ask("POST", "/job", AGENT, json=report(43)).status_code == 201
        assert remedies_of(world, 43) == []
    ended = report(job_id, do="complete", end=NOW + 600, elapsed=600, state="COMPLETED")
    assert world.ask("POST", "/job", AGENT, json=ended).status_code in (200, 201)
    assert remedies_of(world, job_id) == []
    assert data(world, f"/failure?job_id={job_id}")[0]["later_state"] == "charged"
