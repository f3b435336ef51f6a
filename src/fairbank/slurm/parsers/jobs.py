"""Pending jobs and those on nodes, with requests and allocations: `scontrol --details show job`.

Of any version, with `--oneliner`. Without `--details` the share of each node is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from fairbank.cluster.accounting_job import STATES_WITH_NODES
from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.cluster.job import squeue_name
from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.core.submission.arrays import parse_array
from fairbank.core.submission.dependencies import parse_term, split_dependencies
from fairbank.core.tres import parse_counts
from fairbank.report.slurm.notation import ANY, NO, NONE, NOT_APPLICABLE, NULL, UNLIMITED_WORDS, YES
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, read_rows
from fairbank.slurm.parsers.job_lines import COMMAND, job_lines, listed_fields
from fairbank.slurm.parsers.values import ListedJob, ParsedRows

_NOTHING = frozenset({"", NULL, NOT_APPLICABLE, NONE, ANY})
_ON_NODES = re.compile(r"Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d{1,12}) GRES=(\S*)", re.ASCII)
_CPUS = re.compile(r"cpu[:=]\d{1,9}", re.ASCII)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)", re.ASCII)
_STEPS = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


class JobNodes(msgspec.Struct, frozen=True):
    """Resources that a job has on each of these nodes."""

    nodes: tuple[str, ...]
    cpus: int
    memory: int
    gpus: tuple[Gpus, ...] = ()


class SlurmJob(ListedJob, frozen=True, kw_only=True):
    """Job as slurmctld has it. Instants are seconds since 1970, times seconds.

    `qos` is the first that it requested, `other_qos` the rest. `reservation` is as requested: a
    name, or several with commas. `tasks` are those of an array that have not started, `throttle`
    limits those that run at once; `task` has started, or was separated from the others. `limit` is
    None for the partition's. `expected` is the start that slurmctld expects, `reason` why the job
    is pending, in Slurm's word, as of its last check. `dependencies` are those on other jobs that
    are open. `licenses` and `tres` are what it requests or has, `billing` its billing units if they
    are printed, `allocated` the nodes that it has. `het_job` is the first component of a
    heterogeneous job, `het_offset` the number of this one. `deadline` is the instant by which it
    must end. `uid` is None where Slurm does not print it. `submit_host` is the host from which it
    was submitted. `ran` is how long a suspended job has run.
    """

    name: str
    state: str
    qos: str
    eligible: int | None
    started: int | None
    ends: int | None
    expected: int | None
    limit: int | None
    time_min: int | None
    reason: str
    dependencies: Dependencies
    reservation: str | None
    wanted: ResourceRequest
    licenses: Mapping[str, int]
    tres: Mapping[str, int]
    billing: int | None = None
    array: int | None = None
    task: int | None = None
    tasks: tuple[int, ...] = ()
    throttle: int | None = None
    allocated: tuple[JobNodes, ...] = ()
    other_qos: tuple[str, ...] = ()
    deadline: int | None = None
    uid: int | None = None
    admin_comment: str = ""
    het_job: int | None = None
    het_offset: int = 0
    submit_host: str = ""
    ran: int | None = None

    @property
    def squeue_name(self) -> str:
        """Name in squeue: for a task of an array, the array's number and its own; likewise for a
        component of a heterogeneous job.
        """
        return squeue_name(self.job_id, self.array, self.task, self.het_job, self.het_offset)

    @property
    def is_pending(self) -> bool:
        """True if it waits."""
        return self.state == "PENDING"


def read_jobs(text: str) -> ParsedRows[SlurmJob]:
    """Read pending jobs and those on nodes.

    A request unknown to the scheduler here is unreadable.
    """
    return read_rows(COMMAND, job_lines(text), _job)


def _job(cells: Cells) -> SlurmJob | None:
    state = cells.read("JobState", words.state)
    waits = state == "PENDING"
    if not waits and state not in STATES_WITH_NODES:
        return None
    tasks = cells["ArrayTaskId"]
    several = bool(tasks) and not tasks.isdecimal()
    start = cells.read("StartTime", words.instant)
    qos, *others = cells["QOS"].split(",")
    printed = cells.get("TRES", cells.get("ReqTRES" if waits else "AllocTRES", ""))
    tres = words.tres(printed, "TRES")
    parsed = parse_counts(tres, field="TRES") if tres else {}
    counts = {name: int(count) for name, count in parsed.items()}
    return SlurmJob(
        **listed_fields(cells),
        name=cells["JobName"],
        state=state,
        qos=qos,
        eligible=cells.read("EligibleTime", words.instant),
        started=None if waits else words.required_instant(start, "StartTime"),
        ends=None if waits else cells.read("EndTime", words.instant),
        expected=start if waits else None,
        limit=cells.read("TimeLimit", _length),
        time_min=cells.read("TimeMin", _length, NOT_APPLICABLE),
        reason=words.reason(cells.get("Reason", NONE)),
        dependencies=read_dependencies(_text(cells, "Dependency")),
        reservation=_text(cells, "Reservation") or None,
        wanted=_wanted(cells, counts.get("node", 0)) if waits else ResourceRequest(),
        licenses=words.licenses(_text(cells, "Licenses"), "Licenses"),
        tres=counts,
        billing=words.billing(printed),
        array=cells.read("ArrayJobId", words.optional(words.job_id), ""),
        task=int(tasks) if tasks and not several else None,
        tasks=_tasks(tasks) if several else (),
        throttle=cells.read("ArrayTaskThrottle", words.optional(words.number), ""),
        allocated=tuple(_allocated_nodes(cells["Given"])),
        other_qos=tuple(others),
        deadline=cells.read("Deadline", words.instant, NOT_APPLICABLE),
        uid=cells.read("Uid", words.number),
        admin_comment=cells.get("AdminComment", "") if waits else "",
        het_job=cells.read("HetJobId", words.optional(words.job_id), ""),
        het_offset=cells.read("HetJobOffset", words.number, "0"),
        submit_host=cells.get("AllocNode:Sid", "").rpartition(":")[0],
        ran=cells.read("RunTime", _length, NOT_APPLICABLE) if state == "SUSPENDED" else None,
    )


def _allocated_nodes(text: str) -> Iterator[JobNodes]:
    for match in _ON_NODES.finditer(text):
        yield JobNodes(
            tuple(expand(match[1], field="Nodes")),
            _cpus(match[2]),
            int(match[3]),
            words.gpus(match[4], "GRES"),
        )


def _cpus(text: str) -> int:
    """Count the numbers that `0-8,12` names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += words.number(last or first, "CPU_IDs") - words.number(first, "CPU_IDs") + 1
    return count


def _wanted(cells: Cells, least: int) -> ResourceRequest:
    """Return the request.

    NumNodes grows while slurmctld tries to place a job; `least` is the request.
    """
    nodes, _, most = cells.read("NumNodes", words.any_text).partition("-")
    wanted = max(least or words.number(nodes, "NumNodes"), 1)
    per_node = cells.get("NtasksPerN:B:S:C", "0").partition(":")[0]
    gpus, tasks = _gpus(cells, wanted, most), cells.read("NumTasks", _count, "")
    if gpus.total is not None and tasks <= wanted and "NtasksPerTRES" not in cells:
        # slurmctld prints a task for each node of a job that names none. Such a job may have more
        # nodes than it asks for, until they hold its GPUs.
        tasks = 0
    together = cells.read("NtasksPerTRES", _count, "") or None
    if together is not None and gpus.total is not None:
        gpus = _Gpus(per_task=(gpus.total._replace(number=1),))
    return ResourceRequest(
        gpus=gpus.per_node,
        gpus_per_task=gpus.per_task,
        total_gpus=gpus.total,
        tasks_per_gpu=together,
        cpus_per_gpu=_of_gpu(cells, "CpusPerTres"),
        memory_per_gpu=_of_gpu(cells, "MemPerTres"),
        tasks=tasks or None,
        nodes=wanted,
        max_nodes=words.number(most, "NumNodes") if most else None,
        tasks_per_node=_count(per_node, "NtasksPerN:B:S:C") or None,
        cpus_per_task=cells.read("CPUs/Task", _count, "1") or 1,
        cpus_per_node=cells.read("MinCPUsNode", _count, "1") or 1,
        memory_per_node=cells.read("MinMemoryNode", words.optional(_size), ""),
        memory_per_cpu=cells.read("MinMemoryCPU", words.optional(_size), "") or None,
        tmp=cells.read("MinTmpDiskNode", _size, "0"),
        constraint=_text(cells, "Features"),
        prefer=_text(cells, "Prefer"),
        contiguous=cells.get("Contiguous", "0") == "1",
        # 26.05 prints OverSubscribe=NO for nearly every job, and has Exclusive for whole nodes.
        exclusive=(
            cells["Exclusive"] == "NODE"
            if "Exclusive" in cells
            else cells.get("OverSubscribe") == NO
        ),
        shared=cells.get("OverSubscribe") == YES,
        required=tuple(expand(_text(cells, "ReqNodeList"), field="ReqNodeList")),
        excluded=tuple(expand(_text(cells, "ExcNodeList"), field="ExcNodeList")),
    )


class _Gpus(NamedTuple):
    per_node: tuple[Gpus, ...] = ()
    per_task: tuple[Gpus, ...] = ()
    total: Gpus | None = None


def _gpus(cells: Cells, nodes: int, most: str) -> _Gpus:
    """Return the GPUs that a job requests of each node, for each task, or in all.

    Of a job that names two of them, the number in all only says how many nodes or tasks it has.
    """
    if text := _text(cells, "TresPerSocket"):
        raise _unknown_gpus(text, "TresPerSocket")
    if per_node := words.gpus(_text(cells, "TresPerNode"), "TresPerNode"):
        return _Gpus(per_node=per_node)
    # Newer versions print the CPUs of a task here as well as in CPUs/Task.
    parts = _text(cells, "TresPerTask").split(",")
    text = ",".join(part for part in parts if not _CPUS.fullmatch(part))
    if per_task := words.gpus(text, "TresPerTask"):
        return _Gpus(per_task=per_task)
    in_all = words.gpus(text := _text(cells, "TresPerJob"), "TresPerJob")
    if (nodes, most) == (1, "1"):
        return _Gpus(per_node=in_all)
    if len(in_all) > 1:
        raise _unknown_gpus(text, "TresPerJob")
    return _Gpus(total=next(iter(in_all), None))


def _of_gpu(cells: Cells, field: str) -> int | None:
    """Return the number of `gres/gpu:4`, CPUs or MiB of each GPU; None if there is none."""
    return sum(count for _, count in words.gpus(_text(cells, field), field)) or None


def _unknown_gpus(text: str, field: str) -> InvalidInput:
    what = f"asks for {words.quote_unknown(text)} in a way that is not known here"
    return InvalidInput(what, field=field)


def _tasks(text: str) -> tuple[int, ...]:
    """Return the numbers that `1-5,7,10-20:2%3` names."""
    # slurmctld cuts a long list off with dots.
    return parse_array(text, field="ArrayTaskId", remedy="give SLURM_BITSTR_LEN=0").numbers


def _length(text: str, field: str) -> int | None:
    return UNLIMITED_SECONDS if text in UNLIMITED_WORDS else words.finite_length(text, field)


def _size(text: str, field: str) -> int:
    """Return `2G`, `1000M` or `2.50G` in MiB."""
    match = words.match_cell(_SIZE, text, field, "is not a size")
    return round(float(match[1]) * _STEPS[match[2]])


def _count(text: str, field: str) -> int:
    """Return a number, or 0 for none."""
    return 0 if text in _NOTHING else words.number(text, field)


def _text(cells: Cells, field: str) -> str:
    text = cells.get(field, "")
    return "" if text in _NOTHING else text


# --- dependencies ---

# An example is `afterok:31(unfulfilled),after:15_*+10(unfulfilled)`. Met dependencies are not
# printed. Each stands alone, with its state.

_WITH_STATE = re.compile(r"(.*?)(?:\(([a-z]{1,16})\))?", re.ASCII)
_DEPENDENCY_STATES = {state.value: state for state in DependencyState}


def read_dependencies(text: str) -> Dependencies:
    """Read the dependencies.

    A text that cannot be read stands for itself, so that the job is explained.
    """
    if not text:
        return Dependencies()
    parts, any_of = split_dependencies(text)
    items: list[Dependency] = []
    for part in parts:
        match = _WITH_STATE.fullmatch(part)
        terms = parse_term(match[1]) if match else None
        state = _DEPENDENCY_STATES.get(match[2] or "unfulfilled") if match else None
        if terms is None or state is None:
            return Dependencies(text)
        items += (Dependency(*term, state) for term in terms)
    return Dependencies(text, tuple(items), any_of)
