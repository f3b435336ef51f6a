"""scontrol show: text as a real Slurm 24.11 printed it, and read back by the parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.node import Gpus, NodeState
from fairbank.cluster.partition_rules import OverSubscribe, PartitionState
from fairbank.core.time import parse_instant
from fairbank.report.slurm import scontrol
from fairbank.report.slurm.job_rows import NO_LIMIT, JobLine, JobShare
from fairbank.report.slurm.machine_rows import NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.notation import JOB_FLAGS, Notation
from fairbank.slurm.parsers import machine
from fairbank.slurm.parsers.columns import Cells, Records, key_value_records
from fairbank.slurm.parsers.job_lines import job_lines, read_pending
from fairbank.slurm.parsers.jobs import read_jobs
from fairbank.slurm.parsers.words import length_seconds

RECORDED = Path(__file__).parents[2] / "golden" / "slurm-24.11"
HERE = Notation()
TEMPLATES: dict[type[Any], Sequence[str]] = {
    JobLine: scontrol.JOB,
    NodeLine: scontrol.NODE,
    PartitionLine: scontrol.PARTITION,
    ReservationLine: scontrol.RESERVATION,
}


def shown(*rows: Any, details: bool = False) -> str:
    return "".join(
        scontrol.show(row, TEMPLATES[type(row)], HERE, is_one_line=True, has_details=details)
        for row in rows
    )


# --- as recorded ---

_KEY = re.compile(r"([A-Z][\w:/]*)=\{(\w+)(?::(\w+))?(?:\|([^}]*))?\}")


def _size(text: str) -> int:
    number, unit = re.fullmatch(r"([\d.]+)([MGT]?)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * {"": 1, "M": 1, "G": 1024, "T": 1024**2}[unit])


READERS: Mapping[str, Callable[[str], object]] = {
    "time": parse_instant,
    "duration": lambda text: length_seconds(text, ""),
    "limit": lambda text: NO_LIMIT if text == "UNLIMITED" else length_seconds(text, ""),
    "flag": lambda text: text == "1",
    "yes": lambda text: text == "YES",
    "exit": lambda text: tuple(map(int, text.split(":"))),
    "size": _size,
    "load": lambda text: round(float(text) * 100),
}


def row_of(kind: type[Any], cells: Mapping[str, str], **others: object) -> Any:
    """Return the row of a line with these cells: the template read backwards."""
    values = dict(others)
    for key, field, writer, word in _KEY.findall(" ".join(TEMPLATES[kind])):
        if field in others or field not in kind._fields or key not in cells:
            continue
        cell = cells[key]
        if cell == "(null)" or (word and cell == word):
            values[field] = None
        elif writer in READERS:
            values[field] = READERS[writer](cell)
        else:
            is_number = str(kind.__annotations__[field]).find("int") >= 0
            values[field] = int(re.sub(r":.*", "", cell)) if is_number else cell
    return kind(**values)


def _job(cells: Cells, line: str) -> JobLine:
    nodes, _, most_nodes = cells["NumNodes"].partition("-")
    cpus, _, most_cpus = cells["NumCPUs"].partition("-")
    group = re.search(r" GroupId=([^=]+)\((\d+)\) ", line)
    assert group
    host, _, session = cells["AllocNode:Sid"].partition(":")
    task, state = cells.get("ArrayTaskId", ""), cells["JobState"]
    row = row_of(
        JobLine,
        cells,
        user=cells["UserId"],
        uid=int(cells["Uid"]),
        group=group[1],
        gid=int(group[2]),
        flag=state if state in JOB_FLAGS else "",
        state="PENDING" if state in JOB_FLAGS else state,
        description=cells["Reason"],
        task=int(task) if task.isdecimal() else None,
        tasks_left="" if task.isdecimal() else task,
        node_count=int(nodes),
        most_nodes=int(most_nodes or 0),
        cpus=int(cpus),
        most_cpus=int(most_cpus or 0),
        memory_is_per_cpu="MinMemoryCPU" in cells,
        least_memory=_size(cells.get("MinMemoryCPU", cells.get("MinMemoryNode", "0"))),
        submit_host=host,
        session=int(session),
    )
    assert isinstance(row, JobLine)
    return row


def _node(cells: Cells, line: str) -> Any:
    return row_of(NodeLine, cells)


def _partition(cells: Cells, line: str) -> Any:
    memory = {
        field: int(cells[key]) if cells.get(key, "UNLIMITED") != "UNLIMITED" else None
        for key, field in (
            ("DefMemPerCPU", "memory_per_cpu"),
            ("DefMemPerNode", "memory_per_node"),
            ("MaxMemPerNode", "max_memory_per_node"),
        )
    }
    return row_of(PartitionLine, cells, **memory)


def _reservation(cells: Cells, line: str) -> Any:
    return row_of(ReservationLine, cells, is_active=cells["State"] == "ACTIVE")


def _records(key: str) -> Callable[[str], Records]:
    return lambda text: key_value_records("scontrol", text, key)


@pytest.mark.parametrize(
    ("name", "records", "read", "number"),
    [
        ("jobs", job_lines, _job, 36),
        ("nodes", _records("NodeName"), _node, 10),
        ("partitions", _records("PartitionName"), _partition, 3),
        ("reservations", _records("ReservationName"), _reservation, 1),
    ],
    ids=["jobs", "nodes", "partitions", "reservations"],
)
def test_recorded_text_is_printed_again(
    name: str, records: Callable[[str], Records], read: Callable[[Cells, str], Any], number: int
) -> None:
    text = (RECORDED / f"{name}-oneliner.txt").read_text()
    lines = text.split("\n")
    cells = [record for record in records(text) if isinstance(record, Cells)]
    assert len(cells) == number
    for record in cells:
        if "HetJobId" in record:
            continue  # Fairbank has no heterogeneous jobs
        # The recorder replaces the kernel of a node with the blank after it.
        line = lines[record.line - 1].replace("#1 SMP Real", "#1 SMP  Real")
        assert shown(read(record, line)) == f"{line}\n"


JOB_19 = JobLine(
    19, "align", "bob", 5102, "wg_bio", 5002, "wg_bio", "gpu", "normal", priority=68_202,
    state="RUNNING", elapsed=70, limit=1800, submitted=1_000_000_000, eligible=1_000_000_000,
    accrued=1_000_000_000, started=1_000_000_001, ends=1_000_001_801, last_tried=1_000_000_001,
    submit_host="localhost", session=2205, nodes="g01", batch_host="g01", cpus=16,
    cpus_per_task=16, least_cpus=16, least_memory=65_536, requested_tres="cpu=16,mem=64G",
    allocated_tres="cpu=16,mem=64G", command="/home/bob/job.sh 600", work_dir="/home/bob",
    std_in="/dev/null", std_out="/home/bob/o", std_err="/home/bob/o", tres_per_node="gres/gpu:2",
    gres="gpu:a100:2", shares=(JobShare("g01", "0-15", 65_536, "gpu:a100:2(IDX:0-1)"),),
)  # fmt: skip
BLOCK = """\
JobId=19 JobName=align
   UserId=bob(5102) GroupId=wg_bio(5002) MCS_label=N/A
   Priority=68202 Nice=0 Account=wg_bio QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:01:10 TimeLimit=00:30:00 TimeMin=N/A
   SubmitTime=2001-09-09T01:46:40 EligibleTime=2001-09-09T01:46:40
   AccrueTime=2001-09-09T01:46:40
   StartTime=2001-09-09T01:46:41 EndTime=2001-09-09T02:16:41 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2001-09-09T01:46:41 Scheduler=Main
   Partition=gpu AllocNode:Sid=localhost:2205
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=g01
   BatchHost=g01
   NumNodes=1 NumCPUs=16 NumTasks=1 CPUs/Task=16 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=16,mem=64G
   AllocTRES=cpu=16,mem=64G
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:a100:2
     Nodes=g01 CPU_IDs=0-15 Mem=65536 GRES=gpu:a100:2(IDX:0-1)
   MinCPUsNode=16 MinMemoryNode=64G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/bob/job.sh 600
   WorkDir=/home/bob
   StdErr=/home/bob/o
   StdIn=/dev/null
   StdOut=/home/bob/o
   TresPerNode=gres/gpu:2
   \n
"""


def test_job_is_a_block_of_lines_with_details_on_demand() -> None:
    block = scontrol.show(JOB_19, scontrol.JOB, HERE, has_details=True)
    assert block == BLOCK
    plain = scontrol.show(JOB_19, scontrol.JOB, HERE)
    assert set(block.splitlines()) - set(plain.splitlines()) == {
        "   DerivedExitCode=0:0",
        "   JOB_GRES=gpu:a100:2",
        "     Nodes=g01 CPU_IDs=0-15 Mem=65536 GRES=gpu:a100:2(IDX:0-1)",
    }


def test_drained_node_has_its_reason_after_an_empty_line() -> None:
    node = NodeLine(
        "c01", "IDLE+DRAIN", reason="bad disk", reason_user="root", reason_time=1_000_000_000
    )
    assert scontrol.show(node, scontrol.NODE, HERE).endswith(
        "   CurrentWatts=0 AveWatts=0\n   \n   Reason=bad disk [root@2001-09-09T01:46:40]\n\n"
    )
    (read,) = machine.read_hosts(shown(node)).rows
    assert (read.state, read.memory) == (NodeState.DRAINED, 1)
    assert "bad disk" in str(read.reason)


# --- read back ---

NAMES = st.text("abcxyz_.-0129", min_size=1, max_size=20).map(lambda text: f"a{text}")
INSTANTS = st.integers(86_400, 2**32)
COUNTS = st.integers(0, 10**6)


@st.composite
def pending(draw: st.DrawFn) -> JobLine:
    job, task = draw(st.integers(1, 2**26)), draw(st.integers(0, 4000))
    arrays: list[dict[str, Any]] = [
        {},
        {"array_job": job, "task": task},
        {"array_job": job, "tasks_left": f"{task}-{task + 3}%2", "throttle": 2},
    ]
    nodes, cpus = draw(st.integers(3, 99)), draw(st.integers(1, 9_999))
    return JobLine(
        job,
        draw(NAMES),
        draw(NAMES),
        draw(COUNTS),
        draw(NAMES),
        account=draw(NAMES),
        partition=draw(st.lists(NAMES, min_size=1, max_size=3).map(",".join)),
        qos=draw(NAMES),
        **draw(st.sampled_from(arrays)),
        priority=draw(st.integers(0, 2**32 - 1)),
        nice=draw(st.integers(-(2**31) + 3, 2**31 - 3)),
        reason="Priority",
        description=draw(st.sampled_from(["", "ReqNodeNotAvail, Reserved for maintenance"])),
        submitted=draw(INSTANTS),
        eligible=draw(st.one_of(st.none(), INSTANTS)),
        accrued=draw(st.one_of(st.none(), INSTANTS)),
        started=draw(st.one_of(st.none(), INSTANTS)),
        deadline=draw(st.one_of(st.none(), INSTANTS)),
        limit=draw(st.one_of(st.just(NO_LIMIT), st.integers(1, 10**5).map(lambda m: 60 * m))),
        least_limit=draw(st.one_of(st.none(), st.integers(1, 10**5).map(lambda m: 60 * m))),
        node_count=nodes,
        most_nodes=draw(st.sampled_from([0, nodes, nodes + 1])),
        cpus=cpus,
        tasks_per_node=draw(st.integers(0, 9)),
        least_cpus=draw(st.integers(1, 99)),
        least_memory=draw(st.sampled_from([0, 1000, 1024, 2560, 65_536, 10**6])),
        memory_is_per_cpu=draw(st.booleans()),
        requested_tres=f"cpu={cpus},mem=1000M,node={nodes},billing=7",
        features=draw(st.one_of(st.none(), NAMES)),
        preferred_features=draw(st.one_of(st.none(), NAMES)),
        reservation=draw(st.one_of(st.none(), NAMES)),
        required_nodes=draw(st.sampled_from([None, "c[01-03]"])),
        contiguous=draw(st.booleans()),
        sharing=draw(st.sampled_from(["OK", "NO", "YES"])),
        dependency=draw(st.sampled_from([None, "afterok:31(unfulfilled)"])),
        work_dir="/home",
        tres_per_node=draw(st.sampled_from([None, "gres/gpu:a100:2"])),
        comment=draw(st.sampled_from([None, "run 7"])),
    )


@given(st.lists(pending(), max_size=4, unique_by=lambda row: row.job_id))
def test_pending_jobs_are_read_back(rows: list[JobLine]) -> None:
    read = read_jobs(shown(*rows))
    assert read.unreadable == ()
    for job, row in zip(read.rows, rows, strict=True):
        assert (job.job_id, job.name, job.user, job.uid, job.account, job.qos) == (
            row.job_id, row.name, row.user, row.uid, row.account, row.qos,
        )  # fmt: skip
        assert (job.squeue_name if row.task is not None else row.label) == row.label
        assert (job.array, job.task, job.throttle) == (row.array_job, row.task, row.throttle)
        assert len(job.tasks) == (4 if row.tasks_left else 0)
        assert (job.submitted, job.eligible, job.expected, job.deadline) == (
            row.submitted, row.eligible, row.started, row.deadline,
        )  # fmt: skip
        assert (job.time_min, job.reservation) == (row.least_limit, row.reservation)
        assert job.limit == (365 * 86_400 if row.limit == NO_LIMIT else row.limit)
        assert job.reason == ("ReqNodeNotAvail" if row.description else row.reason)
        assert (job.dependencies.text, job.submit_host) == (row.dependency or "", "(null)")
        request = job.wanted
        assert (request.nodes, request.max_nodes) == (row.node_count, row.most_nodes or None)
        assert (request.cpus_per_node, request.tasks_per_node or 0) == (
            row.least_cpus, row.tasks_per_node,
        )  # fmt: skip
        memory = request.memory_per_cpu if row.memory_is_per_cpu else request.memory_per_node
        assert (memory or 0) == row.least_memory
        assert (request.constraint, request.prefer) == (
            row.features or "", row.preferred_features or "",
        )  # fmt: skip
        assert (request.contiguous, request.exclusive, request.shared) == (
            row.contiguous, row.sharing == "NO", row.sharing == "YES",
        )  # fmt: skip
        assert request.gpus == ((Gpus("a100", 2),) if row.tres_per_node else ())
    waiting = read_pending(shown(*rows))
    assert waiting.unreadable == ()
    assert [
        (job.job_id, job.priority, job.nice, job.accrued, job.nodes, job.cpus, job.tasks)
        for job in waiting.rows
    ] == [
        (row.job_id, row.priority, row.nice, row.accrued,
         min(row.node_count, row.most_nodes or row.node_count), row.cpus, row.task_text or "")
        for row in rows
    ]  # fmt: skip


def test_running_job_is_read_back_with_what_it_has() -> None:
    (job,) = read_jobs(shown(JOB_19, details=True)).rows
    (share,) = job.allocated
    assert (share.nodes, share.cpus, share.memory) == (("g01",), 16, 65_536)
    assert share.gpus == (Gpus("a100", 2),)
    assert (job.started, job.ends, job.limit) == (JOB_19.started, JOB_19.ends, JOB_19.limit)


class State(NamedTuple):
    """Words of a node's state, and what they mean for jobs."""

    words: str
    meaning: NodeState


STATES = [
    State("IDLE", NodeState.UP),
    State("MIXED+PLANNED", NodeState.UP),
    State("ALLOCATED+COMPLETING", NodeState.UP),
    State("MIXED+DRAIN", NodeState.DRAINED),
    State("DOWN+NOT_RESPONDING", NodeState.NOT_RESPONDING),
    State("DOWN", NodeState.DOWN),
    State("FUTURE", NodeState.FUTURE),
]


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeLine, NodeState]:
    state, cpus, memory = draw(st.sampled_from(STATES)), 2 * draw(st.integers(2, 99)), draw(COUNTS)
    node = NodeLine(
        draw(NAMES),
        state.words,
        arch="x86_64",
        cpus=cpus,
        usable_cpus=cpus - 2 * draw(st.integers(0, 1)),
        threads=draw(st.integers(1, 2)),
        memory=memory + 2,
        reserved_memory=draw(st.sampled_from([None, 1])),
        tmp=draw(COUNTS),
        weight=draw(st.integers(1, 99)),
        features=draw(st.sampled_from([None, "fast,ib"])),
        active_features=draw(st.sampled_from([None, "fast,ib"])),
        gres=draw(st.sampled_from([None, "gpu:a100:4"])),
        partitions=draw(st.sampled_from([None, "cpu,gpu"])),
        boot=draw(st.one_of(st.none(), INSTANTS)),
        system="Linux 6.1 #1 SMP",
        comment=draw(st.sampled_from([None, "rack 7"])),
    )
    return node, state.meaning


@given(st.lists(nodes(), max_size=4))
def test_nodes_are_read_back(drawn: list[tuple[NodeLine, NodeState]]) -> None:
    text = shown(*(node for node, _ in drawn))
    hosts, configured = machine.read_hosts(text), machine.read_nodes(text)
    assert hosts.unreadable == configured.unreadable == ()
    for host, (node, meaning) in zip(hosts.rows, drawn, strict=True):
        assert (host.name, host.cpus, host.threads, host.state) == (
            node.name, node.usable_cpus, node.threads, meaning,
        )  # fmt: skip
        assert host.memory == node.memory - (node.reserved_memory or 0)
        assert (host.tmp, host.weight) == (node.tmp, node.weight)
        assert host.features == frozenset((node.active_features or "").split(",")) - {""}
        assert host.gpus == ((Gpus("a100", 4),) if node.gres else ())
    for slurm_node, (node, _) in zip(configured.rows, drawn, strict=True):
        assert (slurm_node.cpus, slurm_node.memory) == (node.cpus, node.memory)
        assert ",".join(slurm_node.partitions) == (node.partitions or "")


LIMITS = st.one_of(st.none(), st.integers(1, 10**5))
MINUTES = st.one_of(st.none(), st.integers(1, 10**5).map(lambda count: 60 * count))


@st.composite
def partitions(draw: st.DrawFn) -> PartitionLine:
    memory: list[dict[str, Any]] = [{}, {"memory_per_cpu": 1000}, {"memory_per_node": 4000}]
    largest: list[dict[str, Any]] = [{}, {"max_memory_per_cpu": 8}, {"max_memory_per_node": 9}]
    access: list[dict[str, Any]] = [{}, {"allowed_qos": "high"}, {"denied_qos": "low"}]
    accounts: list[dict[str, Any]] = [{}, {"allowed_accounts": "a,b"}, {"denied_accounts": "c"}]
    return PartitionLine(
        draw(NAMES),
        draw(st.sampled_from(["(null)", "c[01-03]"])),
        draw(st.sampled_from(["UP", "DOWN", "DRAIN", "INACTIVE"])),
        draw(st.booleans()),
        default_time=draw(MINUTES),
        max_time=draw(MINUTES),
        grace_seconds=draw(COUNTS),
        min_nodes=draw(st.integers(0, 3)),
        max_nodes=draw(st.one_of(st.none(), st.integers(3, 10**6))),
        max_cpus_per_node=draw(LIMITS),
        allowed_groups=draw(st.sampled_from([None, "wheel"])),
        submit_hosts=draw(st.sampled_from([None, "head"])),
        qos=draw(st.one_of(st.none(), NAMES)),
        root_only=draw(st.booleans()),
        needs_reservation=draw(st.booleans()),
        sharing=draw(st.sampled_from(["NO", "EXCLUSIVE", "FORCE:4", "YES:2"])),
        tier=draw(st.integers(0, 65_533)),
        factor=draw(st.integers(0, 65_533)),
        preempt_mode=draw(st.sampled_from(["OFF", "CANCEL", "REQUEUE"])),
        tres="cpu=8,node=1",
        weights=draw(st.sampled_from([None, "CPU=1.0,Mem=0.25G"])),
        **draw(st.sampled_from(memory)),
        **draw(st.sampled_from(largest)),
        **draw(st.sampled_from(access)),
        **draw(st.sampled_from(accounts)),
    )


@given(st.lists(partitions(), max_size=4))
def test_partitions_are_read_back(rows: list[PartitionLine]) -> None:
    text = shown(*rows)
    rules, configured = machine.read_partition_rules(text), machine.read_partitions(text)
    assert rules.unreadable == configured.unreadable == ()
    for rule, row in zip(rules.rows, rows, strict=True):
        assert (rule.name, rule.is_default, rule.state) == (
            row.name, row.is_default, PartitionState[row.state],
        )  # fmt: skip
        assert (rule.default_seconds, rule.max_seconds, rule.grace_seconds) == (
            row.default_time, row.max_time, row.grace_seconds,
        )  # fmt: skip
        assert (rule.min_nodes, rule.max_nodes, rule.max_cpus_per_node) == (
            row.min_nodes, row.max_nodes, row.max_cpus_per_node,
        )  # fmt: skip
        assert (rule.root_only, rule.needs_reservation, rule.partition_qos) == (
            row.root_only, row.needs_reservation, row.qos,
        )  # fmt: skip
        assert (rule.tier, rule.factor) == (row.tier, row.factor)
        sharing, _, count = row.sharing.partition(":")
        assert (rule.sharing, rule.rows) == (OverSubscribe[sharing], int(count or 4))
        assert (rule.memory_per_cpu, rule.memory_per_node) == (
            row.memory_per_cpu, row.memory_per_node,
        )  # fmt: skip
        assert (rule.max_memory_per_cpu, rule.max_memory_per_node) == (
            row.max_memory_per_cpu, row.max_memory_per_node,
        )  # fmt: skip
        for access, allowed, denied in (
            (rule.accounts, row.allowed_accounts, row.denied_accounts),
            (rule.qos, row.allowed_qos, row.denied_qos),
            (rule.groups, row.allowed_groups, None),
        ):
            assert (access is None) == (not allowed and not denied)
            if access:
                assert (",".join(access.names), access.denies) == (allowed or denied, not allowed)
        assert (rule.weights is None) == (row.weights is None)
        assert len(rule.nodes) == (3 if row.nodes == "c[01-03]" else 0)


@st.composite
def reservations(draw: st.DrawFn) -> ReservationLine:
    start, names = draw(INSTANTS), st.sampled_from([None, "a,b"])
    return ReservationLine(
        draw(NAMES),
        start,
        start + draw(st.integers(1, 10**7)),
        draw(st.sampled_from([None, "c[01-03]"])),
        features=draw(st.one_of(st.none(), NAMES)),
        partition=draw(st.one_of(st.none(), NAMES)),
        flags=draw(st.sampled_from([None, "MAINT,FLEX", "OVERLAP,IGNORE_JOBS,ANY_NODES"])),
        users=draw(names),
        groups=draw(names),
        accounts=draw(names),
        licenses=draw(st.sampled_from([None, "matlab:2"])),
        is_active=draw(st.booleans()),
    )


@given(st.lists(reservations(), max_size=4))
def test_reservations_are_read_back(rows: list[ReservationLine]) -> None:
    read = machine.read_reservations(shown(*rows))
    assert read.unreadable == ()
    assert machine.read_reservation_names(shown(*rows)) == tuple(row.name for row in rows)
    for one, row in zip(read.rows, [row for row in rows if row.nodes], strict=True):
        assert (one.name, one.begin, one.end) == (row.name, row.start, row.end)
        assert (one.partition, one.features) == (row.partition or "", row.features or "")
        for names, text in ((one.users, row.users), (one.accounts, row.accounts)):
            assert names == frozenset((text or "").split(",")) - {""}
        assert (one.maintenance, one.overlapping) == (
            "MAINT" in (row.flags or ""), "OVERLAP" in (row.flags or ""),
        )  # fmt: skip
        assert dict(one.licenses) == ({"matlab": 2} if row.licenses else {})


def _words() -> Iterator[tuple[str, Callable[[str], Any]]]:
    yield scontrol.NO_RESERVATIONS, machine.read_reservations
    yield scontrol.NO_LICENSES, machine.read_licenses
    yield scontrol.NO_JOBS, read_jobs


@pytest.mark.parametrize(("text", "read"), [pytest.param(*pair, id=pair[0]) for pair in _words()])
def test_sentence_of_an_empty_list_is_read_as_none(text: str, read: Callable[[str], Any]) -> None:
    assert (read(f"{text}\n").rows, read(f"{text}\n").unreadable) == ((), ())


@pytest.mark.parametrize("kind", TEMPLATES, ids=lambda kind: str(kind.__name__))
def test_every_value_of_a_template_is_a_value_of_the_row(kind: type[Any]) -> None:
    row = kind(1) if kind is JobLine else kind("x")
    text = scontrol.show(row, TEMPLATES[kind], HERE, has_details=True)
    assert not set("{}<>|%") & set(text)


def test_text_that_would_break_a_line_is_escaped() -> None:
    row = JOB_19._replace(name="caf\xe9|x", comment="a\nJobId=8\x1b[2J\u202e", work_dir="/\udce9")
    text = scontrol.show(row, scontrol.JOB, HERE)
    assert "   Comment=a\\nJobId=8\\x1b[2J\\u202e \n" in text
    assert "JobName=caf\xe9|x\n" in text
    assert "WorkDir=/\udce9\n" in text
    assert [job.job_id for job in read_jobs(shown(row, details=True)).rows] == [19]
