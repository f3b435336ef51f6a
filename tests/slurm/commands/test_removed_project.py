"""A project removed in the bank whose account Slurm still has: import and sync continue without
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.people_import import import_people
from fairbank.slurm.reconcile.import_plan import PlannedProject
from fairbank.slurm.sync import sync_accounts
from tests.support.recorded_slurm import RecordedSlurm
from tests.support.server import run_bank

pytestmark = pytest.mark.slow


@pytest.fixture
def client() -> Iterator[Client]:
    with run_bank() as server:
        yield Client(parse_address(f"unix:{server.socket}"))


def test_import_and_sync_skip_a_removed_project(client: Client, tmp_path: Path) -> None:
    recorded = RecordedSlurm.of_the_lab(tmp_path / "slurm")
    slurm, bank = SlurmCommands({**os.environ, **recorded.environment}), BankClient(client)
    people = slurm.associations().rows
    accounts = sorted({association.account for association in people} - {"root"})
    gids = {account: 7_000 + number for number, account in enumerate(accounts)}
    removed_account = next(
        association.account
        for association in people
        if association.user and association.account != "root"
    )
    number = client.post("/project", {"gname": removed_account, "gid": gids[removed_account]})[
        "data"
    ]["id"]
    client.put(f"/project/{number}/member/0", {"role": "member"})
    client.delete(f"/project/{number}")

    result = import_people(slurm, bank, gids=gids, cluster=slurm.cluster)
    assert (
        f"account {removed_account}: its project was removed; bring it back:"
        f" fairbank project set {number} --restore" in result.plan.notes
    )
    assert [step.account for step in result.plan.steps if isinstance(step, PlannedProject)].count(
        removed_account
    ) == 0
    assert {project.account for project in bank.projects()} == set(accounts) - {removed_account}
    (kept,) = [project for project in bank.projects(removed=True) if project.removed]
    assert (kept.account, kept.members) == (removed_account, frozenset())

    synced = sync_accounts(slurm, bank, remove=True, dry_run=True)
    assert synced.projects == len(accounts) - 1
    commands = {
        change.words[:2]
        for change in synced.changes
        if f"account={removed_account}" in change.words or removed_account in change.words
    }
    assert commands == {("delete", "user")}
