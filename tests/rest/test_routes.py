"""The routes at work: what is entered, moved and reported is found again where people look for it."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.values.time import Instant, iso
from tests.rest.world import (
    ADMIN,
    AGENT,
    COORDINATOR,
    DAY,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    grant,
    report,
)

WHY = {"comment": "a reason"}


def data(world: World, path: str, uid: int = PI) -> Any:
    answer = world.ask("GET", path, uid)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def ids_of(rows: list[dict[str, Any]]) -> list[int]:
    return [each["id"] for each in rows]


# --- projects ---


def test_a_project_is_entered_and_found_by_any_of_its_names(world: World) -> None:
    made = world.ask("POST", "/project", SUPERUSER, json={"gname": "phys", "gid": 4_000, "account": "physics", "parent": 1})
    assert made.status_code == 201
    row = made.json()["data"]
    told = {"id": row["id"], "gname": "phys", "gid": 4_000, "account": "physics", "parent": 1, "removed": False, "entry": row["entry"]}
    assert row == told
    assert row["entry"] > 0
    for query in ("gname=phys", "gid=4000", "account=physics"):
        assert ids_of(data(world, f"/project?{query}", SUPERUSER)) == [row["id"]]
    again = world.ask("POST", "/project", SUPERUSER, json={"gname": "phys", "gid": 4_000, "account": "physics", "parent": 1})
    assert again.status_code == 200
    assert again.json()["data"] == row | {"entry": None}  # it was there: nothing was written


def test_a_projects_account_is_named_like_its_group_unless_said(world: World) -> None:
    assert world.ask("POST", "/project", SUPERUSER, json={"gname": "phys", "gid": 4_000}).json()["data"]["account"] == "phys"


def test_members_come_and_go(world: World) -> None:
    path = f"/project/{world.own['project']}"
    assert world.ask("PUT", f"{path}/member/{STRANGER}", COORDINATOR, json={"role": "member", "comment": "new"}).status_code == 200
    assert {"uid": STRANGER, "role": "member"} in data(world, f"{path}/member")
    assert data(world, path)["members"] == data(world, f"{path}/member")
    assert ids_of(data(world, "/project", STRANGER)) == [world.own["project"]]
    assert world.ask("DELETE", f"{path}/member/{STRANGER}", COORDINATOR).status_code == 200
    assert data(world, "/project", STRANGER) == []


# --- allocations ---


def test_an_allocation_is_granted_and_shown(world: World) -> None:
    made = world.ask("POST", "/alloc", SUPERUSER, json=grant(credit_limit=50, shared=True))
    row = made.json()["data"]
    entry = row.pop("entry")
    assert made.status_code == 201
    assert data(world, f"/entry?allocation={row['id']}&limit=1")[0]["id"] == entry
    assert row == {
        "id": row["id"], "project": world.own["project"], "account": "chem", "gname": "chem", "resource": "gpu", "category": "research",
        "start": iso(NOW), "end": iso(NOW + 90 * DAY), "state": "active", "shared": True, "credit_limit": 50, "deposited": 6_000,
        "charged": 0, "held": 0, "available": 6_050,
    }  # fmt: skip
    assert data(world, f"/alloc/{row['id']}", MEMBER) == row
    assert made.json()["schema"] == "fairbank.allocation/1"
    assert made.json()["as_of"] == iso(NOW)


def test_a_grant_under_a_key_is_made_once(world: World) -> None:
    answers = [world.ask("POST", "/alloc", SUPERUSER, json=grant(), headers={"Idempotency-Key": "g1"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 200]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("query", "which"),
    [
        ("", ["allocation", "later"]),
        ("?account=chem", ["allocation", "later"]),
        ("?gname=chem&resource=cpu", ["allocation", "later"]),
        ("?resource=gpu", []),
        ("?category=research&limit=1", ["allocation"]),
        ("?active-at=now", ["allocation"]),
        (f"?active-at={NOW + 100 * DAY}", ["later"]),
        ("?state=frozen", []),
        ("?state=active", ["allocation"]),
        ("?state=planned", ["later"]),
        ("?state=ended", []),
        ("?account=bio", []),
        ("?gid=1&account=chem", []),
    ],
)
def test_allocations_are_filtered(old_world: World, query: str, which: list[str]) -> None:
    assert ids_of(data(old_world, f"/alloc{query}")) == [old_world.own[each] for each in which]


def test_balances_are_of_what_is_active_unless_said(old_world: World) -> None:
    assert ids_of(data(old_world, "/balance")) == [old_world.own["allocation"]]
    assert ids_of(data(old_world, "/balance?all=true")) == [old_world.own["allocation"], old_world.own["later"]]
    assert data(old_world, "/balance")[0]["used_percent"] == 5  # 30,000 of 600,000


def test_pages_follow_each_other(world: World) -> None:
    seen: list[int] = []
    after = ""
    for _ in range(10):
        answer = world.ask("GET", f"/alloc?limit=1{after}", SUPERUSER).json()
        seen += ids_of(answer["data"])
        if answer["next"] is None:
            break
        after = f"&after={answer['next']}"
    assert seen == sorted([world.own["allocation"], world.own["later"], world.foreign["allocation"], world.foreign["later"]])


def test_an_allocations_life(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    for event, state in (("freeze", "frozen"), ("thaw", "active"), ("end", "ended")):
        assert world.ask("PATCH", path, SUPERUSER, json={"event": event, **WHY}).json()["data"]["state"] == state
    over = world.ask("PATCH", path, SUPERUSER, json={"event": "reopen", **WHY})
    assert (over.status_code, over.json()["refusal"]["reason"]) == (409, "OVER")
    longer = {"event": "reopen", "end": str(NOW + DAY), **WHY}
    assert world.ask("PATCH", path, SUPERUSER, json=longer).json()["data"]["state"] == "active"
    again = world.ask("PATCH", path, SUPERUSER, json={"event": "thaw", **WHY})
    assert (again.status_code, again.json()["refusal"]["reason"]) == (409, "WRONG_STATE")


def test_the_state_shown_is_that_of_the_clock(world: World) -> None:
    of = {which: f"/alloc/{world.own[which]}" for which in ("allocation", "later")}
    assert [data(world, of[which])["state"] for which in of] == ["active", "planned"]
    world.clock.at = Instant(NOW + 365 * DAY)  # nobody swept
    assert data(world, of["allocation"])["state"] == data(world, f"{of['allocation']}/statement")["allocation"]["state"] == "ended"
    assert {row["id"]: row["state"] for row in data(world, "/balance?all=true")}[world.own["allocation"]] == "ended"
    assert world.own["allocation"] not in ids_of(data(world, "/balance"))


def test_terms_change(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    row = world.ask("PATCH", path, SUPERUSER, json={"start": str(NOW - DAY), "credit_limit": 60, "shared": True, **WHY}).json()["data"]
    assert (row["start"], row["credit_limit"], row["shared"]) == (iso(NOW - DAY), 60, True)


def test_credit_moves(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    before = data(world, path)["available"]
    deposit = world.ask("POST", f"{path}/deposit", SUPERUSER, json={"amount": 600, **WHY}).json()["data"]
    assert (deposit["amount"], deposit["available"], deposit["allocation"]) == (600, before + 600, world.own["allocation"])
    assert world.ask("POST", f"{path}/withdraw", SUPERUSER, json={"amount": 100, **WHY}).json()["data"]["available"] == before + 500
    moved = world.ask("POST", f"{path}/transfer", PI, json={"to": world.own["later"], "amount": 500, **WHY}).json()["data"]
    assert moved["available"] == before
    assert [each["amount"] for each in data(world, f"/credit?allocation={world.own['allocation']}")[:3]] == [-500, -100, 600]
    assert data(world, f"/credit?allocation={world.own['later']}")[0]["amount"] == 500


def test_more_than_there_is_cannot_be_taken_out(world: World) -> None:
    answer = world.ask("POST", f"/alloc/{world.own['allocation']}/withdraw", SUPERUSER, json={"amount": 10**9, **WHY})
    assert answer.status_code == 402
    assert answer.json()["refusal"]["available"] == 600_000 - 30_000 - 60


def test_a_user_is_capped(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    assert world.ask("PUT", f"{path}/cap/{MEMBER}", PI, json={"cap": 30_070}).status_code == 200
    assert data(world, f"{path}/user") == [{"uid": MEMBER, "charged": 30_000, "held": 60, "cap": 30_070}]
    refused = world.ask("POST", "/job", AGENT, json=report(1))
    assert (refused.status_code, refused.json()["refusal"]["reason"], refused.json()["refusal"]["available"]) == (402, "CAPPED", 10)
    world.ask("PUT", f"{path}/cap/{MEMBER}", PI, json={"cap": None})
    assert world.ask("POST", "/job", AGENT, json=report(1)).status_code == 201


# --- statements ---


def test_a_statement_adds_up(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement"
    told = data(world, path)
    assert told["opening"] == {"deposited": 0, "charged": 0, "held": 0, "credit_limit": 0, "available": 0}
    assert [each["kind"] for each in told["entries"]] == ["open", "deposit", "hold", "charge", "hold", "refusal"]
    assert {key: told["closing"][key] for key in ("deposited", "charged", "held", "available")} == {
        key: told["allocation"][key] for key in ("deposited", "charged", "held", "available")
    }
    charge = told["entries"][3]
    assert (charge["cluster"], charge["owner_uid"], charge["run"], charge["actor"]) == ("alpha", MEMBER, world.own["job"], SUPERUSER)
    assert charge["details"]["outcome"] == "COMPLETED"


def test_a_statement_comes_in_pages_that_join(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement"
    first = world.ask("GET", f"{path}?limit=3", PI).json()
    second = world.ask("GET", f"{path}?limit=3&after={first['next']}", PI).json()
    assert second["data"]["opening"] == first["data"]["closing"]
    assert first["data"]["entries"] + second["data"]["entries"] == data(world, path)["entries"]


def test_a_statement_of_a_time_without_entries_says_how_things_stood(world: World) -> None:
    told = data(world, f"/alloc/{world.own['allocation']}/statement?since={NOW + 1}&until={NOW + 5}")
    assert told["entries"] == []
    assert told["opening"] == told["closing"]
    assert told["opening"]["charged"] == 30_000


# --- runs ---


def test_a_run_from_its_hold_to_its_charge(world: World) -> None:
    held = world.ask("POST", "/job", AGENT, json=report(42, billing=None, tres="cpu=2, mem=1G,node=1", name="relax w64", qos="high"))
    assert held.json()["data"]["amount"] == 120  # two CPUs for an hour
    longer = world.ask("POST", "/job", AGENT, json=report(42, do="adjust", billing=2, time_limit=7_200))
    assert (longer.status_code, longer.json()["data"]["amount"]) == (201, 120)
    told = {"exit_code": 2, "cpu_seconds": 1_200}
    end = report(42, do="complete", billing=2, time_limit=0, end=NOW + 1_800, elapsed=1_800, state="FAILED", **told)
    ended = world.ask("POST", "/job", AGENT, json=end)
    assert (ended.json()["data"]["amount"], ended.json()["data"]["written_off"]) == (60, 0)
    number = held.json()["data"]["run"]
    row = data(world, f"/job/{number}", MEMBER)
    assert row == {
        "id": number, "cluster": "alpha", "job_id": 42, "submitted": iso(NOW), "restart": 0, "project": 1, "account": "chem",
        "allocation": world.own["allocation"], "owner_uid": MEMBER, "partition": "std", "state": "charged", "status": "completed",
        "held": 0, "charged": 60, "refunded": 0, "written_off": 0, "start": iso(NOW), "until": row["until"], "ended": iso(NOW + 1_800),
        "outcome": "FAILED", "elapsed": 1_800, "set_by": ended.json()["data"]["entry"],
        "name": "relax w64", "qos": "high", "nodes": 1, "cpus": 2, "tres": "cpu=2,mem=1G,node=1", "time_limit": 7_200,
        "exit_code": 2, "exit_signal": 0, "cpu_seconds": 1_200,
    }  # fmt: skip


def test_of_a_run_of_which_only_the_cost_was_told_the_rest_is_null(old_world: World) -> None:
    row = data(old_world, f"/job/{old_world.own['job']}")
    untold = ("name", "qos", "nodes", "cpus", "tres", "time_limit", "exit_code", "exit_signal", "cpu_seconds")
    assert [row[each] for each in untold] == [None] * 9


def test_what_many_reports_tell_of_their_runs_is_kept(world: World) -> None:
    said = [report(number, nodes=number, name=f"step-{number}") for number in (61, 62)]
    assert [each["status"] for each in world.ask("POST", "/job/bulk", AGENT, json={"reports": said}).json()["data"]] == [201, 201]
    assert {(each["name"], each["nodes"]) for each in data(world, "/job?limit=2")} == {("step-61", 61), ("step-62", 62)}


def test_a_node_that_fails_costs_nothing(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(42))
    ended = world.ask("POST", "/job", AGENT, json=report(42, do="complete", end=NOW + 60, elapsed=60, state="NODE_FAIL"))
    assert data(world, f"/job/{ended.json()['data']['run']}")["state"] == "released"


def test_the_end_of_a_run_nobody_heard_of_is_charged_late(world: World) -> None:
    ended = world.ask("POST", "/job", AGENT, json=report(42, do="complete", end=NOW + 600, elapsed=600, state="COMPLETED"))
    assert (ended.status_code, ended.json()["data"]["amount"]) == (201, 10)


def test_runs_are_filtered(world: World) -> None:
    number = world.ask("POST", "/job", AGENT, json=report(42)).json()["data"]["run"]
    for query in ("job_id=42", f"since={NOW}&state=held&limit=1", "cluster=alpha&partition=std", f"owner_uid={MEMBER}&limit=1"):
        assert ids_of(data(world, f"/job?{query}"))[0] == number
    for query in ("job_id=41", "state=lapsed", "cluster=beta", "partition=x", f"until={NOW - DAY}", "account=bio", "allocation=99"):
        assert data(world, f"/job?{query}") == []
    newest, oldest = ids_of(data(world, "/job")), ids_of(data(world, "/job?order=oldest"))
    assert newest == oldest[::-1]
    assert newest[0] == number


@pytest.mark.parametrize("path", ["/job", "/failure"])
@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("account=chem", True),
        ("gname=chem", True),
        ("project=1", True),
        ("resource=cpu", True),
        ("active-at=now", True),
        (f"active-at={NOW}&category=research&resource=cpu&gname=chem&cluster=alpha", True),
        ("gid=1", False),
        ("gname=nosuch", False),
        ("project=2", False),
        ("resource=gpu", False),
        ("category=startup", False),
        (f"active-at={NOW + 100 * DAY}", False),
        ("cluster=beta", False),
        ("job_id=999", False),
    ],
)
def test_runs_and_refusals_are_filtered_by_project_and_allocation(old_world: World, path: str, query: str, fits: bool) -> None:
    assert bool(data(old_world, f"{path}?{query}")) == fits


def test_refusals_are_found_by_their_job(world: World) -> None:
    for number in (143, 43):
        world.ask("POST", "/job", AGENT, json=report(number, billing=10**9))
    assert [each["job_id"] for each in data(world, "/failure?job_id=43")] == [43]
    assert data(world, "/failure?job_id=43&cluster=alpha") == data(world, "/failure?job_id=43")


def test_a_refusal_that_met_no_allocation_is_found_by_its_project(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(44, resource="tape"))
    assert [each["job_id"] for each in data(world, "/failure?account=chem&resource=tape", MEMBER)] == [44]
    assert [each["job_id"] for each in data(world, "/failure?account=chem&resource=tape", PI)] == [44]
    assert data(world, "/failure?resource=tape", OTHER_PI) == []


def test_a_job_of_an_unknown_account_is_refused_and_kept_for_its_owner_and_staff(world: World) -> None:
    refused = world.ask("POST", "/job", AGENT, json=report(46, account="nosuch"))
    assert (refused.status_code, refused.json()["refusal"]["reason"]) == (404, "UNKNOWN_PROJECT")
    number = refused.json()["refusal"]["entry"]
    for uid in (MEMBER, ADMIN, SUPERUSER):
        row = data(world, f"/failure/{number}", uid)
        assert (row["account"], row["project"], row["owner_uid"], row["job_id"]) == ("nosuch", None, MEMBER, 46)
        assert number in ids_of(data(world, "/failure", uid))
    for uid in (PI, OTHER_PI, STRANGER):
        assert world.ask("GET", f"/failure/{number}", uid).status_code == 404
        assert number not in ids_of(data(world, "/failure", uid))


def test_the_end_of_a_run_of_an_unknown_account_is_kept_under_that_name(world: World) -> None:
    ended = report(45, account="nosuch", do="complete", end=NOW + 600, elapsed=600, state="COMPLETED")
    refused = world.ask("POST", "/job", AGENT, json=ended)
    assert (refused.status_code, refused.json()["refusal"]["reason"]) == (404, "UNKNOWN_PROJECT")
    assert refused.json()["detail"] == "there is no such project: none has the account 'nosuch'."
    row = data(world, f"/failure/{refused.json()['refusal']['entry']}", MEMBER)
    assert (row["account"], row["project"], row["asked"], row["owner_uid"]) == ("nosuch", None, 10, MEMBER)
    assert data(world, "/failure?job_id=45", PI) == []


def all_pages(world: World, path: str, uid: int = PI) -> list[Any]:
    """Every row of a list, two at a time."""
    found: list[Any] = []
    after = ""
    while True:
        answer = world.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=2{after}", uid).json()
        assert len(answer["data"]) <= 2
        found += answer["data"]
        if answer["next"] is None:
            return found
        after = f"&after={answer['next']}"


def test_lists_that_grow_with_a_project_come_in_pages(world: World) -> None:
    project, allocation = world.own["project"], world.own["allocation"]
    for uid in range(7):
        world.ask("PUT", f"/project/{project}/member/{uid}", PI, json={"role": "member"})
        world.ask("PUT", f"/alloc/{allocation}/cap/{uid}", PI, json={"cap": 5})
        world.token_number(PI)
        run = report(200 + uid, owner_uid=10_000 + uid, do="complete", end=NOW + uid * 40 * DAY, elapsed=600, state="COMPLETED")
        assert world.ask("POST", "/job", AGENT, json=run).status_code == 201
    for path, least in ((f"/project/{project}/member", 10), (f"/alloc/{allocation}/user", 15), ("/token", 7)):
        whole = data(world, path)
        assert len(whole) >= least
        assert all_pages(world, path) == whole
    for by in ("user", "day", "month", "partition", "allocation"):
        assert all_pages(world, f"/usage?by={by}") == data(world, f"/usage?by={by}")
    assert len(data(world, "/usage?by=day")) == 7


def test_a_charge_is_refunded(world: World) -> None:
    path = f"/job/{world.own['job']}/refund"
    assert world.ask("POST", path, SUPERUSER, json={"amount": 10_000, **WHY}).status_code == 201
    assert world.ask("POST", path, SUPERUSER, json=WHY).json()["data"]["amount"] == 20_000
    row = data(world, f"/job/{world.own['job']}")
    assert (row["charged"], row["refunded"]) == (30_000, 30_000)
    assert world.ask("POST", path, SUPERUSER, json=WHY).json()["refusal"]["reason"] == "NOTHING_BACK"


def test_a_refused_job_is_found_with_what_would_have_helped(world: World) -> None:
    refused = world.ask("POST", "/job", AGENT, json=report(43, billing=1_000_000)).json()
    assert refused["detail"] == "there is too little left: asked 1000000 SU, available 9499 SU, short by 990501 SU."
    row = data(world, f"/failure/{refused['refusal']['entry']}", MEMBER)
    assert (row["job_id"], row["cluster"], row["account"], row["reason"]) == (43, "alpha", "chem", "OVERDRAWN")
    assert row["remedies"] == refused["refusal"]["remedies"]
    assert ids_of(data(world, "/failure"))[0] == row["id"]
    assert data(world, f"/failure?owner_uid={PI}") == []


# --- HADM's words ---


def test_activity_in_hadms_words(old_world: World) -> None:
    allocation = old_world.own["allocation"]
    rows = data(old_world, f"/activity?allocation={allocation}&order=oldest")
    assert [(each["kind"], each["amount"]) for each in rows] == [("deposit", 600_000), ("hold", 60_000), ("charge", 30_000), ("hold", 60)]
    assert {each["allocation_id"] for each in rows} == {allocation}
    predebit = data(old_world, "/predebit?account=chem")[0]
    assert (predebit["amount"], predebit["status"], predebit["owner_uid"]) == (60, "executing", MEMBER)
    assert data(old_world, "/debit") == [
        {"activity_id": old_world.own["job"], "allocation_id": allocation, "amount": 30_000, "comments": None, "owner_uid": MEMBER}
    ]


def test_comments_are_shown_where_hadm_has_them(world: World) -> None:
    for number, billing in ((60, 1), (61, 10**9)):
        world.ask("POST", "/job", AGENT, json=report(number, billing=billing, comment="for the paper"))
    world.ask("POST", "/job", AGENT, json=report(62, billing=10**9))
    assert [each["comments"] for each in data(world, "/predebit?account=chem")] == ["for the paper", None]
    assert [each["comments"] for each in data(world, "/failure?account=chem&limit=2")] == ["there is too little left", "for the paper"]


# --- usage, quotes ---


@pytest.mark.parametrize(
    ("by", "group"), [("user", MEMBER), ("day", iso(NOW)[:10]), ("month", iso(NOW)[:7]), ("partition", ""), ("allocation", 1), ("qos", "-")]
)
def test_usage_in_groups(old_world: World, by: str, group: object) -> None:
    told = {"runs": 1, "failed": 0, "charged": 30_000, "elapsed": 1_800, "waited": 3_600, "failed_early": 0, "early_exit_code": None}
    assert data(old_world, f"/usage?by={by}") == [{"group": group, **told, "cpu_seconds": 0, "cpu_given": 0, "wasted": 0}]


def test_usage_by_the_qos_that_reports_tell(world: World) -> None:
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED"}
    for number, qos, amount in ((75, "high", 100), (76, "normal", 20), (77, "high", 3), (78, None, 4)):
        assert world.ask("POST", "/job", AGENT, json=report(number, **ended, qos=qos, amount=amount)).status_code == 201
    assert data(world, "/job?job_id=75")[0]["qos"] == "high"
    query = f"/usage?by=qos&since={NOW + 60}&until={NOW + 61}"
    assert [(each["group"], each["charged"]) for each in data(world, query)] == [("-", 4), ("high", 103), ("normal", 20)]
    page = world.ask("GET", f"{query}&limit=1", PI).json()
    assert page["next"] == "-"
    assert [each["group"] for each in data(world, f"{query}&after=-")] == ["high", "normal"]


def test_usage_tells_what_idled_and_what_failed_early(world: World) -> None:
    said = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "FAILED", "amount": 100, "tres": "cpu=4"}
    for number, more in ((71, {"exit_code": 127}), (72, {"exit_code": 127, "cpu_seconds": 60}), (73, {"exit_signal": 9})):
        assert world.ask("POST", "/job", AGENT, json=report(number, **said, **more)).status_code == 201
    row = data(world, f"/usage?since={NOW + 60}&until={NOW + 61}")[0]
    assert [row[each] for each in ("cpu_seconds", "cpu_given", "wasted", "failed_early", "early_exit_code")] == [60, 240, 75, 3, None]
    world.ask("POST", "/job", AGENT, json=report(74, **{**said, "end": NOW + 90}, exit_code=127))
    assert data(world, f"/usage?since={NOW + 90}&until={NOW + 91}")[0]["early_exit_code"] == 127


def test_a_quote_says_why(old_world: World) -> None:
    body = {"account": "chem", "cluster": "alpha", "partition": "std", "tres": "cpu=8,mem=64G", "time_limit": "12:00:00"}
    told = old_world.ask("POST", "/quote", MEMBER, json=body).json()["data"]
    assert (told["billing"], told["factor"], told["seconds"], told["amount"]) == ("32", "1", 43_200, 32 * 720)
    assert [(each["what"], each["weighted"], each["counts"]) for each in told["lines"]] == [("cpu", "8", False), ("mem", "32", True)]
    assert (told["allocation"], told["fits"]) == (old_world.own["allocation"], True)
    assert told["after"] == told["available"] - told["amount"]
    assert (told["cluster"], told["longest_seconds"], told["notes"]) == ("alpha", told["available"] // 32 * 60, [])
    before = old_world.entries()
    old_world.ask("POST", "/quote", MEMBER, json=body)
    assert old_world.entries() == before


# --- oneself, the books, the figures ---


def test_who_one_is(old_world: World) -> None:
    told = data(old_world, "/whoami", COORDINATOR)
    assert (told["actor"], told["uid"], told["superuser"], told["admin"]) == (COORDINATOR, COORDINATOR, False, False)
    assert told["roles"] == [{"project": old_world.own["project"], "role": "coordinator"}]
    assert data(old_world, "/whoami", AGENT)["clusters"] == ["alpha"]
    acting = old_world.ask("GET", "/whoami", ADMIN, as_=PI).json()["data"]
    assert (acting["actor"], acting["uid"], acting["admin"]) == (ADMIN, PI, False)


def test_how_far_the_books_are(world: World) -> None:
    told = data(world, "/audit", ADMIN)
    assert told["entries"] == world.entries()
    assert [each["allocation"] for each in told["heads"]] == [1, 2, 3, 4]
    assert len(told["office_link"]) == len(told["heads"][0]["link"]) == 64
    page = world.ask("GET", "/audit?limit=3", ADMIN).json()
    assert (len(page["data"]["heads"]), page["next"]) == (3, "3")


def test_the_figures_for_prometheus(world: World) -> None:
    world.ask("POST", "/job", AGENT, json=report(50))
    world.ask("POST", "/job", AGENT, json=report(51, amount=10**12))
    world.ask("GET", "/alloc/1", STRANGER)
    world.ask("GET", "/no/such/../../place", STRANGER)
    text = world.ask("GET", "/metrics", ADMIN).text
    assert 'fairbank_requests_total{method="POST",route="/job",status="201"} 1.0' in text
    assert 'fairbank_requests_total{method="GET",route="/alloc/{allocation}",status="404"} 1.0' in text
    assert 'route="unknown",status="404"' in text
    assert 'fairbank_outcomes_total{outcome="OVERDRAWN"}' in text
    assert "fairbank_wishes_waiting 0.0" in text
    assert "fairbank_requests_in_progress 1.0" in text


@pytest.mark.parametrize(
    "path", ["/alloc", "/alloc/1", "/usage", "/health", "/docs", "/docs/start.js", "/openapi.json", "/nosuch", "/alloc/99"]
)
def test_head_is_answered_like_get_without_the_body(old_world: World, path: str) -> None:
    got, headed = (old_world.ask(method, path, PI) for method in ("GET", "HEAD"))
    assert headed.status_code == got.status_code
    assert headed.headers == got.headers
    assert headed.content == b""
    assert len(got.content) == int(got.headers["content-length"])


def test_head_needs_the_same_rights(old_world: World) -> None:
    assert old_world.ask("HEAD", "/alloc").status_code == 401
    assert old_world.ask("HEAD", "/audit", MEMBER).status_code == 403
    assert old_world.ask("HEAD", "/job/bulk", AGENT).status_code == 405


def test_health_says_nothing_of_the_books(old_world: World) -> None:
    assert old_world.ask("GET", "/health").text == '{"status":"ok"}'


def test_a_foreign_pi_sees_only_the_own(old_world: World) -> None:
    assert ids_of(data(old_world, "/alloc", OTHER_PI)) == [old_world.foreign["allocation"], old_world.foreign["later"]]


# --- prices ---


def test_the_prices_of_a_cluster_are_told_exactly(world: World) -> None:
    assert data(world, "/cluster", STRANGER) == [
        {
            "name": "alpha",
            "partitions": [{"name": "std", "resource": "cpu", "weights": {"cpu": "1", "mem": "1/2048"}, "adding": "max_tres"}],
            "qos_factors": {},
        }
    ]


def test_times_of_allocations_are_texts_or_numbers(world: World) -> None:
    made = [
        world.ask("POST", "/alloc", SUPERUSER, json=grant(resource=f"r{place}", start=start))
        for place, start in enumerate((NOW, str(NOW), iso(NOW)))
    ]
    assert [each.status_code for each in made] == [201, 201, 201]
    assert {each.json()["data"]["start"] for each in made} == {iso(NOW)}
    path = f"/alloc/{made[0].json()['data']['id']}"
    assert world.ask("PATCH", path, SUPERUSER, json={"end": NOW + DAY, "comment": "x"}).json()["data"]["end"] == iso(NOW + DAY)


def test_a_cap_that_is_there_already_writes_nothing(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/cap/{MEMBER}"
    assert world.ask("PUT", path, PI, json={"cap": 60}).json()["data"]["again"] is False
    before = world.entries()
    assert world.ask("PUT", path, PI, json={"cap": 60}).json()["data"]["again"] is True
    assert world.ask("PUT", f"/alloc/{world.own['allocation']}/cap/{PI}", SUPERUSER, json={"cap": None}).json()["data"]["again"] is True
    assert world.entries() == before
