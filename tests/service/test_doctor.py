"""Checks of the doctor on the services alone."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import GrantCategory, GrantRange, Policy
from fairbank.bank.requests import CreateProject, IssueToken, Open, Request, SubmittedRequest
from fairbank.bank.token import TokenGrant
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.cluster_settings import ClusterSettings, PartitionSettings
from fairbank.service.ledger import Ledger
from fairbank.service.ops.doctor import check_file_modes, check_store_and_settings
from fairbank.service.settings import BankSettings, ServerSettings, StaffSettings, StoreSettings
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.support.clock import ManualClock


def settings_with_store(folder: Path, **more: Any) -> BankSettings:
    url = f"sqlite:///{folder}/fairbank.sqlite"
    migrate(url)
    return BankSettings(
        store=StoreSettings(url=url),
        server=ServerSettings(socket=f"{folder}/fairbank.sock"),
        secret_file=f"{folder}/secret",
        **more,
    )


def test_observing_bank_is_healthy_and_reported(tmp_path: Path) -> None:
    settings = settings_with_store(
        tmp_path,
        policy=Policy(enforce=False),
        clusters={
            "darwin": ClusterSettings(
                partitions={"standard": PartitionSettings("cpu")}, agents=frozenset({7})
            )
        },
    )
    checks = [
        check
        for check in check_store_and_settings(settings, ManualClock(Instant(1_000)))
        if "disk" not in check.what
    ]
    assert all(check.ok for check in checks), checks
    assert any("only observes" in check.what for check in checks)


def test_granter_who_is_no_superuser_is_reported(tmp_path: Path) -> None:
    settings = settings_with_store(
        tmp_path,
        staff=StaffSettings(superusers=frozenset({7}), admins=frozenset({8})),
        policy=Policy(
            categories={"startup": GrantCategory(granters=frozenset({7, 8, os.getuid()}))}
        ),
    )
    reported = [
        check
        for check in check_store_and_settings(settings, ManualClock(Instant(1_000)))
        if "granter" in check.what
    ]
    assert [(check.what, check.ok) for check in reported] == [
        ("granter 8 of category startup is no superuser, and cannot grant in it", False)
    ]
    assert "add uid 8 to staff.superusers" in (reported[0].remedy or "")


def test_user_of_the_server_may_be_a_granter(tmp_path: Path) -> None:
    """Its socket tells who that is: root runs the doctor, too."""
    settings = settings_with_store(
        tmp_path, policy=Policy(categories={"startup": GrantCategory(granters=frozenset({0}))})
    )
    Path(settings.server.socket).symlink_to("/dev/null")  # of root
    checks = check_store_and_settings(settings, ManualClock(Instant(1_000)))
    assert not [check for check in checks if "granter" in check.what]


def test_credit_that_no_partition_bills_is_named(tmp_path: Path) -> None:
    """A category of grants and the token of an agent are named too; they are no errors, because
    partitions and clusters may be added later. But cpuu is cpu, misspelt, unless it stands
    beside cpu.
    """
    settings = settings_with_store(
        tmp_path,
        policy=Policy(
            categories={
                "research": GrantCategory(resources={"cpuu": GrantRange(), "tape": GrantRange()}),
                "storage": GrantCategory(resources={"cpu": GrantRange(), "cpu2": GrantRange()}),
            }
        ),
        clusters={
            "darwin": ClusterSettings(
                partitions={"standard": PartitionSettings("cpu")}, agents=frozenset({7})
            )
        },
    )
    token: dict[str, Any] = {"uid": 0, "label": "x", "expires": Instant(10**6)}
    requests: list[Request] = [
        CreateProject(gname="chem", gid=1, account="chem"),
        *(
            Open(
                terms=AllocationTerms(1, resource, category, Instant(0), Instant(10**6)),
                deposit=SuMinutes(60),
            )
            for resource, category in (("cpu", "storage"), ("cpuu", "research"))
        ),
        *(
            IssueToken(
                grant=TokenGrant(digest=cluster.encode(), scopes=(f"agent:{cluster}",), **token)
            )
            for cluster in ("darwin", "darvin")
        ),
    ]
    with closing(open_store(settings.store.url)) as store:
        Ledger(store, settings.policy).apply(
            [SubmittedRequest(request, Instant(10), 0) for request in requests]
        )
    output = [
        check
        for check in check_store_and_settings(settings, ManualClock(Instant(1_000)))
        if "measured use" in check.what or "not a cluster of" in check.what
    ]
    assert [result.ok for result in output] == [False, True, True, True, True]
    assert output[0].remedy == "if cpu is meant: policy.categories.research.resources.cpu"
    (misspelt, grants, beside, credit, agent) = (result.what for result in output)
    assert misspelt.startswith("category research grants cpuu, which no partition bills")
    assert grants.startswith("category research grants tape, which no partition bills")
    assert beside.startswith("category storage grants cpu2, which no partition bills")
    assert credit.startswith("allocation 2 is of cpuu")
    assert agent.startswith("token 2 is for the agent of darvin")


@pytest.mark.parametrize(
    "name", ["bank", "bank/fairbank.toml", "bank/fairbank.sqlite", "bank/fairbank.sqlite-wal"]
)
@pytest.mark.parametrize("bits", [0o020, 0o002])
def test_file_or_directory_writable_by_others_is_reported(
    tmp_path: Path, name: str, bits: int
) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    settings = BankSettings(
        store=StoreSettings(url=f"sqlite:///{folder}/fairbank.sqlite"),
        server=ServerSettings(socket=f"{folder}/fairbank.sock"),
        secret_file=f"{folder}/secret",
    )
    for file in ("fairbank.toml", "secret", "fairbank.sqlite", "fairbank.sqlite-wal"):
        (folder / file).touch(0o600)
    for path in (folder, tmp_path):
        path.chmod(0o755)
    [check] = check_file_modes(settings, folder / "fairbank.toml")
    assert check.ok, check
    changed = tmp_path / name
    changed.chmod(changed.stat().st_mode | bits)
    [check] = check_file_modes(settings, folder / "fairbank.toml")
    assert (check.ok, check.remedy) == (False, f"chmod go-w {changed}")
    changed.chmod(changed.stat().st_mode | stat.S_ISVTX)
    assert [check.ok for check in check_file_modes(settings, folder / "fairbank.toml")] == [
        changed == folder  # as /tmp
    ]
