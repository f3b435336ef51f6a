"""The table of site factors, written again and again from the bank. Whatever goes wrong, jobs go on: the table left grows stale."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fairbank.core.errors import Malformed, Trouble
from fairbank.priority.site_factor import rule_of
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.agent.settings import AgentSettings
from fairbank.slurm.bank import BankClient
from fairbank.slurm.report_results import cannot_ask
from fairbank.slurm.site_factor import SiteFactorTable, build_table, encode
from fairbank.slurm.sync import replace_file

_log = logging.getLogger(__name__)


class TableWriter:
    """Asks the bank in a thread of its own and replaces the file as a whole. `now`: seconds since 1970, as slurmctld's host counts them."""

    def __init__(self, settings: AgentSettings, *, now: Callable[[], float] = time.time) -> None:
        """Raises the Trouble that keeps it from signing in."""
        address = parse_address(settings.bank.server, field="bank.server")
        signer = settings.site_factor.signer(settings.bank)
        self._settings, self._now = settings.site_factor, now
        self._bank = BankClient(
            Client(address, signer=signer, timeout_seconds=settings.bank.timeout)
        )
        self._thread = ThreadPoolExecutor(1, "site-factor")
        self._table: SiteFactorTable | None = None
        self._trouble: Trouble | None = None

    async def run(self) -> None:
        """Until it is closed."""
        while True:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.write)
            await asyncio.sleep(self._settings.refresh)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def write(self) -> None:
        """One table; or, once, a line in the log that says why there is none."""
        try:
            table = self._asked()
            replace_file(Path(self._settings.path or ""), encode(table), field="site_factor.path")
        except Trouble as trouble:
            self._failed(trouble)
        except OSError as error:
            self._failed(cannot_ask(error))
        except (KeyError, TypeError, ValueError) as bad:
            what = f"what the bank answered is not understood: {bad!r}"
            self._failed(
                Malformed(
                    what, field="bank.server", remedy="is it a bank, and as new as this agent?"
                )
            )
        else:
            if self._trouble is not None or self._table is None:
                _log.info(
                    "%s: site factors are written, %d of them",
                    self._settings.path,
                    len(table.values),
                )
            self._table, self._trouble = table, None

    def _asked(self) -> SiteFactorTable:
        now, settings = int(self._now()), self._settings
        self._bank.require_full_view()
        return build_table(
            self._bank.cluster(settings.cluster),
            self._bank.projects_without_members(),
            self._bank.allocations(),
            now=now,
            weight=settings.weight,
            stale_seconds=settings.stale,
            rule=rule_of(settings.rule, settings.credit, settings.expiry),
        )

    def _failed(self, trouble: Trouble) -> None:
        if self._trouble is None or self._trouble.message != trouble.message:
            _log.warning(
                "%s: site factors are not written: %s; try: %s",
                self._settings.path,
                trouble.message,
                trouble.remedy,
            )
        self._trouble = trouble

    def status(self) -> dict[str, Any]:
        """What a person may want to know, as JSON. Instants are seconds since 1970."""
        table, trouble = self._table, self._trouble
        return {
            "path": self._settings.path,
            "written": None if table is None else table.written,
            "values": 0 if table is None else len(table.values),
            "trouble": None if trouble is None else trouble.message,
            "remedy": None if trouble is None else trouble.remedy,
        }
