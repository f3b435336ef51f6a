"""Controller daemon: runner of the core, links to nodes, signals, reconfiguration."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fairbank.agent.control import PROMETHEUS, as_json, listen
from fairbank.core.errors import Conflict, FairbankError
from fairbank.rest.server.daemon_tasks import DaemonTasks
from fairbank.rest.server.log import set_debug_levels
from fairbank.statefile.local_disk import check_local_disk
from fairbank.wlm.config.comparison import compare
from fairbank.wlm.controller.agent_link import AgentLink
from fairbank.wlm.controller.bank_accounts import BankReader
from fairbank.wlm.controller.commands.answers import CommandAnswers
from fairbank.wlm.controller.commands.command_server import CommandServer
from fairbank.wlm.controller.configuration import (
    check_stored_jobs,
    dropped_rows,
    read_settings,
    resources_in_use,
    stored_state,
)
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.job_owners import OwnerWatch
from fairbank.wlm.controller.metrics import ControllerMetrics
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.state_store import STATE_FILE, StateStore
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import StoreRows
from fairbank.wlm.core.events import AccountsRead
from fairbank.wlm.core.settings import WlmSettings

ACCOUNTS_SECONDS = 30.0
"""Longest wait for the bank at the first start."""

_log = logging.getLogger(__name__)


class ControllerDaemon:
    """Controller of one cluster. It ends when a task fails, so that its supervisor starts it again:
    the state file has everything.
    """

    def __init__(self, directory: Path) -> None:
        """Read the settings and the state. Raises FairbankError."""
        self._directory = directory
        self._stopping = asyncio.Event()
        self.tasks = DaemonTasks("the controller", self.shut_down)
        self._agent: AgentLink | None = None
        loaded = read_settings(directory)
        _set_debug_levels(loaded.settings)
        for note in loaded.notes:
            _log.warning("%s", note)
        place = Path(loaded.settings.cluster.state_save_location or directory)
        check_local_disk(place, field="state_save_location")
        store = StateStore(place / STATE_FILE)
        try:
            check_stored_jobs(loaded.settings, store.rows())
            self.runner = CoreRunner(loaded.settings, store)
        except BaseException:
            store.close()
            raise
        self.nodes = NodeLinks(directory / "nodes", self.runner, self.tasks.start)
        self.runner.send_to_node = self.nodes.send
        bank = loaded.settings.bank
        if bank.socket:
            self._agent = AgentLink(
                bank.socket,
                state=lambda: self.runner.state,
                stored=lambda: self.runner.stored_messages,
                handle=self.runner.handle,
                now=lambda: self.runner.now().mono,
                holds_without_agent=bank.holds_without_agent,
            )
            self.runner.send_to_agent = self._agent.send
        self._reader: BankReader | None = None
        if bank.server:
            self._reader = BankReader(
                bank.server, lambda accounts: self.runner.handle(AccountsRead(accounts))
            )
        answers = CommandAnswers(
            self.runner,
            self.nodes,
            reconfigure=self.reconfigure,
            shut_down=self.shut_down,
            read_accounts=None if self._reader is None else self._reader.refresh,
        )
        self._commands = CommandServer(answers.answer)
        agent = self._agent
        self._metrics = ControllerMetrics(
            self.runner, lambda: agent is not None and agent.is_connected
        )

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until SIGTERM, SIGINT or a request. Raises FairbankError if it cannot start.

        `ready` is called when commands are served.
        """
        self.tasks.handle_signals()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._reconfigure_by_signal)
        try:
            await self.runner.flush()
            self.tasks.start(self.runner.run())
            self.tasks.start(OwnerWatch(self.runner).run())
            self.nodes.update()
            if self._agent is not None:
                self.tasks.start(self._agent.run())
            if self._reader is not None:
                self.tasks.start(self._reader.run())
                await self._await_accounts(self._reader)
            async with self._metrics_pages():
                await self._commands.start(self._directory / "controller.sock")
                ready()
                await self._stopping.wait()
        finally:
            await self._commands.close()
            await self.tasks.close()
            self.runner.close()

    @asynccontextmanager
    async def _metrics_pages(self) -> AsyncIterator[None]:
        """Serve `/metrics` and `/health`. Raises FairbankError if another process listens there."""
        path = self._directory / "metrics.sock"
        pages = {
            "/metrics": lambda: (PROMETHEUS, self._metrics.page()),
            "/health": lambda: as_json({"status": "ok"}),
        }
        port = self.runner.settings.cluster.metrics_port
        servers = await listen(pages, path, port, field="metrics_port")
        try:
            yield
        finally:
            for server in servers:
                server.close()
            path.unlink(missing_ok=True)

    async def _await_accounts(self, reader: BankReader) -> None:
        """Wait for the first accounts: without any, jobs of the first seconds would have none."""
        if self.runner.state.bank_accounts:
            return
        waiting = [asyncio.create_task(event.wait()) for event in (reader.has_read, self._stopping)]
        await asyncio.wait(waiting, timeout=ACCOUNTS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if not reader.has_read.is_set():
            _log.warning("no accounts are known yet: jobs may name any")

    def shut_down(self) -> None:
        """End the controller; jobs go on."""
        self._stopping.set()

    def reconfigure(self) -> Sequence[str]:
        """Read the settings again, and take over all of them or none.

        Partitions are as the file has them: what was changed by requests is over.

        Returns:
            Sentences on keywords that have no effect, or have one at the next start.

        Raises:
            InvalidInput: the file has a mistake.
            Conflict: something cannot change while the controller or jobs run.
            Unavailable: the state cannot be stored now.
        """
        runner = self.runner
        runner.check_storage()
        loaded = read_settings(self._directory)
        state = runner.state
        comparison = compare(
            runner.settings, loaded.settings, resources_in_use(state.jobs.values())
        )
        if comparison.refused:
            raise Conflict("; ".join(comparison.refused), remedy="nothing was changed")
        core = Core(loaded.settings)
        for name in state.registered:
            core.state.set_registered(name, is_registered=True)
        effects = core.load(stored_state(state, loaded.settings), runner.now())
        dropped = StoreRows(tuple(dropped_rows(state, loaded.settings)))
        runner.replace_core(core, [dropped, *effects])
        _set_debug_levels(loaded.settings)
        self.nodes.update()
        names = [*comparison.keywords, comparison.nodes, *comparison.partitions]
        _log.info("reconfigured: %s", ", ".join(filter(None, names)) or "nothing has changed")
        return [*loaded.notes, *comparison.later]

    def _reconfigure_by_signal(self) -> None:
        try:
            self.reconfigure()
        except FairbankError as error:
            _log.error("the settings stay as they are: %s; %s", error.message, error.remedy)


def _set_debug_levels(settings: WlmSettings) -> None:
    cluster = settings.cluster
    set_debug_levels(cluster.slurmctld_debug, cluster.slurmctld_syslog_debug, daemon="slurmctld")
