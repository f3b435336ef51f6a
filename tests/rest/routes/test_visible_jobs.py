"""Table of the setting `visible_jobs`: who sees a member's jobs and usage on each route.

The job is of a member of chem. A colleague is another member, without jobs; `lead` is the PI and
the coordinator of chem; `other` is a user of no project and the PI of another one. Staff see all.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from fairbank.bank.project import Role
from fairbank.bank.requests import Amend, CreateProject, SetCap, SetMember
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import VisibleJobs
from tests.rest.operations import OWN, call, operations, share_of
from tests.rest.world import (
    ADMIN,
    AGENT,
    COORDINATOR,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    STAFF,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    done,
    report,
)

COLLEAGUE = 5_200
USERS = {
    "owner": (MEMBER,),
    "colleague": (COLLEAGUE,),
    "lead": (PI, COORDINATOR),
    "other": (STRANGER, OTHER_PI),
    "staff": (ADMIN, SUPERUSER),
}
# A statement would not add up without the entries of colleagues, so `own` shows none. `all` is
# about jobs and usage, not about the journals of other projects.
TABLE = """
# operation      own         project                 all
list_jobs        owner lead  owner colleague lead    owner colleague lead other
show_job         owner lead  owner colleague lead    owner colleague lead other
list_failures    owner lead  owner colleague lead    owner colleague lead other
show_failure     owner lead  owner colleague lead    owner colleague lead other
show_usage       owner lead  owner colleague lead    owner colleague lead other
list_predebits   owner lead  owner colleague lead    owner colleague lead other
list_debits      owner lead  owner colleague lead    owner colleague lead other
list_shares      lead        lead                    owner colleague lead other
list_activity    owner lead  owner colleague lead    owner colleague lead
list_entries     owner lead  owner colleague lead    owner colleague lead
list_users       owner lead  owner colleague lead    owner colleague lead
show_statement   lead        owner colleague lead    owner colleague lead
"""
WITHOUT_JOBS = {
    *("show_health", "show_myself", "show_metrics", "list_clusters", "show_document", "show_docs"),
    *("show_asset", "list_projects", "show_project", "list_members", "list_allocations"),
    *("list_balances", "show_allocation", "list_credits", "show_centre", "show_heads"),
    *("list_tokens", "show_series"),
}
"""Routes that read, and show no jobs and no usage of a single user but the one who asks."""
ROWS = [re.split(r"\s{2,}", line) for line in TABLE.strip().splitlines()[1:]]


def test_each_reading_route_is_in_the_table() -> None:
    reading = {name for name, (method, _) in operations().items() if method == "GET"}
    assert {row[0] for row in ROWS} | WITHOUT_JOBS == reading


@pytest.mark.parametrize("seen", VisibleJobs, ids=lambda seen: seen.value)
def test_jobs_and_usage_are_seen_as_the_setting_says(seen: VisibleJobs) -> None:
    with create_world(staff=msgspec.structs.replace(STAFF, visible_jobs=seen)) as world:
        chem = world.own["project"]
        world.request(SetMember(project=chem, uid=COLLEAGUE, role=Role.MEMBER))
        share = msgspec.structs.replace(share_of("chem"), user=str(MEMBER))
        world.context.services.store.add_share_records([share])
        column = 1 + list(VisibleJobs).index(seen)
        for row in ROWS:
            expected = {"staff", *row[column].split()}
            for name, uids in USERS.items():
                for uid in uids:
                    shown = _shows_member(world, row[0], uid)
                    assert shown == (name in expected), (row[0], name, uid)


def _shows_member(world: World, operation: str, uid: int) -> bool:
    """Return whether the answer to a user names the member."""
    method, path, _ = call(world, operation, OWN, uid)
    if operation == "list_shares":
        path = "/share?users=true"
    return re.search(rf"\b{MEMBER}\b", world.ask(method, path, uid).text) is not None


@pytest.mark.parametrize("seen", VisibleJobs, ids=lambda seen: seen.value)
def test_refusal_and_quote_name_only_visible_jobs_as_holding(seen: VisibleJobs) -> None:
    """A job of the member holds 1 SU of chem. The agent's answer is for the owner of the job."""
    with create_world(staff=msgspec.structs.replace(STAFF, visible_jobs=seen)) as world:
        chem = world.own["project"]
        world.request(SetMember(project=chem, uid=COLLEAGUE, role=Role.MEMBER))
        for owner in (MEMBER, COLLEAGUE):
            large = report(owner, owner_uid=owner, billing=10**6)
            refused = world.ask("POST", "/job", AGENT, json=large).json()
            entry = refused["refusal"]["entry"]
            is_named = owner == MEMBER or seen is not VisibleJobs.OWN
            job: dict[str, Any] = {"account": "chem", "partition": "std", "owner_uid": owner}
            job |= {"tres": "cpu=1000000", "time_limit": "1:00:00"}
            quoted = world.ask("POST", "/quote", owner, json=job).json()["data"]
            shown = world.ask("GET", f"/failure/{entry}", owner).json()["data"]
            for answer in (refused, quoted, shown):
                assert ("1 held by 1 running job," in answer["detail"]) == is_named
                assert ("1 held." in answer["detail"]) != is_named
            for lead in (PI, COORDINATOR, ADMIN):
                shown = world.ask("GET", f"/failure/{entry}", lead).json()["data"]
                assert "1 held by 1 running job," in shown["detail"]


@pytest.mark.parametrize("seen", VisibleJobs, ids=lambda seen: seen.value)
def test_jobs_that_hold_credit_of_a_parent_are_counted_for_those_who_see_them(
    seen: VisibleJobs,
) -> None:
    """chem is a child of bio, whose shared credit alone could pay its job: another job holds 1 SU
    of it. The PI of the child does not lead the parent, nor is a member of it.
    """
    with create_world(staff=msgspec.structs.replace(STAFF, visible_jobs=seen)) as world:
        chem, bio = world.own, world.foreign
        reason = {"comment": "test"}
        end = {"do": "complete", "submitted": NOW - 60, "end": NOW, "elapsed": 60}
        open_run = next(world.numbers) - 2
        world.ask("POST", "/job", AGENT, json=report(open_run, state="COMPLETED", **end))
        world.ask(
            "PATCH", f"/project/{chem['project']}", SUPERUSER, json={"parent": bio["project"]}
        )
        for number, change in (
            (chem["allocation"], {"event": "end"}),
            (bio["allocation"], {"shared": True}),
        ):
            world.ask("PATCH", f"/alloc/{number}", SUPERUSER, json={**change, **reason})
        seen_by_child = seen is VisibleJobs.ALL
        large = report(5, owner_uid=PI, billing=10**6)
        refused = world.ask("POST", "/job", AGENT, json=large).json()
        job = {"account": "chem", "partition": "std", "owner_uid": PI, "tres": "cpu=1000000"}
        quoted = world.ask("POST", "/quote", PI, json={**job, "time_limit": "1:00:00"})
        path = f"/failure/{refused['refusal']['entry']}"
        shown = {
            uid: world.ask("GET", path, uid).json()["data"]["detail"]
            for uid in (PI, OTHER_PI, ADMIN)
        }
        for text, is_named in (
            (refused["detail"], seen_by_child),
            (quoted.json()["data"]["detail"], seen_by_child),
            (shown[PI], seen_by_child),
            (shown[OTHER_PI], True),
            (shown[ADMIN], True),
        ):
            assert ("1 held by 1 running job," in text) == is_named
            assert ("1 held." in text) != is_named


@pytest.mark.parametrize("seen", VisibleJobs, ids=lambda seen: seen.value)
def test_undo_of_an_entry_that_is_not_seen_looks_like_a_missing_one(seen: VisibleJobs) -> None:
    """The table's row of list_entries says who sees the hold of the member's job."""
    row = next(row for row in ROWS if row[0] == "list_entries")
    expected = {"staff", *row[1 + list(VisibleJobs).index(seen)].split()}
    with create_world(staff=msgspec.structs.replace(STAFF, visible_jobs=seen)) as world:
        world.request(SetMember(project=world.own["project"], uid=COLLEAGUE, role=Role.MEMBER))
        path, body = f"/entry/{world.own['job']}/undo", {"comment": "not mine"}
        for name, uids in USERS.items():
            for uid in uids:
                refused = world.ask("POST", path, uid, json=body)
                assert refused.status_code == (409 if name in expected else 404), (name, uid)


# Users who learn the cap and the holds of a member from a quote for the member's job. The child is
# a member of a project that uses the allocation of its parent chem.
QUOTES = """
# seen     for a job of chem             for a job of the child project
own        owner lead staff              staff
project    owner colleague lead staff    staff
all        owner colleague lead staff    staff
"""
QUOTE_ROWS = [re.split(r"\s{2,}", line) for line in QUOTES.strip().splitlines()[1:]]


@pytest.mark.parametrize(("seen", "of_chem", "of_child"), QUOTE_ROWS)
def test_quote_shows_cap_of_another_user_only_to_readers_of_the_journal(
    seen: str, of_chem: str, of_child: str
) -> None:
    """The member is 1 SU below the cap; the job of 2 SU fits for all who may not learn that."""
    staff = msgspec.structs.replace(STAFF, visible_jobs=VisibleJobs(seen))
    with create_world(staff=staff) as world:
        chem, child = world.own["project"], 7_777
        made = world.request(CreateProject(gname="child", gid=child, account="child", parent=chem))
        world.request(
            SetMember(project=chem, uid=COLLEAGUE, role=Role.MEMBER),
            SetMember(project=done(made[0]).project or 0, uid=STRANGER, role=Role.MEMBER),
            Amend(allocation=world.own["allocation"], project=chem, resource="cpu", shared=True),
            SetCap(allocation=world.own["allocation"], uid=MEMBER, cap=SuMinutes(30_120)),
        )
        world.context.services.project_cache.refresh()
        users = {**USERS, "other": (STRANGER,)}
        for account, expected in (("chem", of_chem.split()), ("child", of_child.split())):
            for name, uids in users.items():
                for uid in uids:
                    job: dict[str, Any] = {"account": account, "partition": "std"}
                    job |= {"tres": "cpu=2", "time_limit": "1:00:00", "owner_uid": MEMBER}
                    answer = world.ask("POST", "/quote", uid, json=job)
                    if answer.status_code == 404:
                        assert name not in expected
                        continue
                    quoted = answer.json()["data"]
                    assert quoted["fits"] == (name not in expected), (account, name, uid)
                    assert ("cap" in (quoted["detail"] or "")) == (name in expected)
                    # Nothing of the member in the refusal of a job for which nobody has credit.
                    job["tres"] = "cpu=1000000"
                    detail = world.ask("POST", "/quote", uid, json=job).json()["data"]["detail"]
                    held = "1 held by 1 running job," in detail
                    assert held == (name in expected or seen == "all"), (account, name, uid)
