"""A project was removed in the bank while Slurm still has its account: an import and a sync go on
past it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.rest.client import Client, parse_address
from fairbank.slurm.bank import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.importer import import_people
from fairbank.slurm.reconcile.import_plan import PlannedProject
from fairbank.slurm.sync import sync_accounts
from tests.support.recorded_slurm import Recorded
from tests.support.server import banking

pytestmark = pytest.mark.slow


@pytest.fixture
def client() -> Iterator[Client]:
    with banking() as server:
        yield Client(parse_address(f"unix:{server.socket}"))


def test_slurm_goes_on_where_a_project_was_removed(client: Client, tmp_path: Path) -> None:
    recorded = Recorded.of_the_lab(tmp_path / "slurm")
    slurm, bank = SlurmCommands({**os.environ, **recorded.environment}), BankClient(client)
    people = slurm.associations().rows
    accounts = sorted({each.account for each in people} - {"root"})
    gids = {account: 7_000 + number for number, account in enumerate(accounts)}
    gone = next(each.account for each in people if each.user and each.account != "root")
    number = client.post("/project", {"gname": gone, "gid": gids[gone]})["data"]["id"]
    client.put(f"/project/{number}/member/0", {"role": "member"})
    client.delete(f"/project/{number}")

    found = import_people(slurm, bank, gids=gids, cluster=slurm.cluster)
    assert (
        f"account {gone}: its project was removed; bring it back: fairbank project set {number}"
        " --restore" in found.plan.notes
    )
    assert [each.account for each in found.plan.steps if isinstance(each, PlannedProject)].count(
        gone
    ) == 0
    assert {each.account for each in bank.projects()} == set(accounts) - {gone}
    (kept,) = [each for each in bank.projects(removed=True) if each.removed]
    assert (kept.account, dict(kept.members)) == (gone, {})

    synced = sync_accounts(slurm, bank, remove=True, dry_run=True)
    assert synced.projects == len(accounts) - 1
    theirs = {
        each.words[:2]
        for each in synced.changes
        if f"account={gone}" in each.words or gone in each.words
    }
    assert theirs == {("delete", "user")}
