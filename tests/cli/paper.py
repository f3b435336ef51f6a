"""Works made of paper: what the commands ask of the composition is written down, and answered with what the test put there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fairbank.bank.audit import Finding, Head
from fairbank.bank.explaining import Explained, explained
from fairbank.cli.beside import BesideSlurm
from fairbank.compose.figures import Drawn
from fairbank.core.check import HealthCheck
from fairbank.core.errors import Trouble, Unreachable
from fairbank.rest.client import Client
from fairbank.service.ops.audit import AuditResult

Progress = Callable[[int, int], None]


@dataclass
class PaperWorks:
    """`asked` is what was asked, in order."""

    findings: tuple[Finding, ...] = ()
    checks: tuple[HealthCheck, ...] = ()
    status: dict[str, Any] = field(default_factory=dict)
    trouble: Trouble | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def note(self, *what: object) -> None:
        self.asked.append(what)
        if self.trouble is not None:
            raise self.trouble

    def reasons(self) -> Sequence[Explained]:
        return explained()

    def init(self, directory: str | None, store: str | None) -> Sequence[str]:
        self.note("init", directory, store)
        return ["made /x/fairbank.toml", "made /x/secret"]

    def serve(
        self, config: str | None, *, port: int | None, ready: Callable[[Sequence[str]], None]
    ) -> int:
        self.note("serve", config, port)
        ready(["unix:/x/fairbank.sock", "http://127.0.0.1:8080"])
        return 0

    def agent(self, config: str | None, *, ready: Callable[[Sequence[str]], None]) -> int:
        self.note("agent", config)
        ready(["/x/prep.sock", "/x/agent.sock"])
        return 0

    def agent_status(self, config: str | None) -> dict[str, Any]:
        self.note("agent_status", config)
        return self.status

    def heads(self, config: str | None) -> Sequence[Head]:
        self.note("heads", config)
        return [Head(0, 3, b"\x01" * 32), Head(7, 12, b"\xff" * 32)]

    def verify(
        self, config: str | None, heads: Mapping[int, tuple[int, bytes]], progress: Progress | None
    ) -> AuditResult:
        self.note("verify", config, dict(heads))
        if progress:
            for done in range(0, 1_001, 100):
                progress(done, 1_000)
        return AuditResult(1_000, 4, 300, self.findings)

    def backup(
        self,
        config: str | None,
        path: str,
        *,
        replace: bool,
        progress: Progress | None,
        at_work: Callable[[], None],
    ) -> int:
        at_work()
        self.note("backup", config, path, replace)
        return 42

    def check_backup(self, path: str, progress: Progress | None) -> int:
        self.note("check_backup", path)
        return 42

    def restore(
        self, config: str | None, path: str, *, replace: bool, progress: Progress | None
    ) -> int:
        self.note("restore", config, path, replace)
        return 42

    @property
    def books(self) -> PaperWorks:
        return self

    @property
    def doctors(self) -> PaperDoctors:
        return PaperDoctors(self)

    @property
    def paper(self) -> NoReturn:
        raise NotImplementedError

    @property
    def planning(self) -> NoReturn:
        raise NotImplementedError

    @property
    def explaining(self) -> NoReturn:
        raise NotImplementedError

    @property
    def questions(self) -> NoReturn:
        raise NotImplementedError

    @property
    def models(self) -> NoReturn:
        raise NotImplementedError

    @property
    def courses(self) -> NoReturn:
        raise NotImplementedError

    @property
    def figures(self) -> PaperWorks:
        return self

    def site_factor(self, folder: str, *, agent: str | None, as_png: bool) -> Sequence[Drawn]:
        self.note("site_factor", folder, agent, as_png)
        return [Drawn(f"{folder}/site-factor-1.svg", "Two power rules with one exponent")]

    @property
    def history(self) -> NoReturn:
        raise Unreachable("no store answers", field="store")

    @property
    def slurm_queue(self) -> NoReturn:
        raise Unreachable("cannot run scontrol", field="slurm")

    @property
    def slurm_says(self) -> NoReturn:
        raise Unreachable("cannot run sshare", field="slurm")

    def composed(self, file: str) -> NoReturn:
        raise NotImplementedError

    def beside_slurm(self, client: Client, cluster: str | None) -> BesideSlurm:
        self.note("beside_slurm", cluster)
        raise Unreachable("cannot run sinfo", field="slurm")


@dataclass
class PaperDoctors:
    """Both doctors."""

    works: PaperWorks

    def of_bank(self, config: str | None, at_work: Callable[[], None]) -> Sequence[HealthCheck]:
        at_work()
        self.works.note("doctor", config)
        return self.works.checks

    def beside_slurm(
        self, client: Client, cluster: str | None, *, agent: str | None, site: str | None
    ) -> Sequence[HealthCheck]:
        self.works.note("doctor_beside_slurm", cluster, agent, site)
        return self.works.checks
