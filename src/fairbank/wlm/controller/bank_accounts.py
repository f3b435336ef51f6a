"""Accounts of the bank: its projects and their members, read again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from fairbank.core.errors import FairbankError
from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient
from fairbank.unix_users import user_name
from fairbank.wlm.core.accounts import BankAccount

PERIOD_SECONDS = 30.0
"""Pause between two readings: a new project is known within a minute."""
RETRY_SECONDS = 1.0
"""Pause after a reading that failed, while no accounts are known."""
_TIMEOUT = 10.0

_log = logging.getLogger(__name__)


class BankReader:
    """Reader of the accounts. Without an answer the accounts of the last one count."""

    def __init__(self, server: str, handle: Callable[[Mapping[str, BankAccount]], object]) -> None:
        """Make a reader of the bank at a socket; `run` reads. Raises InvalidInput."""
        address = parse_address(server, field="bank.server")
        self._bank = BankClient(Client(address, timeout_seconds=_TIMEOUT))
        self._handle = handle
        self._error = ""
        self._lock, self._begun = asyncio.Lock(), 0
        self.has_read = asyncio.Event()
        """Set after the first answer of the bank."""

    async def run(self) -> None:
        """Read, until this task is cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(PERIOD_SECONDS if self.has_read.is_set() else RETRY_SECONDS)

    async def refresh(self) -> None:
        """Return after a reading that began after this call; those who wait share one."""
        begun = self._begun
        async with self._lock:
            if self._begun == begun:
                self._begun += 1
                await self._read()

    async def _read(self) -> None:
        try:
            accounts = await asyncio.to_thread(read_accounts, self._bank)
        except FairbankError as error:
            if error.message != self._error:
                _log.warning("cannot read the accounts of the bank: %s", error.message)
            self._error = error.message
            return
        if self._error:
            _log.info("the accounts of the bank are read again")
        self._error = ""
        self._handle(accounts)
        self.has_read.set()


def read_accounts(bank: BankClient) -> dict[str, BankAccount]:
    """Return the projects of a bank that are not removed, by account.

    A member without a user name on this host has the number, as in a request of theirs. Raises
    FairbankError, also for a bank that does not show all projects.
    """
    bank.require_full_view()
    projects = bank.projects()
    names = {project.id: project.account for project in projects}
    return {
        project.account: BankAccount(
            number=project.id,
            parent=names.get(project.parent or 0, ""),
            users=tuple(sorted(map(user_name, project.all_members))),
        )
        for project in projects
    }
