"""Accounts of the bank in the core: who may submit, whose jobs wait, and what the settings add."""

from __future__ import annotations

from typing import Any

from fairbank.core.errors import Forbidden
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord
from fairbank.priority.settings import PrioritySettings
from fairbank.wlm.core.accounts import AccountRules, BankAccount, with_bank_accounts
from fairbank.wlm.core.events import AccountsRead
from fairbank.wlm.core.factors.priorities import fair_shares
from tests.wlm.core.world import World

LIMITS = AssociationLimits(jobs={LimitKind.MAX_SUBMIT_JOBS: 1})


def bank_world(**fields: Any) -> World:
    return World(server="bank", **fields)


def read(world: World, **members: str) -> None:
    """Let the bank have projects with members, given as names with blanks between them."""
    accounts = {
        name: BankAccount(number=number, users=tuple(users.split()))
        for number, (name, users) in enumerate(members.items(), 1)
    }
    world.event(AccountsRead(accounts))


def test_any_account_will_do_until_the_bank_has_answered() -> None:
    assert isinstance(bank_world().submit(account="physics"), int)


def test_only_members_of_a_project_may_submit() -> None:
    world = bank_world()
    read(world, physics="alice", chemistry="bob")
    assert isinstance(world.submit(account="physics"), int)
    assert isinstance(world.submit(account="chemistry"), Forbidden)
    assert isinstance(world.submit(account="nowhere"), Forbidden)
    refusal = world.submit(account="")
    assert isinstance(refusal, Forbidden)
    assert "user alice has no account" in refusal.message


def test_new_project_needs_no_settings_and_outlives_the_controller() -> None:
    world = bank_world()
    read(world, physics="alice")
    read(world, physics="alice", astronomy="alice")
    assert isinstance(world.submit(account="astronomy"), int)
    world.restart()
    assert isinstance(world.submit(account="astronomy"), int)
    assert isinstance(world.submit(account="nowhere"), Forbidden)


def test_waiting_job_of_a_removed_member_does_not_start() -> None:
    world = bank_world()
    read(world, physics="alice")
    job = world.submit(account="physics")
    read(world, physics="bob")
    assert isinstance(world.submit(account="physics"), Forbidden)
    world.settle()
    assert (world.state(job), world.reason(job)) == ("PENDING", "InvalidAccount")
    read(world, physics="alice bob")
    world.settle()
    assert world.job(job).state.base == "RUNNING"


def test_running_job_of_a_removed_project_is_still_counted() -> None:
    rows = [ShareAssociation(*key) for key in (("root",), ("physics", "", "", "root"))]
    own = ShareAssociation("physics", "alice", "main")
    world = bank_world(priority=PrioritySettings(), shares=(*rows, own))
    read(world, physics="alice")
    job = world.run_one(account="physics", limit=3_600)
    read(world, other="bob")
    world.advance(700)
    world.end(job)
    assert world.state(job) == "COMPLETED"
    tree = fair_shares(world.core.state).tree
    assert {(row.account, row.user) for row in tree.rows if row.user} >= {("physics", "alice")}


def test_accounts_that_have_not_changed_store_nothing() -> None:
    world = bank_world()
    read(world, physics="alice")
    world.settle()
    assert world.event(AccountsRead(dict(world.core.state.bank_accounts))) == []


def test_settings_add_shares_limits_and_qos_and_the_bank_says_who_is_in() -> None:
    rules = AccountRules(
        {
            ("science", "", ""): LimitRecord(name="science", parent="root"),
            ("physics", "", ""): LimitRecord(name="physics", parent="science", limits=LIMITS),
            ("physics", "carol", ""): LimitRecord(name="physics", user="carol", parent="physics"),
            ("physics", "alice", ""): LimitRecord(
                name="physics", user="alice", parent="physics", limits=LIMITS
            ),
        },
        {
            ("root", "", ""): ShareAssociation("root"),
            ("science", "", ""): ShareAssociation("science", parent="root", shares=3),
            ("physics", "", ""): ShareAssociation("physics", parent="science", shares=7),
            ("physics", "carol", ""): ShareAssociation("physics", "carol"),
        },
        {("science", "", ""): ("normal",), ("physics", "alice", ""): ("urgent",)},
    )
    accounts = {
        "optics": BankAccount(number=2, parent="physics", users=("alice",)),
        "physics": BankAccount(number=1, users=("alice", "bob")),
    }
    merged = with_bank_accounts(rules, accounts)
    assert [key[:2] for key in merged.shares] == [
        ("root", ""), ("science", ""), ("physics", ""), ("optics", ""), ("physics", "alice"),
        ("physics", "bob"), ("optics", "alice"),
    ]  # fmt: skip
    assert merged.shares["physics", "", ""].shares == 7
    assert merged.shares["optics", "", ""].parent == "physics"
    assert merged.associations["physics", "alice", ""].limits is LIMITS
    assert ("physics", "carol", "") not in merged.associations
    assert merged.allowed_qos["physics", "alice", ""] == ("urgent",)
    assert merged.allowed_qos["physics", "bob", ""] == ("normal",)
    assert merged.allowed_qos["optics", "alice", ""] == ("normal",)


def test_project_with_the_name_root_makes_no_circle() -> None:
    world = bank_world(priority=PrioritySettings())
    world.event(
        AccountsRead(
            {
                "root": BankAccount(number=1, parent="top", users=("alice",)),
                "top": BankAccount(number=2, parent="root"),
            }
        )
    )
    assert isinstance(world.submit(account="root"), int)
