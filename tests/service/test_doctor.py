"""The doctor: what is wrong is told from what was chosen."""

from __future__ import annotations

from pathlib import Path

from fairbank.bank.policy import Policy
from fairbank.service.doctor import examine
from fairbank.service.settings import ClusterSettings, PartitionSettings, ServerSettings, Settings, StoreSettings
from fairbank.store.migrating import migrate
from fairbank.values.time import Instant, StoppedClock


def test_a_bank_that_only_observes_is_well_and_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.sqlite"
    migrate(url)
    settings = Settings(
        store=StoreSettings(url=url),
        server=ServerSettings(socket=f"{tmp_path}/fairbank.sock"),
        secret_file=f"{tmp_path}/secret",
        policy=Policy(enforce=False),
        clusters={"darwin": ClusterSettings(partitions={"standard": PartitionSettings("cpu")}, agents=frozenset({7}))},
    )
    checks = [each for each in examine(settings, StoppedClock(Instant(1_000))) if "disk" not in each.what]
    assert all(each.ok for each in checks), checks
    assert any("only observes" in each.what for each in checks)
