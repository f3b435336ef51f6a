"""Settings: one TOML file, read strictly. Each error names the key and the remedy."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from fairbank.bank.policy import DEFAULT_CATEGORIES, GrantCategory, GrantRange, Policy
from fairbank.cluster.partition import Cluster
from fairbank.core import ids
from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.core.settings_file import parse_toml, read_whole
from fairbank.core.validation import WORD, describe_invalid_setting, validated_settings
from fairbank.service.access.identity import Staff, VisibleJobs
from fairbank.service.cluster_settings import ClusterSettings, PartitionSettings, Uid, read_cluster

Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Word = Annotated[str, msgspec.Meta(pattern=WORD)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class LogFormat(Enum):
    """Format of the server's log. AUTO is SHORT on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    SHORT = "short"


class WriteQueuePlace(Enum):
    """Place of the write queue: threads of the server, or a process of its own."""

    THREADS = "threads"
    PROCESS = "process"


class StoreSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Database of the bank.

    `journal` is SQLite's journal mode: "wal", or "truncate", which is slower (default: "wal", or
    "truncate" if the SQLite library is too old for WAL).
    """

    url: str
    journal: Literal["wal", "truncate"] | None = None


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses of the server: always `socket`, and TCP if `port` is given. TCP needs tokens or
    MUNGE.

    `name`: the bank's name, which every answer has; MUNGE credentials are bound to it
    (`server_name` of the clients). `munge_plain`: also accept credentials without a payload (`munge
    -n`), which are bound to no request: a user who sees one before it is used can send any request
    with it, as its owner. `waiting_max`: maximum number of queued requests; beyond it the
    server answers 503. `unix_groups`: users whose Unix groups contain a project's gid are its
    members. `visible_jobs`: jobs and usage that users who are not staff see: "own" and those of
    projects that they lead; "project": those of all their projects; or "all". `log`: "json",
    "short", or "auto": JSON, but short lines and only warnings on a terminal. `write_queue`: on
    PostgreSQL, requests are applied in "threads" of the server or in a "process" of its own, which
    uses a second processor; on SQLite always in threads.
    """

    socket: str
    host: Word = "127.0.0.1"
    port: Port | None = None
    munge: bool = False
    munge_socket: str | None = None
    munge_plain: bool = False
    name: Word = "fairbank"
    waiting_max: Positive = 10_000
    unix_groups: bool = True
    visible_jobs: VisibleJobs = VisibleJobs.PROJECT
    log: LogFormat = LogFormat.AUTO
    write_queue: WriteQueuePlace = WriteQueuePlace.PROCESS


class StaffSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Unix users by uid. The user who runs the server is always a superuser."""

    superusers: frozenset[Uid] = frozenset()
    admins: frozenset[Uid] = frozenset()


class HistorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records kept beside the ledger.

    `fair_share_days`: days for which the records of `fairbank share record` are kept; 0 for ever.
    """

    fair_share_days: Annotated[int, msgspec.Meta(ge=0, le=36_600)] = 731


class BankSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. `secret_file` holds the key of the tokens' digests."""

    store: StoreSettings
    server: ServerSettings
    secret_file: str
    staff: StaffSettings = StaffSettings()
    policy: Policy = Policy()
    clusters: dict[str, ClusterSettings] = {}
    history: HistorySettings = HistorySettings()

    def staff_members(self) -> Staff:
        """Return staff and agents; the user who runs the server is a superuser."""
        agents: dict[int, frozenset[str]] = {}
        for name, cluster in self.clusters.items():
            for uid in cluster.agents:
                agents[uid] = agents.get(uid, frozenset()) | {name}
        return Staff(
            self.staff.superusers | {os.getuid()},
            self.staff.admins,
            agents,
            self.server.visible_jobs,
        )

    def cluster_map(self) -> dict[str, Cluster]:
        """Return the clusters by name. Raises InvalidInput with the key."""
        return {
            ids.cluster(name, field=f"clusters.{name}"): read_cluster(name, cluster)
            for name, cluster in self.clusters.items()
        }


def read_settings(path: Path) -> BankSettings:
    """Read a settings file. Raises NotFound if it is missing, Forbidden if unreadable, InvalidInput
    with the key.
    """
    try:
        with path.open("rb") as file:
            text = read_whole(file, str(path), field="config")
    except PermissionError as error:
        raise Forbidden(
            f"you may not read the settings {path}",
            field="config",
            remedy="run the command as the bank's user",
        ) from error
    except OSError as error:
        raise NotFound(
            f"cannot read the settings {path}: {error.strerror}",
            field="config",
            remedy="make them with: fairbank init",
        ) from error
    settings_table = parse_toml(text, str(path), field="config")
    with validated_settings(str(path), settings_table, BankSettings):
        _check_mappings(settings_table)
        settings = msgspec.convert(settings_table, BankSettings)
        settings.cluster_map()
    if settings.policy.categories:
        return settings
    return replace(settings, policy=replace(settings.policy, categories=DEFAULT_CATEGORIES))


def _check_mappings(settings_table: dict[str, Any]) -> None:
    """Check each category, cluster and partition by itself: msgspec does not name the keys of a
    mapping in its errors.

    Raises InvalidInput.
    """
    policy = settings_table.get("policy")
    categories = policy.get("categories") if isinstance(policy, dict) else None
    for name, category in categories.items() if isinstance(categories, dict) else ():
        ids.kind(name, field=f"policy.categories.{name}", noun="category")
        _check_category(name, category)
    clusters = settings_table.get("clusters")
    for name, cluster in clusters.items() if isinstance(clusters, dict) else ():
        partitions = cluster.get("partitions") if isinstance(cluster, dict) else None
        for partition_name, partition in partitions.items() if isinstance(partitions, dict) else ():
            _check_table(
                partition, PartitionSettings, f"clusters.{name}.partitions.{partition_name}"
            )
        _check_table(cluster, ClusterSettings, f"clusters.{name}")


def _check_category(name: str, category: object) -> None:
    place = f"policy.categories.{name}"
    resources = category.get("resources") if isinstance(category, dict) else None
    for resource, limits in resources.items() if isinstance(resources, dict) else ():
        _check_table(limits, GrantRange, f"{place}.resources.{resource}")
        lowest, highest = limits.get("lowest", 0), limits.get("highest")
        if highest is not None and highest < lowest:
            raise InvalidInput(
                f"the highest grant {highest} is below the lowest grant {lowest}",
                field=f"{place}.resources.{resource}.highest",
                remedy=f"{lowest} or more; or leave it out for any amount",
            )
        ids.kind(resource, field=f"{place}.resources.{resource}")
    _check_table(category, GrantCategory, place)
    if isinstance(category, dict) and "purpose" in category:
        ids.comment(category["purpose"], field=f"{place}.purpose")


def _check_table(value: object, kind: type[msgspec.Struct], place: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, value, BankSettings, place) from bad
