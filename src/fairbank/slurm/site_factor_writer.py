"""Writer of the table of site factors, a periodic job of the agent.

Whatever goes wrong, jobs go on: the old table becomes stale.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairbank.agent.reports.results import cannot_connect
from fairbank.agent.settings import AgentSettings
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.priority.site_factor import rule_of
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.bank import BankClient
from fairbank.slurm.site_factor import SiteFactorTable, encode, table_of
from fairbank.slurm.sync import replace_file

_log = logging.getLogger(__name__)


class TableWriter:
    """Writer of the table: it asks the bank and replaces the file as a whole.

    `now` returns seconds since 1970 by the clock of slurmctld's host.
    """

    def __init__(self, settings: AgentSettings, *, now: Callable[[], float] = time.time) -> None:
        """Raises FairbankError if the credentials for the bank cannot be read."""
        address = parse_address(settings.bank.server, field="bank.server")
        signer = settings.site_factor.signer(settings.bank)
        self._settings, self._now = settings.site_factor, now
        self._bank = BankClient(
            Client(address, signer=signer, timeout_seconds=settings.bank.timeout)
        )
        self._table: SiteFactorTable | None = None
        self._trouble: FairbankError | None = None

    def write(self) -> None:
        """Write one table, or log an error that is not the last one again."""
        try:
            table = self._fetch()
            replace_file(Path(self._settings.path or ""), encode(table), field="site_factor.path")
        except FairbankError as trouble:
            self._failed(trouble)
        except OSError as error:
            self._failed(cannot_connect(error))
        except (KeyError, TypeError, ValueError) as error:
            what = f"the bank's answer is not understood: {error!r}"
            self._failed(
                InvalidInput(
                    what,
                    field="bank.server",
                    remedy="install the bank and the agent of one release",
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

    def _fetch(self) -> SiteFactorTable:
        now, settings = int(self._now()), self._settings
        self._bank.demand_sight()
        return table_of(
            self._bank.cluster(settings.cluster),
            self._bank.projects_alone(),
            self._bank.allocations(),
            now=now,
            weight=settings.weight,
            stale_seconds=settings.stale,
            rule=rule_of(settings.rule, settings.credit, settings.expiry),
        )

    def _failed(self, trouble: FairbankError) -> None:
        if self._trouble is None or self._trouble.message != trouble.message:
            _log.warning(
                "%s: site factors are not written: %s; try: %s",
                self._settings.path,
                trouble.message,
                trouble.remedy,
            )
        self._trouble = trouble

    def status(self) -> dict[str, Any]:
        """Return the status as JSON; times are seconds since 1970."""
        table, trouble = self._table, self._trouble
        return {
            "path": self._settings.path,
            "written": None if table is None else table.written,
            "values": 0 if table is None else len(table.values),
            "trouble": None if trouble is None else trouble.message,
            "remedy": None if trouble is None else trouble.remedy,
        }
