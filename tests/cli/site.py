"""Small site with an invented ledger, served by the real server with a stopped clock: python -m
tests.cli.site SOCKET [PORT TOKENFILE]. Its figures are those of the design's examples: it is
2026-11-21 07:30:12 in New York, ayla and jorge work in chem_qmc, dana in bio_fold. The user who
runs the tests is a superuser.
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path

import msgspec

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import GrantCategory, Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import (
    Charge,
    CreateProject,
    Deposit,
    Hold,
    Open,
    Refund,
    Request,
    SetCap,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules import Done
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.job import JobDetails, Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import Instant, parse_instant
from fairbank.core.tres import parse_weights
from fairbank.core.units import SuMinutes
from fairbank.rest.auth.munge import Munge
from fairbank.rest.context import AppContext
from fairbank.rest.server.server import serve
from fairbank.service.access.identity import Staff, VisibleJobs, identity_of
from fairbank.service.services import services
from fairbank.setup.bank_settings import SystemClock
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from tests.support.clock import ManualClock

NOW = "2026-11-21T12:30:12Z"
AYLA, JORGE, MINH, DANA, STRANGER = 61_001, 61_002, 61_003, 61_004, 61_009
ADMIN = 61_005
CHEM, BIO = 1, 2
CPU, GPU, FOLD = 1, 2, 3

PEOPLE = (
    (CHEM, AYLA, Role.PI),
    (CHEM, JORGE, Role.MEMBER),
    (CHEM, MINH, Role.MEMBER),
    (BIO, DANA, Role.PI),
    (BIO, JORGE, Role.MEMBER),
)
MONTHS = (
    ("07", 700_001, AYLA, 9_000),
    ("08", 700_002, AYLA, 9_000),
    ("09", 700_003, JORGE, 9_000),
    ("10", 700_004, MINH, 8_939),
)
NAMES = {AYLA: "relax_w64", JORGE: "vqe-scan_H2O_cc-pVTZ", MINH: "=fit", DANA: "fold_batch"}
BUSY_PERCENT = {AYLA: 91, JORGE: 64, MINH: 12}
"""Used part of the processors of each user's jobs; unknown for dana."""

CLUSTERS = {
    "darwin": Cluster(
        "darwin",
        {
            "idle-std": Partition(
                "idle-std",
                "cpu",
                parse_weights("CPU=1.0,Mem=0.5G"),
                size=NodeSize(64, 256 * 1024, {}),
                default_memory=Memory(1024, MemoryUnit.CPU),
            ),
            "gpu-v100": Partition(
                "gpu-v100",
                "gpu",
                parse_weights("CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"),
                size=NodeSize(32, None, {"gres/gpu": 4, "gres/gpu:v100": 4}),
            ),
        },
        {"standby": Fraction(0)},
        capacity={"cpu": Fraction(100), "gpu": Fraction(1)},
        qos_resources={"debug": "debug"},
        default_partition="idle-std",
        cpus=100,
        gpus=1,
    )
}


class HistoryWriter:
    """Writer of the site's history: it applies each request at its own time."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._holds: dict[int, tuple[int, int]] = {}
        self._projects: dict[int, int] = {}

    def apply(self, at: str, request: Request, actor: int = 0) -> Done | Refusal:
        outcome = self._context.services.write_queue.apply(
            [SubmittedRequest(request, parse_instant(at), actor)]
        )[0]
        assert isinstance(outcome, Done | Refusal), outcome
        return outcome

    def hold(
        self,
        at: str,
        job: int,
        owner: int,
        su: int,
        *,
        project: int = CHEM,
        resource: str = "cpu",
        hours: int = 12,
    ) -> Done | Refusal:
        """Hold `su` for a run that starts `at`."""
        start = parse_instant(at)
        request = Hold(
            reported=ReportedRun(
                run=Run("darwin", job, start - 600),
                project=project,
                start=start,
                until=Instant(start + hours * 3600 + 86_400),
                partition="gpu-v100" if resource == "gpu" else "idle-std",
                job_details=self._job_details(job, owner, su, resource, hours),
            ),
            chain=(project,),
            resource=resource,
            owner=owner,
            amount=SuMinutes(su * 60),
            billing=str(su / hours),
        )
        self._projects[job] = project
        return self.apply(at, request)

    def _job_details(self, job: int, owner: int, su: int, resource: str, hours: int) -> JobDetails:
        """Return the details of a job with one core per SU and hour, or eight on a node with
        GPUs.
        """
        cpus = 8 if resource == "gpu" else max(1, su // hours)
        nodes = -(-cpus // 64)
        self._holds[job] = owner, cpus
        tres = (
            f"cpu={cpus},mem={4 * cpus}G,node={nodes}{',gres/gpu=1' if resource == 'gpu' else ''}"
        )
        return JobDetails(
            name=NAMES[owner],
            qos="normal",
            nodes=nodes,
            cpus=cpus,
            tres=tres,
            limit_seconds=hours * 3600,
        )

    def charge(self, at: str, started: str, job: int, su: int, outcome: str = "COMPLETED") -> None:
        """Charge `su` for the run that ends `at`."""
        start, end = parse_instant(started), parse_instant(at)
        run = Run("darwin", job, start - 600)
        owner, cpus = self._holds[job]
        busy = BUSY_PERCENT.get(owner)
        output = JobDetails(
            exit_status=127 * 256 if outcome == "FAILED" else 0,
            cpu_seconds=None if busy is None else cpus * (end - start) * busy // 100,
        )
        self.apply(
            at,
            Charge(
                reported=ReportedRun(run, self._projects[job], "", start, end, output),
                owner=owner,
                amount=SuMinutes(su * 60),
                end=RunEnd(outcome, end - start, end),
            ),
        )


def write_history(context: AppContext) -> None:
    """Write the whole history of the site."""
    writer = HistoryWriter(context)
    apply, hold, charge = writer.apply, writer.hold, writer.charge
    new_year, summer, winter = (
        "2026-01-15T05:00:00Z",
        "2026-07-01T04:00:00Z",
        "2027-07-01T04:00:00Z",
    )
    apply(new_year, CreateProject(gname="chem_qmc", gid=50_001, account="chem_qmc"))
    apply(new_year, CreateProject(gname="biofold", gid=50_002, account="bio_fold"))
    for project, uid, role in PEOPLE:
        apply(new_year, SetMember(project=project, uid=uid, role=role))
    _open(writer, summer, CHEM, "cpu", summer, winter)
    _open(writer, summer, CHEM, "gpu", summer, winter)
    _open(writer, summer, BIO, "gpu", new_year, "2027-01-15T05:00:00Z")
    apply(summer, Deposit(allocation=CPU, amount=SuMinutes(100_000 * 60), comment="call 2026-2"))
    apply(summer, Deposit(allocation=GPU, amount=SuMinutes(5_000 * 60), comment="call 2026-2"))
    apply(summer, Deposit(allocation=FOLD, amount=SuMinutes(12_000 * 60), comment="call 2026-1"))
    apply(summer, SetCap(allocation=GPU, uid=MINH, cap=SuMinutes(2_000 * 60)))
    for month, job, owner, su in MONTHS:
        hold(f"2026-{month}-10T10:00:00Z", job, owner, su)
        charge(
            f"2026-{month}-10T20:00:00Z",
            f"2026-{month}-10T10:00:00Z",
            job,
            su,
            "FAILED" if owner == MINH else "COMPLETED",
        )
    for job, owner, su in ((701_001, JORGE, 4_000), (701_002, MINH, 610)):
        hold("2026-09-01T10:00:00Z", job, owner, su, resource="gpu")
        charge("2026-09-02T10:00:00Z", "2026-09-01T10:00:00Z", job, su)
    hold("2026-10-01T10:00:00Z", 702_001, DANA, 310, project=BIO, resource="gpu")
    charge("2026-10-02T08:00:00Z", "2026-10-01T10:00:00Z", 702_001, 310)
    hold("2026-11-20T15:00:00Z", 812_222, JORGE, 120)
    charge("2026-11-20T20:00:00Z", "2026-11-20T15:00:00Z", 812_222, 120, "NODE_FAIL")
    hold("2026-11-20T22:00:00Z", 812_300, AYLA, 3_968, hours=31)
    hold("2026-11-21T02:14:00Z", 812_301, AYLA, 512)
    charge("2026-11-21T07:40:00Z", "2026-11-21T02:14:00Z", 812_301, 301)
    refund = Refund(
        run=Run("darwin", 812_222, parse_instant("2026-11-20T15:00:00Z") - 600),
        comment="node n031 failed",
    )
    apply("2026-11-21T08:05:00Z", refund)
    hold("2026-11-21T09:00:00Z", 812_330, JORGE, 128, resource="gpu")
    hold("2026-11-21T11:55:00Z", 812_344, AYLA, 384)
    hold("2026-11-21T12:10:00Z", 812_350, JORGE, 384, resource="gpu", hours=96)


def _open(
    writer: HistoryWriter, at: str, project: int, resource: str, start: str, end: str
) -> None:

    writer.apply(
        at,
        Open(
            terms=AllocationTerms(
                project=project,
                resource=resource,
                category="research",
                start=parse_instant(start),
                end=parse_instant(end),
            )
        ),
    )


def build_context() -> AppContext:
    """Return the site in memory, or with the ledger in the store SITE_STORE instead of the history.

    With SITE_OBSERVES its bank lets all jobs run. SITE_CATEGORIES are the categories of its
    settings, SITE_CLUSTERS further clusters with the prices of darwin, SITE_VISIBLE_JOBS its
    setting `visible_jobs`. With MUNGE, whose credentials age, the clock is the system's.
    """
    munge = (
        Munge(socket=os.environ["SITE_MUNGE"], library=os.environ["SITE_LIBMUNGE"])
        if "SITE_MUNGE" in os.environ
        else None
    )
    own_store = os.environ.get("SITE_STORE")
    bank = services(
        MemoryStore() if own_store is None else open_store(own_store),
        clock=SystemClock() if munge else ManualClock(parse_instant(NOW)),
        staff=Staff(
            frozenset({os.getuid()}),
            frozenset({ADMIN}),
            {AYLA: frozenset({"darwin"})},
            visible_jobs=VisibleJobs(os.environ.get("SITE_VISIBLE_JOBS", "project")),
        ),
        clusters=CLUSTERS
        | {
            name: msgspec.structs.replace(CLUSTERS["darwin"], name=name)
            for name in os.environ.get("SITE_CLUSTERS", "").split()
        },
        policy=Policy(
            enforce="SITE_OBSERVES" not in os.environ,
            categories={
                name: GrantCategory() for name in os.environ.get("SITE_CATEGORIES", "").split()
            },
        ),
        key=b"k" * 32,
    )
    context = AppContext.create(bank, munge=munge)
    if own_store is None:
        write_history(context)
    return context


def main(socket: str, port: str | None = None, token_file: str | None = None) -> None:
    context = build_context()
    if token_file is not None:
        identity = identity_of(AYLA, context.services.staff, {CHEM: Role.PI})
        _, secret = context.services.tokens.create(
            identity, label="tests", scopes=["read", "write"], days=30, uid=None
        )
        Path(token_file).touch(mode=0o600)
        Path(token_file).write_text(secret + "\n")
    serve(context, unix=Path(socket), port=None if port is None else int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
