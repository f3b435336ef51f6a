"""Fake services of the bank's host and of Slurm: they record calls and return what a test sets."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairbank.bank.audit import Finding, Head
from fairbank.cli.framework.context import Context
from fairbank.core.errors import FairbankError
from fairbank.core.health import HealthCheck
from fairbank.service.ops.audit import AuditResult

Progress = Callable[[int, int], None]
Ready = Callable[[Sequence[str]], None]


@dataclass
class FakeServices:
    """Fake services for the commands. `calls` lists the recorded calls in order."""

    findings: tuple[Finding, ...] = ()
    checks: tuple[HealthCheck, ...] = ()
    status: dict[str, Any] = field(default_factory=dict)
    error: FairbankError | None = None
    calls: list[tuple[object, ...]] = field(default_factory=list)
    _config: str | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the real services."""
        with pytest.MonkeyPatch.context() as patch:
            fakes = {
                "setup.init.init": self._init,
                "setup.server.run": self._serve,
                "setup.bank_settings.opened_store": self._opened_store,
                "setup.bank_settings.settings_of": _settings_of,
                "service.ops.audit.Audit.journal_heads": lambda audit: self._heads(),
                "service.ops.audit_processes.verify": self._verify,
                "service.ops.backup.Backups": self._backups,
                "service.ops.backup_file.verify_file": self._check_backup,
                "service.ops.backup_file.bank_of": lambda path: "fairbank",
                "agent.control.agent_status": self._agent_status,
                "slurm.agent_settings.read_agent_settings": self._agent_settings,
                "agent.daemon.Agent": lambda settings, jobs: SimpleNamespace(run=_run_agent),
                "setup.agent.slurm_jobs": lambda settings: {},
                "rest.server.log.log_to": lambda stream, log: None,
                "cli.commands.admin.doctor.check_bank": self._check_bank,
                "cli.commands.admin.doctor.check_slurm": self._check_slurm,
            }
            # Import all of them first: a module imported later would keep its fake.
            for name in fakes:
                pkgutil.resolve_name(f"fairbank.{name}")
            for name, fake in fakes.items():
                patch.setattr(f"fairbank.{name}", fake)
            yield

    def _note(self, *call: object) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error

    def _init(self, directory: str | None, store: str | None) -> Sequence[str]:
        self._note("init", directory, store)
        return ["made /x/fairbank.toml", "made /x/secret"]

    def _serve(self, config: str | None, *, port: int | None, ready: Ready) -> int:
        self._note("serve", config, port)
        ready(["unix:/x/fairbank.sock", "http://127.0.0.1:8080"])
        return 0

    def _agent_settings(self, path: Path) -> SimpleNamespace:
        self._note("agent", str(path))
        return SimpleNamespace(log="json", control=SimpleNamespace(socket="/x/agent.sock"))

    def _agent_status(self, path: str) -> dict[str, Any]:
        self._note("agent_status", path)
        return self.status

    @contextmanager
    def _opened_store(self, config: str | None, settings: object = None) -> Iterator[None]:
        self._config = config
        yield

    def _heads(self) -> Sequence[Head]:
        self._note("heads", self._config)
        return [Head(0, 3, b"\x01" * 32), Head(7, 12, b"\xff" * 32)]

    def _verify(
        self,
        store: object,
        open_again: object,
        heads: Mapping[int, Head],
        progress: Progress | None,
    ) -> AuditResult:
        self._note("verify", self._config, dict(heads))
        if progress:
            for done in range(0, 1_001, 100):
                progress(done, 1_000)
        return AuditResult(1_000, 4, 300, self.findings)

    def _backups(self, store: object, clock: object, bank: str | None = None) -> SimpleNamespace:
        return SimpleNamespace(create=self._backup, restore=self._restore)

    def _backup(
        self, path: Path, progress: Progress | None, *, at_work: Callable[[], None], replace: bool
    ) -> int:
        at_work()
        self._note("backup", self._config, str(path), replace)
        return 42

    def _check_backup(self, path: Path, progress: Progress | None) -> int:
        self._note("check_backup", str(path))
        return 42

    def _restore(self, path: Path, *, replace: bool, progress: Progress | None) -> int:
        self._note("restore", self._config, str(path), replace)
        return 42

    def _check_bank(
        self, config: str | None, settings: object, at_work: Callable[[], None]
    ) -> Sequence[HealthCheck]:
        at_work()
        self._note("check_bank", config)
        return self.checks

    def _check_slurm(
        self, context: Context, *, agent: str | None, site: str | None
    ) -> Sequence[HealthCheck]:
        self._note("check_slurm", context.cluster, agent, site)
        return self.checks


def _settings_of(config: str | None) -> SimpleNamespace:
    server = SimpleNamespace(name="fairbank", socket="/x/fairbank.sock")
    return SimpleNamespace(store=SimpleNamespace(url="memory:", journal=None), server=server)


async def _run_agent(ready: Ready) -> None:
    ready(["/x/prep.sock", "/x/agent.sock"])
