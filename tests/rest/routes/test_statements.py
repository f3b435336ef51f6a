"""Statements, HADM's lists of activity, and the last links of the journal."""

from __future__ import annotations

from fractions import Fraction

from fairbank.bank.policy import GrantCategory, GrantRange, Policy
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import Instant, iso
from fairbank.report.columns import instant_of
from tests.rest.responses import data
from tests.rest.world import (
    ADMIN,
    AGENT,
    DAY,
    MEMBER,
    NOW,
    PI,
    SUPERUSER,
    World,
    create_world,
    report,
)

KEY = {"Idempotency-Key": "once"}


def test_series_has_the_sums_of_statements_that_begin_at_equal_distances(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    world.clock.at = Instant(NOW + 5 * DAY)
    world.ask("POST", f"{path}/deposit", SUPERUSER, json={"amount": 60, "comment": "more"})
    world.clock.at = Instant(NOW + 40 * DAY)
    rows = data(world, f"{path}/series?points=9")
    start = instant_of(data(world, path)["start"])
    distance = Fraction(NOW + 40 * DAY - start, 10)
    assert [row["at"] for row in rows] == [
        iso(Instant(int(start + distance * part))) for part in range(1, 10)
    ]
    openings = [
        data(world, f"{path}/statement?limit=1&order=oldest&since={row['at']}")["opening"]
        for row in rows
    ]
    figures = [(row["remaining"], row["held"]) for row in rows]
    assert figures == [(opening["remaining"], opening["held"]) for opening in openings]
    assert len(set(figures)) == 3


def test_planned_allocation_has_no_series(world: World) -> None:
    assert len(data(world, f"/alloc/{world.own['allocation']}/series")) == 60
    assert data(world, f"/alloc/{world.own['later']}/series") == []


def test_statement_has_what_moved_credit_by_default(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement"
    body = data(world, path)
    assert [entry["kind"] for entry in body["entries"]] == ["deposit", "hold", "charge", "hold"]
    assert (body["opening"]["available"], body["closing"]["available"]) == (0, 569_940)
    newest = world.ask("GET", f"{path}?limit=1", ADMIN).json()
    (entry,) = newest["data"]["entries"]
    assert (entry["kind"], entry["available"]) == ("hold", 569_940)
    assert newest["data"]["opening"]["available"] == 570_000
    older = world.ask("GET", f"{path}?limit=2&after={newest['next']}", ADMIN).json()
    assert [entry["kind"] for entry in older["data"]["entries"]] == ["hold", "charge"]
    oldest = data(world, f"{path}?limit=1&order=oldest")
    assert [entry["kind"] for entry in oldest["entries"]] == ["deposit"]
    terms = {"credit_limit": 60, "comment": "trust"}
    world.ask("PATCH", f"/alloc/{world.own['allocation']}", SUPERUSER, json=terms)
    body = data(world, path)
    assert (body["entries"][-1]["kind"], body["closing"]["available"]) == ("terms", 570_000)


def test_credit_in_and_out_of_a_statement_are_the_changes_of_what_remains(world: World) -> None:
    """Job 91 holds 10 SU and uses 4, which are refunded. Job 92 holds 1 SU and uses 2."""
    path = f"/alloc/{world.own['allocation']}"
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED"}
    for sent in (
        report(91, amount=600),
        report(91, **ended, amount=240),
        report(92, amount=60),
        report(92, **ended, amount=120),
    ):
        assert world.ask("POST", "/job", AGENT, json=sent).status_code == 201
    (run,) = data(world, "/job?job_id=91")
    back = {"amount": 240, "comment": "failed node"}
    path_of_job = f"/job/{run['id']}/refund"
    assert world.ask("POST", path_of_job, SUPERUSER, json=back).status_code == 201
    few = world.ask("GET", f"{path}/statement?limit=5", PI).json()["data"]["entries"]
    assert [(row["kind"], row["credit_in"], row["credit_out"]) for row in few] == [
        ("hold", 0, 600),
        ("charge", 360, 0),
        ("hold", 0, 60),
        ("charge", 0, 60),
        ("refund", 240, 0),
    ]
    texts = [(row["display"]["credit_in"], row["display"]["credit_out"]) for row in few]
    assert texts == [("0", "10"), ("6", "0"), ("0", "1"), ("0", "1"), ("4", "0")]
    every = data(world, f"{path}/statement?all=true")
    moved = sum(row["credit_in"] - row["credit_out"] for row in every["entries"])
    assert every["opening"]["remaining"] + moved == every["closing"]["remaining"]


def test_statement_leaves_out_runs_that_moved_nothing_by_default(world: World) -> None:
    """Job 91 is free. Job 92 has a hold of 1 SU, and its end moves that back."""
    path = f"/alloc/{world.own['allocation']}/statement"
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED", "amount": 0}
    for sent in (
        report(91, amount=0),
        report(92, amount=60),
        report(91, **ended),
        report(92, **ended),
    ):
        assert world.ask("POST", "/job", AGENT, json=sent).status_code == 201
    newest = [
        [(entry["job_id"], entry["kind"]) for entry in data(world, path + query)["entries"]]
        for query in ("?limit=2", "?limit=1", "?limit=4&all=true")
    ]
    assert newest == [
        [(92, "hold"), (92, "release")],
        [(92, "release")],
        [(91, "hold"), (92, "hold"), (91, "release"), (92, "release")],
    ]


def test_amounts_in_details_and_changed_terms_have_texts(world: World) -> None:
    """Job 93 holds 1 SU. Its end costs more than all credit, and the rest is written off."""
    path = f"/alloc/{world.own['allocation']}"
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED"}
    for sent in (report(93), report(93, **ended, amount=700_000)):
        assert world.ask("POST", "/job", AGENT, json=sent).status_code == 201
    terms = {"credit_limit": 60, "comment": "trust"}
    assert world.ask("PATCH", path, SUPERUSER, json=terms).status_code == 200
    entries = world.ask("GET", f"{path}/statement?limit=2", PI).json()["data"]["entries"]
    details, changed = entries[0]["details"], entries[1]["changed"]
    written_off = 700_000 - 569_940
    assert (details["written_off"], details["display"]["written_off"]) == (written_off, "2167.67")
    assert changed == {"credit_limit": 60, "display": {"credit_limit": "1"}}
    (entry,) = world.ask("GET", "/entry?limit=1&about=credit", PI).json()["data"]
    assert entry["details"]["display"] == details["display"]


def test_refusals_of_a_statement_name_the_requested_amount_as_all_answers_do(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    much = {"amount": 10**9, "comment": "too much"}
    refused = world.ask("POST", f"{path}/withdraw", SUPERUSER, json=much, headers=KEY)
    refusal = refused.json()["refusal"]
    statement = world.ask("GET", f"{path}/statement?all=true", SUPERUSER).json()["data"]
    details = statement["entries"][-1]["details"]
    names = ("requested", "available")
    assert [details[name] for name in names] == [refusal[name] for name in names]
    assert details["display"] == {name: refusal["display"][name] for name in names}


def test_range_of_a_category_has_texts_in_a_statement() -> None:
    policy = Policy(
        categories={"research": GrantCategory(resources={"cpu": GrantRange(highest=10_000)})}
    )
    with create_world(policy=policy) as world:
        path = f"/alloc/{world.own['allocation']}"
        more = {"credit_limit": 60, "comment": "more"}
        answer = world.ask("PATCH", path, SUPERUSER, json=more, headers=KEY)
        assert answer.status_code == 403
        statement = world.ask("GET", f"{path}/statement?all=true", SUPERUSER).json()["data"]
        facts = statement["entries"][-1]["details"]["facts"]
        assert facts == {
            "category": "research",
            "highest": 600_000,
            "display": {"highest": "10000"},
        }


def test_opening_of_the_oldest_page_is_the_balance_at_its_start(world: World) -> None:
    """One entry suffices to read it, also before the first and after the last entry."""
    path = f"/alloc/{world.own['allocation']}/statement"
    entries = data(world, f"{path}?all=true")["entries"]
    for at in {entry["at"] for entry in entries} | {iso(NOW + DAY)}:
        before = [0, *(entry["available"] for entry in entries if entry["at"] < at)][-1]
        page = data(world, f"{path}?limit=1&order=oldest&since={at}")
        assert page["opening"]["available"] == before, at


def test_declined_requests_are_hidden_from_other_users(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    much = {"amount": 10**9, "comment": "too much"}
    assert (
        world.ask("POST", f"{path}/withdraw", SUPERUSER, json=much, headers=KEY).status_code == 402
    )
    kinds = {
        uid: [entry["kind"] for entry in data(world, f"{path}/statement?all=true", uid)["entries"]]
        for uid in (SUPERUSER, MEMBER)
    }
    assert kinds[SUPERUSER] == [*kinds[MEMBER], "declined"]


def test_reports_wrong_in_themselves_are_hidden_from_other_users(world: World) -> None:
    """Job 91 has a hold. The operator's first charge ends in the future, the second names another
    user; neither is the job's want of credit, which the member's statement has.
    """
    path = f"/alloc/{world.own['allocation']}/statement?all=true"
    assert world.ask("POST", "/job", AGENT, json=report(91, amount=60)).status_code == 201
    ended = {"do": "complete", "elapsed": 60, "state": "COMPLETED", "amount": 60}
    for wrong in ({"end": NOW + 400 * DAY}, {"end": NOW + 60, "owner_uid": PI}):
        answer = world.ask("POST", "/job", SUPERUSER, json=report(91, **ended, **wrong))
        assert answer.status_code == 409, answer.text
    reasons = {
        uid: [
            entry["details"]["reason"]
            for entry in data(world, path, uid)["entries"]
            if entry["kind"] == "refusal"
        ]
        for uid in (SUPERUSER, MEMBER)
    }
    wrong_reports = ["TIMESTAMP_IN_FUTURE", "REPORT_MISMATCH"]
    assert reasons[SUPERUSER] == [*reasons[MEMBER], *wrong_reports]
    assert reasons[MEMBER] == ["INSUFFICIENT_CREDIT"]
    refused = {uid: world.ask("GET", "/failure", uid).json()["data"] for uid in reasons}
    assert [row["reason"] for row in refused[MEMBER]] == ["INSUFFICIENT_CREDIT"]
    newest = refused[SUPERUSER][1::-1]
    assert [row["reason"] for row in newest] == wrong_reports
    for row in newest:
        status = [
            world.ask("GET", f"/failure/{row['id']}", uid).status_code
            for uid in (SUPERUSER, MEMBER)
        ]
        assert status == [200, 404]


def test_statement_adds_up(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement?all=true"
    body = data(world, path)
    assert body["opening"] == {
        "deposited": 0,
        "charged": 0,
        "held": 0,
        "credit_limit": 0,
        "remaining": 0,
        "available": 0,
    }
    assert [entry["kind"] for entry in body["entries"]] == [
        "open",
        "deposit",
        "hold",
        "charge",
        "hold",
        "refusal",
    ]
    assert {key: body["closing"][key] for key in ("deposited", "charged", "held", "available")} == {
        key: body["allocation"][key] for key in ("deposited", "charged", "held", "available")
    }
    charge = body["entries"][3]
    assert (charge["cluster"], charge["owner_uid"], charge["run"], charge["actor"]) == (
        "alpha",
        MEMBER,
        world.own["job"],
        SUPERUSER,
    )
    assert charge["details"]["outcome"] == "COMPLETED"


def test_statement_without_entries_has_the_sums(world: World) -> None:
    body = data(
        world, f"/alloc/{world.own['allocation']}/statement?since={NOW + 1}&until={NOW + 5}"
    )
    assert body["entries"] == []
    assert body["opening"] == body["closing"]
    assert body["opening"]["charged"] == 30_000


def test_activity_lists_have_hadms_fields(shared_world: World) -> None:
    allocation = shared_world.own["allocation"]
    rows = data(shared_world, f"/activity?allocation={allocation}&order=oldest")
    assert [(row["kind"], row["amount"]) for row in rows] == [
        ("deposit", 600_000),
        ("hold", 60_000),
        ("charge", 30_000),
        ("hold", 60),
    ]
    assert {row["allocation_id"] for row in rows} == {allocation}
    predebit = data(shared_world, "/predebit?account=chem")[0]
    assert (predebit["amount"], predebit["status"], predebit["owner_uid"]) == (
        60,
        "executing",
        MEMBER,
    )
    ended = data(shared_world, "/predebit?account=chem&status=completed")
    assert [(row["activity_id"], row["amount"], row["status"]) for row in ended] == [
        (shared_world.own["job"], 0, "completed")
    ]
    assert data(shared_world, "/debit") == [
        {
            "activity_id": shared_world.own["job"],
            "allocation_id": allocation,
            "amount": 30_000,
            "comments": None,
            "owner_uid": MEMBER,
        }
    ]


def test_debits_are_filtered_by_owner_and_have_pages(shared_world: World) -> None:
    (debit,) = data(shared_world, "/debit")
    assert data(shared_world, f"/debit?owner_uid={MEMBER}") == [debit]
    assert data(shared_world, f"/debit?owner_uid={MEMBER + 1}") == []
    page = shared_world.ask("GET", "/debit?limit=1", ADMIN).json()
    assert page["next"] == f"{debit['allocation_id']}-{MEMBER}"
    assert data(shared_world, f"/debit?limit=1&after={page['next']}") == []
    answer = shared_world.ask("GET", "/debit?after=12", ADMIN)
    assert (answer.status_code, answer.json()["field"]) == (400, "after")


def test_sum_of_measured_use_has_no_owner(world: World) -> None:
    """The next page begins after it all the same."""
    ended = {"do": "complete", "end": NOW, "elapsed": 0, "state": "COMPLETED"}
    unused = {"partition", "billing"}
    for more in ({}, ended):
        use = report(900, owner_uid=OVERFLOW_UID, amount=60, resource="cpu", **more)
        body = {name: value for name, value in use.items() if name not in unused}
        answer = world.ask("POST", "/job", AGENT, json=body)
        assert answer.status_code == 201, answer.text
    allocation = world.own["allocation"]
    assert [row["owner_uid"] for row in data(world, "/debit")] == [MEMBER, None]
    users = data(world, f"/alloc/{allocation}/user")
    assert [(row["uid"], row["charged"]) for row in users] == [(MEMBER, 30_000), (None, 60)]
    after = world.ask("GET", "/debit?limit=1", ADMIN).json()["next"]
    assert [row["amount"] for row in data(world, f"/debit?after={after}")] == [60]


def test_predebits_and_activity_have_comments(world: World) -> None:
    for number, billing in ((60, 1), (61, 10**9)):
        world.ask(
            "POST", "/job", AGENT, json=report(number, billing=billing, comment="for the paper")
        )
    world.ask("POST", "/job", AGENT, json=report(62, billing=10**9))
    assert [row["comments"] for row in data(world, "/predebit?account=chem")] == [
        "for the paper",
        None,
    ]
    assert [row["comments"] for row in data(world, "/failure?account=chem&limit=2")] == [
        "not enough credit",
        "for the paper",
    ]


def test_audit_shows_the_last_links(world: World) -> None:
    body = data(world, "/audit", ADMIN)
    assert body["entries"] == world.entries()
    assert [head["allocation"] for head in body["heads"]] == [1, 2, 3, 4]
    assert len(body["registry_link"]) == len(body["heads"][0]["link"]) == 64
    page = world.ask("GET", "/audit?limit=3", ADMIN).json()
    assert (len(page["data"]["heads"]), page["next"]) == (3, "3")
