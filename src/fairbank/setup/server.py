"""Server of a bank: its settings, store and sockets."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from fairbank.core.errors import Conflict, FairbankError
from fairbank.core.health import HealthCheck, run_check
from fairbank.rest.auth.keyfile import read_secret
from fairbank.rest.auth.munge import LIBRARY, Munge
from fairbank.rest.auth.peers import groups_of, members_of
from fairbank.rest.context import AppContext
from fairbank.rest.server.log import log_to
from fairbank.rest.server.server import serve
from fairbank.service.services import Services, services
from fairbank.service.settings import BankSettings, WriteQueuePlace
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.setup.bank_settings import SystemClock, open_bank_store, settings_of
from fairbank.setup.write_queue_process import start_write_queue
from fairbank.store.contract import Store
from fairbank.store.sql.schema_check import schema_differences
from fairbank.store.urls import POSTGRESQL, parse_url

_log = logging.getLogger(__name__)


def run(config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]) -> int:
    """Serve until stopped.

    Args:
        config: the settings file; None: the default file.
        port: TCP port; None: the one of the settings, and without one no TCP.
        ready: called with the addresses, that of the Unix socket first, once the server listens.

    Returns:
        The exit code.
    """
    settings = settings_of(config)
    log_to(sys.stderr, settings.server.log)
    store = _open_store(config, settings)
    for check in check_munge(settings):
        if not check.ok:
            _log.warning("%s; %s", check.what, check.remedy)
    bank = _services(settings, store)
    context = AppContext.create(
        bank,
        munge=_munge_of(settings),
        munge_plain=settings.server.munge_plain,
        name=settings.server.name,
    )
    bank.upkeep.start()
    host, port = settings.server.host, port or settings.server.port
    tcp = [] if port is None else [f"http://{f'[{host}]' if ':' in host else host}:{port}"]
    addresses = [f"unix:{settings.server.socket}", *tcp]
    serve(
        context,
        unix=Path(settings.server.socket),
        host=host,
        port=port,
        ready=lambda: ready(addresses),
    )
    return 0


def _services(settings: BankSettings, store: Store) -> Services:
    return services(
        store,
        clock=SystemClock(),
        staff=settings.staff_members(),
        clusters=settings.cluster_map(),
        policy=settings.policy,
        key=read_secret(Path(settings.secret_file)),
        waiting_max=settings.server.waiting_max,
        groups_of=groups_of if settings.server.unix_groups else None,
        members_of=members_of if settings.server.unix_groups else None,
        actor=os.getuid(),
        shares_days=settings.history.fair_share_days or None,
        make_queue=partial(start_write_queue, settings.store, settings.server.log)
        if _has_process(settings)
        else WriterThreads,
    )


def _munge_of(settings: BankSettings) -> Munge | None:
    """Return the client of munged; None if the settings do not allow MUNGE."""
    if not settings.server.munge:
        return None
    library = os.environ.get("FAIRBANK_LIBMUNGE", LIBRARY)
    return Munge(socket=settings.server.munge_socket, library=library)


def check_munge(settings: BankSettings) -> Iterator[HealthCheck]:
    """Check that munged answers if the settings allow MUNGE, and that `munge_plain` has an effect.

    Otherwise a fault shows only in the answer to the first credential of a client.
    """
    munge = _munge_of(settings)
    if munge is not None:
        yield run_check("MUNGE, as server.munge wants it", lambda: munge.encode(b""))
    elif settings.server.munge_plain:
        yield HealthCheck(
            "server.munge_plain has no effect: server.munge is false",
            False,
            "set munge = true under [server], or leave out munge_plain",
        )


def _open_store(config: str | None, settings: BankSettings) -> Store:
    store = open_bank_store(config, settings)
    try:
        refuse_changed_schema(settings.store.url)
    except BaseException:
        store.close()
        raise
    return store


def refuse_changed_schema(url: str) -> None:
    """Raise Conflict if the store's schema was changed: it might accept what breaks the ledger."""
    # It would log the migrations of the schema to compare with, as if the store were migrated.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        differences = schema_differences(url)
    except FairbankError as error:  # a PostgreSQL user without the right to create a schema
        _log.warning("the schema of the store was not compared: %s", error.message)
        return
    if differences:
        first = differences[0]
        others = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        raise Conflict(
            f"the schema of the store was changed: {first.kind} {first.name} is"
            f" {first.fault.value}{others}",
            field="store.url",
            remedy="fairbank doctor lists all changes with their remedies",
        )


def _has_process(settings: BankSettings) -> bool:
    """Return whether the write queue has its own process.

    A store in memory is in one process only. On SQLite one transaction writes at a time, and its
    commit is not a round trip during which another process could work.
    """
    return (
        settings.server.write_queue is WriteQueuePlace.PROCESS
        and parse_url(settings.store.url).drivername == POSTGRESQL
    )
