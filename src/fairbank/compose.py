"""The composition: the only file that knows everyone, and that nobody imports. Here `fairbank` and `sproject` begin.

The everyday commands speak to the bank over REST and import next to nothing. What the heavy ones need is imported when it
is used: the one place where an import inside a function is not a fault of the map.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairbank.cli import main as commands
from fairbank.values.trouble import Conflict, Forbidden, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fairbank.bank.audit import Head
    from fairbank.bank.explaining import Explained
    from fairbank.rest.client import Client
    from fairbank.service.audit import Progress, Verdict
    from fairbank.service.doctor import Check
    from fairbank.service.replay import Progress as ReplayProgress
    from fairbank.service.replay import Replayed
    from fairbank.service.settings import Settings
    from fairbank.slurm.beside import Beside
    from fairbank.slurm.judging.health import Check as SlurmCheck
    from fairbank.store.contract import Store

SITE_SETTINGS = "/etc/fairbank/fairbank.toml"


def main() -> int:
    """The command `fairbank`, also by its short names."""
    return commands.run([*commands.SHORT_NAMES.get(os.path.basename(sys.argv[0]), ()), *sys.argv[1:]], Works())  # noqa: PTH119


def sproject() -> int:
    """The command `sproject`: HADM's words for the same bank."""
    from fairbank.cli import sproject as hadm

    return hadm.run(sys.argv[1:], Works())


class Works:
    """What the commands on the bank's own host are made of (cli.house.House)."""

    def reasons(self) -> list[Explained]:
        """Every reason why the bank says no."""
        from fairbank.bank.explaining import explained

        return explained()

    # --- making and running ---

    def init(self, directory: str | None, store: str | None) -> list[str]:
        """Make settings, secret and an empty store in a folder; an older store is migrated. Returns what was done."""
        import shlex
        from pathlib import Path
        from urllib.parse import quote

        from fairbank.rest.sign_in.keyfile import read_secret
        from fairbank.service.settings import example, read_settings
        from fairbank.store.migrating import migrate

        folder = Path(directory) if directory else usual_folder()
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as bad:
            raise Forbidden(f"cannot make the folder {folder}: {bad.strerror}", field="FOLDER", remedy="name another") from bad
        settings = folder / "fairbank.toml"
        if settings.exists():
            known = read_settings(settings)
            if store is not None and store != known.store.url:
                raise Conflict(f"{settings} names another store: {known.store.url}", field="--store", remedy="name another FOLDER")
            if not migrate(known.store.url, journal=known.store.journal):
                remedy = f"run it with: fairbank serve --config {shlex.quote(str(settings))}"
                raise Conflict(f"there is a bank in {folder} already, and its schema is current", field="FOLDER", remedy=remedy)
            return [f"migrated {known.store.url}"]
        url = store or f"sqlite:///{quote(str(folder.resolve()))}/books.sqlite"
        text = example(folder.resolve(), url)
        migrate(url)
        read_secret(folder / "secret", create=True)
        settings.touch(mode=0o600)  # a database's URL may hold a password
        settings.write_text(text, encoding="utf-8")
        return [f"made {each}" for each in (settings, folder / "secret", url)]

    def serve(self, config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]) -> int:
        """Serve until told to stop."""
        from pathlib import Path

        from fairbank.rest.house import furnish
        from fairbank.rest.server.log import log_to
        from fairbank.rest.server.serving import serve
        from fairbank.rest.sign_in.keyfile import read_secret
        from fairbank.rest.sign_in.munge import LIBRARY, Munge
        from fairbank.rest.sign_in.peers import groups_of
        from fairbank.service.clock import SystemClock
        from fairbank.service.services import services

        settings = self._settings(config)
        log_to(sys.stderr, settings.server.log)
        clock = SystemClock()
        store = self._open(config)
        library = os.environ.get("FAIRBANK_LIBMUNGE", LIBRARY)
        munge = Munge(socket=settings.server.munge_socket, library=library) if settings.server.munge else None
        bank = services(
            store,
            clock=clock,
            staff=settings.the_staff(),
            clusters=settings.the_clusters(),
            policy=settings.policy,
            key=read_secret(Path(settings.secret_file)),
            waiting_max=settings.server.waiting_max,
            groups_of=groups_of if settings.server.unix_groups else None,
            actor=os.getuid(),
        )
        house = furnish(bank, munge=munge, name=settings.server.name)
        bank.upkeep.start()
        host, port = settings.server.host, port or settings.server.port
        tcp = [] if port is None else [f"http://{f'[{host}]' if ':' in host else host}:{port}"]
        addresses = [f"unix:{settings.server.socket}", *tcp]
        serve(house, unix=Path(settings.server.socket), host=host, port=port, ready=lambda: ready(addresses))
        return 0

    def agent(self, config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
        """Run the agent until it is told to stop."""
        import uvloop

        from fairbank.rest.server.log import log_to
        from fairbank.service.settings import Log
        from fairbank.slurm.agent.serving import Agent
        from fairbank.slurm.agent.settings import read_agent_settings, settings_file

        settings = read_agent_settings(settings_file(config))
        log_to(sys.stderr, Log(settings.log))
        uvloop.run(Agent(settings).run(ready))
        return 0

    def agent_status(self, config: str | None) -> dict[str, Any]:
        """What a running agent tells of itself. Raises Unreachable when none answers."""
        from fairbank.rest.client import Client, parse_address
        from fairbank.slurm.agent.settings import read_agent_settings, settings_file

        where = read_agent_settings(settings_file(config)).control.socket
        try:
            return Client(parse_address(f"unix:{where}")).get("/status")
        except Unreachable as silent:
            raise Unreachable(
                f"no agent answers at {where}",
                field="control.socket",
                remedy="start it with: fairbank agent; or name its settings: --config",
            ) from silent

    # --- looking after the books ---

    def heads(self, config: str | None) -> list[Head]:
        """How far every book is."""
        from fairbank.service.audit import Audit

        with self._store(config) as store:
            return Audit(store).heads()

    def verify(self, config: str | None, heads: Mapping[int, tuple[int, bytes]], progress: Progress | None) -> Verdict:
        """Read all books again; `heads` are those written down earlier."""
        from functools import partial

        from fairbank.bank.audit import Head
        from fairbank.service.auditing import verify
        from fairbank.store.opening import open_store

        written_down = {book: Head(book, seq, link) for book, (seq, link) in heads.items()}
        where = self._settings(config).store
        with self._store(config) as store:
            return verify(store, partial(open_store, where.url, journal=where.journal), written_down, progress)

    def backup(self, config: str | None, path: str, *, replace: bool, progress: Progress | None) -> int:
        """Write a backup while the bank works. Returns the number of rows."""
        from pathlib import Path

        from fairbank.service.backup import Backups
        from fairbank.service.clock import SystemClock

        with self._store(config) as store:
            return Backups(store, SystemClock()).create(Path(path), progress, replace=replace)

    def check_backup(self, path: str, progress: Progress | None) -> int:
        """Read a backup to its end. Returns the number of rows."""
        from pathlib import Path

        from fairbank.service.backup import check

        return check(Path(path), progress)

    def restore(self, config: str | None, path: str, *, replace: bool, progress: Progress | None) -> int:
        """Fill the store from a backup. Returns the number of rows."""
        from pathlib import Path

        from fairbank.service.backup import Backups
        from fairbank.service.clock import SystemClock

        with self._store(config) as store:
            return Backups(store, SystemClock()).restore(Path(path), replace=replace, progress=progress)

    def doctor(self, config: str | None) -> list[Check]:
        """Look at everything that may be wrong with this bank."""
        from pathlib import Path

        from fairbank.rest.client import Client, parse_address
        from fairbank.rest.server.open_files import demand_enough
        from fairbank.rest.sign_in.keyfile import read_secret
        from fairbank.service.clock import SystemClock
        from fairbank.service.doctor import attempt, examine

        settings = self._settings(config)
        socket = f"unix:{settings.server.socket}"
        return [
            attempt("the secret is there, and nobody else's to read", lambda: read_secret(Path(settings.secret_file))),
            *examine(settings, SystemClock()),
            attempt(f"the server answers on {socket}", lambda: Client(parse_address(socket)).get("/health", {})),
            attempt("the open files that the server may have", lambda: demand_enough(Path(settings.server.socket))),
        ]

    def doctor_beside_slurm(self, client: Client, cluster: str | None, *, agent: str | None, site: str | None) -> list[SlurmCheck]:
        """Look at everything that may be wrong between the Slurm of this host and the bank that `client` asks."""
        from fairbank.rest.sign_in.munge import LIBRARY, Munge
        from fairbank.slurm.agent.settings import read_agent_settings, settings_file
        from fairbank.slurm.commands import Slurm
        from fairbank.slurm.doctor import Doctor
        from fairbank.slurm.judging.health import Beside
        from fairbank.slurm.site import read_site

        def the_agent() -> Beside:
            settings = read_agent_settings(settings_file(agent))
            patience = max(terms.patience for terms in (settings.terms, *settings.partitions.values()))
            status = self.agent_status(agent)
            return Beside(socket=settings.plugin.socket, slurm_users=settings.plugin.uids(), patience=patience, status=status)

        def munge(socket: str | None) -> None:
            munged = Munge(socket=socket, library=os.environ.get("FAIRBANK_LIBMUNGE", LIBRARY))
            munged.decode(munged.encode(b"fairbank doctor"))

        return list(Doctor(Slurm(), client, agent=the_agent, munge=munge, site=read_site(site)).examine(cluster))

    # --- the main job on paper ---

    def replay(
        self,
        trace: str,
        store: str,
        *,
        cluster: str,
        percent: int,
        periods: int,
        days: int | None,
        payer: str | None,
        record_overruns: bool,
        progress: ReplayProgress | None,
    ) -> Replayed:
        """Run a recorded workload through a new bank at `store`."""
        from functools import partial
        from pathlib import Path

        from fairbank.bank.policy import Overrun, Policy
        from fairbank.service.bank import Bank
        from fairbank.service.replay import Plan, open_trace, replay
        from fairbank.simulator.replay import Payer
        from fairbank.store.migrating import migrate
        from fairbank.store.opening import open_store

        path = Path(trace)
        plan = Plan(cluster=cluster, percent=percent, periods=periods, days=days, payer=Payer(payer) if payer else None, actor=os.getuid())
        policy = Policy(overrun=Overrun.RECORD if record_overruns else Overrun.WRITE_OFF)
        with open_trace(path):  # before a store is made for nothing
            migrate(store)
        opened = open_store(store)
        try:
            return replay(Bank(opened, policy), partial(open_trace, path), plan, progress)
        finally:
            opened.close()

    def synthesise(self, path: str, *, seed: int, starts: int) -> int:
        """Write the trace of a synthetic month that begins at `starts`. Returns the number of jobs."""
        from pathlib import Path

        from fairbank.simulator.centre import Centre
        from fairbank.simulator.swf import write
        from fairbank.simulator.workload import month
        from fairbank.values.time import Instant

        centre = Centre(starts=Instant(starts))
        Path(path).write_text("".join(write(*month(centre, seed))))
        return centre.jobs

    # --- beside Slurm ---

    def beside_slurm(self, client: Client, cluster: str | None) -> Beside:
        """The Slurm of this host beside the bank that `client` asks."""
        from fairbank.slurm.beside import Beside

        return Beside(client, cluster)

    # --- parts ---

    def _settings(self, config: str | None) -> Settings:
        from pathlib import Path

        from fairbank.service.settings import read_settings

        return read_settings(Path(config) if config else usual_settings())

    @contextmanager
    def _store(self, config: str | None) -> Iterator[Store]:
        store = self._open(config)
        try:
            yield store
        finally:
            store.close()

    def _open(self, config: str | None) -> Store:
        """The books. Those of another schema are told with the very command that migrates them."""
        from pathlib import Path
        from shlex import quote

        from fairbank.store.opening import open_store
        from fairbank.store.schema_version import SETTINGS_FOLDER

        where = self._settings(config).store
        try:
            return open_store(where.url, journal=where.journal)
        except Conflict as other:
            folder = quote(str((Path(config) if config else usual_settings()).absolute().parent))
            other.remedy = other.remedy and other.remedy.replace(SETTINGS_FOLDER, folder)
            raise


def usual_folder() -> Path:
    """Where a bank of one's own is kept."""
    from pathlib import Path

    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fairbank"


def usual_settings() -> Path:
    """The settings named in the environment, else of one's own bank where there is one, else the site's."""
    from pathlib import Path

    named = os.environ.get("FAIRBANK_CONFIG")
    own = usual_folder() / "fairbank.toml"
    return Path(named) if named else own if own.exists() else Path(SITE_SETTINGS)


if __name__ == "__main__":
    sys.exit(main())
