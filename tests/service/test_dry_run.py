"""Dry runs: the receiving use case decides whether a request is applied, not the user."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.policy import Policy
from fairbank.bank.query import Page, ProjectQuery
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import CreateProject
from fairbank.bank.rules import Done
from fairbank.service.access.identity import Identity, Staff, identity_of
from fairbank.service.dry_run import DryRunResult
from fairbank.service.services import Services, services
from fairbank.service.use_cases import UseCases
from fairbank.store.memory.store import MemoryStore
from tests.support.clock import ManualClock

SUPERUSER = 1
_replace = msgspec.structs.replace
STAFF = Staff(frozenset({SUPERUSER}))
CHEM = CreateProject(gname="chem", gid=1, account="chem")
CHANGING = {"projects", "allocations", "runs", "undo", "shares", "tokens"}


@pytest.fixture
def bank() -> Iterator[Services]:
    bank = services(
        MemoryStore(),
        clock=ManualClock(1_795_000_000),
        staff=STAFF,
        clusters={},
        policy=Policy(),
        key=b"key",
    )
    yield bank
    bank.close()


@pytest.fixture
def identity() -> Identity:
    return identity_of(SUPERUSER, STAFF, {})


def test_dry_run_and_write_use_the_same_user(bank: Services, identity: Identity) -> None:
    with pytest.raises(DryRunResult) as result:
        bank.dry_run().projects.create(identity, CHEM)
    assert [entry.entry.kind for entry in result.value.entries] == [Kind.PROJECT]
    assert bank.projects.find(ProjectQuery(), Page()) == []
    assert isinstance(bank.projects.create(identity, CHEM), Done)


def test_dry_run_is_refused_with_the_same_message(bank: Services, identity: Identity) -> None:
    bank.projects.create(identity, CHEM)
    duplicate = CreateProject(gname="bio", gid=CHEM.gid, account="bio")
    refusal = bank.dry_run().projects.create(identity, duplicate)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.EXISTS
    assert _replace(refusal, entry=None) == _replace(
        bank.projects.create(identity, duplicate), entry=None
    )


def test_every_write_has_a_dry_run(bank: Services) -> None:
    dry = bank.dry_run()
    assert {name for name, value in vars(bank).items() if isinstance(value, UseCases)} >= CHANGING
    for name, value in vars(dry).items():
        if isinstance(value, UseCases):
            assert value is not getattr(bank, name), name
    assert dry.dry_run() is dry
