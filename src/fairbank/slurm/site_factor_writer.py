"""Writer of the table of site factors, a periodic job of the agent.

Whatever fails, jobs go on: the old table becomes stale.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairbank.agent.reports.report import cannot_connect
from fairbank.agent.settings import AgentSettings
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.priority.site_factor import rule_of
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.bank import BankClient
from fairbank.slurm.site_factor import SiteFactorTable, build_table, encode
from fairbank.slurm.sync import replace_file

_log = logging.getLogger(__name__)


class TableWriter:
    """Writer of the table: it asks the bank and replaces the file as a whole.

    `now` returns seconds since 1970 by the clock of slurmctld's host.
    """

    def __init__(self, settings: AgentSettings, *, now: Callable[[], float] = time.time) -> None:
        """Raises FairbankError if the credentials for the bank cannot be read."""
        address = parse_address(settings.bank.server, field="bank.server")
        signer = settings.bank.signer(settings.site_factor.token_file)
        client = Client(address, signer=signer, timeout_seconds=settings.bank.timeout)
        self._settings, self._now, self._bank = settings.site_factor, now, BankClient(client)
        self._table: SiteFactorTable | None = None
        self._error: FairbankError | None = None

    def write(self) -> None:
        """Write one table, or log an error that is not the last one again."""
        try:
            table = self._fetch()
            replace_file(Path(self._settings.path or ""), encode(table), field="site_factor.path")
        except FairbankError as error:
            self._fail(error)
        except OSError as error:
            self._fail(cannot_connect(error))
        except (KeyError, TypeError, ValueError) as error:
            text = f"the bank's answer is not understood: {error!r}"
            remedy = "install the bank and the agent of one release"
            self._fail(InvalidInput(text, field="bank.server", remedy=remedy))
        else:
            if self._error is not None or self._table is None:
                text = "%s: site factors are written, %d of them"
                _log.info(text, self._settings.path, len(table.values))
            self._table, self._error = table, None

    def _fetch(self) -> SiteFactorTable:
        settings = self._settings
        self._bank.require_full_view()
        return build_table(
            self._bank.cluster(settings.cluster),
            self._bank.projects_without_members(),
            self._bank.allocations(),
            now=int(self._now()),
            weight=settings.weight,
            stale_seconds=settings.stale,
            rule=rule_of(settings.rule, settings.credit, settings.expiry),
        )

    def _fail(self, error: FairbankError) -> None:
        if self._error is None or self._error.message != error.message:
            text = "%s: site factors are not written: %s; try: %s"
            _log.warning(text, self._settings.path, error.message, error.remedy)
        self._error = error

    def status(self) -> dict[str, Any]:
        """Return the status as JSON; times are seconds since 1970."""
        table, error = self._table, self._error
        return {
            "path": self._settings.path,
            "written": None if table is None else table.written,
            "values": 0 if table is None else len(table.values),
            "error": None if error is None else error.message,
            "remedy": None if error is None else error.remedy,
        }
