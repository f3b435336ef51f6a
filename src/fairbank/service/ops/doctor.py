"""Health checks of a bank, run on its own host, with the remedy for each failure."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from fairbank.bank.allocation import Allocation, ShownState
from fairbank.bank.token import Token
from fairbank.core.errors import Corrupt, FairbankError
from fairbank.core.health import HealthCheck
from fairbank.core.os_errors import can_others_change
from fairbank.core.time import Clock, Instant
from fairbank.service.access.tokens import AGENT
from fairbank.service.settings import BankSettings
from fairbank.store.contract import ProgressCallback, Store
from fairbank.store.factory import open_store
from fairbank.store.sql.schema_check import SchemaFault, schema_differences
from fairbank.store.urls import SQLITE, parse_url, path_of

_DISK_FREE_PERCENT = 10
_LATE_SECONDS = 600
_DAMAGE_MAX = 20
_LIKE = 0.7
"""Similarity of names of which one is taken for the other misspelt; cpu and gpu have 0.67."""


def check_store_and_settings(
    settings: BankSettings, clock: Clock, at_work: ProgressCallback | None = None
) -> Iterator[HealthCheck]:
    """Check the store and the settings.

    Args:
        settings: settings of the bank, which name the store.
        clock: tells the time, which decides what is overdue, ended or unused.
        at_work: called while SQLite checks its file.
    """
    yield from _check_settings(settings)
    try:
        store = open_store(settings.store.url, journal=settings.store.journal)
    except FairbankError as error:
        yield HealthCheck(f"the store cannot be opened: {error.message}", False, error.remedy)
        return
    try:
        yield HealthCheck(
            f"the store opens and has all tables and columns ({_kind(settings)})", True
        )
        yield from check_schema(settings.store.url)
        yield from _check_file(store, settings, at_work)
        yield from _check_disk(settings)
        yield from _check_ledger(store, clock)
        with suppress(Corrupt):  # _check_ledger has reported it
            yield from _check_unused(settings, store, clock)
    finally:
        store.close()


def check_file_modes(settings: BankSettings, settings_file: Path) -> Iterator[HealthCheck]:
    """Check that only their owner can change the settings, the secret and SQLite's files.

    A user who can write a directory above a file can put another file in its place.
    """
    files = [settings_file, Path(settings.secret_file)]
    where = parse_url(settings.store.url)
    if where.drivername == SQLITE:
        files += [Path(f"{path_of(where)}{end}") for end in ("", "-wal", "-shm", "-journal")]
    paths = {path for file in files for path in (file.resolve(), *file.resolve().parents)}
    writable = [path for path in sorted(paths) if can_others_change(_mode_of(path))]
    if not writable:
        yield HealthCheck("only their owner can change settings, secret and store", True)
    for path in writable:
        yield HealthCheck(
            f"other users can change {path}", False, f"chmod go-w {shlex.quote(str(path))}"
        )


def _mode_of(path: Path) -> int:
    """Return the mode of a file; 0 if there is none."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _check_settings(settings: BankSettings) -> Iterator[HealthCheck]:
    partitions = sum(len(cluster.partitions) for cluster in settings.clusters.values())
    names = ", ".join(sorted(settings.clusters)) or "none"
    yield HealthCheck(
        f"clusters in the settings: {names}; partitions: {partitions}",
        partitions > 0,
        "name your partitions under [clusters.NAME.partitions]",
    )
    for name, cluster in sorted(settings.clusters.items()):
        yield HealthCheck(
            f"users that may report runs of cluster {name}:"
            f" {', '.join(f'uid {uid}' for uid in sorted(cluster.agents)) or 'none'}",
            bool(cluster.agents),
            f"agents = [UID] under [clusters.{name}]",
        )
    superusers = settings.staff.superusers | {_server_user(settings)}
    for name, category in sorted(settings.policy.categories.items()):
        for uid in sorted(category.granters - superusers):
            yield HealthCheck(
                f"granter {uid} of category {name} is no superuser, and cannot grant in it",
                False,
                f"add uid {uid} to staff.superusers, or remove it from"
                f" policy.categories.{name}.granters",
            )
    if not settings.policy.enforce:
        yield HealthCheck(
            "the bank only observes, as the settings want it: policy.enforce = false", True
        )


def _server_user(settings: BankSettings) -> int:
    """Return who runs the server: the owner of its socket, or the present user if it has none."""
    try:
        return Path(settings.server.socket).stat().st_uid
    except OSError:
        return os.getuid()


_REBUILD = (
    "fairbank audit verify; then make a new bank with fairbank init, and move the ledger there:"
    " fairbank backup, fairbank restore"
)


def check_schema(url: str) -> Iterator[HealthCheck]:
    """Compare the schema with the one that Fairbank creates."""
    try:
        differences = schema_differences(url)
    except FairbankError as error:
        yield HealthCheck(f"the guards could not be compared: {error.message}", False, error.remedy)
        return
    if not differences:
        yield HealthCheck("the tables, guards and views are as Fairbank made them", True)
    for difference in differences:
        remedy = (
            "drop it, unless you know it; then: fairbank audit verify"
            if difference.fault is SchemaFault.FOREIGN
            else _REBUILD
        )
        yield HealthCheck(
            f"{difference.kind} {difference.name} is {difference.fault.value}", False, remedy
        )


_DAMAGED = (
    "fairbank audit verify tells more; then move the file away, and restore a backup of before:"
    " fairbank init, fairbank restore FILE"
)
_INDEXES = (
    "sqlite3 FILE REINDEX makes the indexes again, with the server stopped; then:"
    " fairbank audit verify"
)


def _check_file(
    store: Store, settings: BankSettings, at_work: ProgressCallback | None
) -> Iterator[HealthCheck]:
    """Run SQLite's full check. The quick one does not compare indexes with their tables."""
    if parse_url(settings.store.url).drivername != SQLITE:
        return
    try:
        errors = store.integrity_errors(at_work=at_work)
    except FairbankError as error:
        yield HealthCheck(f"the file cannot be checked: {error.message}", False, error.remedy)
        return
    if not errors:
        yield HealthCheck("the SQLite file is sound, and its indexes have every row", True)
    for fault in errors[:_DAMAGE_MAX]:
        yield HealthCheck(fault.message, False, _INDEXES if fault.in_index else _DAMAGED)


def _kind(settings: BankSettings) -> str:
    return parse_url(settings.store.url).drivername.partition("+")[0]


def _check_disk(settings: BankSettings) -> Iterator[HealthCheck]:
    where = parse_url(settings.store.url)
    if where.drivername != SQLITE:
        return
    usage = shutil.disk_usage(Path(path_of(where)).parent)
    free = 100 * usage.free // usage.total
    yield HealthCheck(
        f"{free}% of the store's disk is free",
        free >= _DISK_FREE_PERCENT,
        "free disk space, or move the store",
    )


def _check_ledger(store: Store, clock: Clock) -> Iterator[HealthCheck]:
    since = Instant(clock.now() - _LATE_SECONDS)
    try:
        with store.reading() as reader:
            overdue, expired = (
                len(reader.overdue_runs(since, 1_000)),
                len(reader.expired_allocations(since, 1_000)),
            )
    except Corrupt as corrupt:
        yield HealthCheck(f"the ledger cannot be read: {corrupt.message}", False, corrupt.remedy)
        return
    what = f"past their end, but not closed: holds {overdue}, allocations {expired}"
    yield HealthCheck(what, not overdue and not expired, "run the server: it sweeps every minute")


def _check_unused(settings: BankSettings, store: Store, clock: Clock) -> Iterator[HealthCheck]:
    """Report grants, allocations and agent tokens that no cluster of the settings uses. This is no
    error, unless a granted resource looks like one that is billed, misspelt.
    """
    clusters = settings.cluster_map()
    billed = {resource for cluster in clusters.values() for resource in cluster.resources}
    for name, category in sorted(settings.policy.categories.items()):
        for resource in sorted({*category.resources} - billed):
            # One that stands beside the billed resource is no misspelling of it.
            near = get_close_matches(resource, sorted(billed), n=1, cutoff=_LIKE)
            yield HealthCheck(
                f"category {name} grants {resource}, which no partition bills: only measured use"
                " can be charged to it (fairbank storage import)",
                set(near) <= {*category.resources},
                f"if {''.join(near)} is meant: policy.categories.{name}.resources.{''.join(near)}",
            )
    now = clock.now()
    with store.reading() as reader:
        for allocation in reader.scan(Allocation):
            resource = allocation.terms.resource
            if resource not in billed and allocation.shown_state(now) is not ShownState.ENDED:
                yield HealthCheck(
                    f"allocation {allocation.id} is of {resource}, which no partition"
                    " bills: only measured use can be charged to it (fairbank storage import)",
                    True,
                )
        for token in reader.scan(Token):
            good = token.revoked is None and token.expires > now
            for name in (
                scope.removeprefix(AGENT)
                for scope in token.scopes
                if good and scope.startswith(AGENT)
            ):
                if name not in settings.clusters:
                    yield HealthCheck(
                        f"token {token.id} is for the agent of {name},"
                        " which is not a cluster of the settings",
                        True,
                    )
