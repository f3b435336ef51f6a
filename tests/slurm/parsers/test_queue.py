"""slurmctld's output on nodes, partitions, reservations, jobs, limits and licenses, parsed for the
scheduler.
"""

from __future__ import annotations

import pytest

from fairbank.cluster.node import Gpus, NodeState
from fairbank.cluster.partition_rules import AccessList, OverSubscribe, PreemptMode
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import LimitUsage
from fairbank.slurm.parsers import jobs, limits, machine, words
from fairbank.slurm.parsers.jobs import JobNodes, SlurmJob

NODE = (
    "NodeName=g01 Arch=x86_64 CoresPerSocket=24  CPUAlloc=0 CPUEfctv=44 CPUTot=48"
    " AvailableFeatures=big,ib ActiveFeatures=big,ib Gres=gpu:a100:4(S:0-1),gpu:2,nvme:1"
    " RealMemory=512000 MemSpecLimit=2000 State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=900 Weight=10"
    " Partitions=gpu Reason=State=IDLE Weight=1 [root@2026-11-22T17:20:49]"
)
PARTITION = (
    "PartitionName=gpu AllowGroups=ALL QoS=long MaxNodes=4 MaxTime=7-00:00:00 MinNodes=2"
    " Nodes=g[01-02],h1 PriorityTier=3 OverSubscribe=FORCE:2 PreemptMode=REQUEUE State=UP"
    " DefMemPerNode=4000"
)
RESERVATION = (
    "ReservationName=course StartTime=2026-11-22T18:20:35 EndTime=2026-11-22T19:20:35"
    " Duration=01:00:00 Nodes=c[05-06] NodeCnt=2 Flags=FLEX,SPEC_NODES,ANY_NODES Users=alice,-bob"
    " Accounts=(null) State=INACTIVE"
)
PENDING = (
    "JobId=7 ArrayJobId=7 ArrayTaskId=1-3,8%2 ArrayTaskThrottle=2 JobName=a job UserId=dave(60604)"
    " GroupId=users(100) MCS_label=N/A Priority=101050 Nice=0 Account=wg_chem QOS=normal"
    " JobState=PENDING Reason=Priority Dependency=(null) TimeLimit=00:10:00 TimeMin=N/A"
    " SubmitTime=2026-11-22T17:20:35 EligibleTime=2026-11-22T17:20:37 AccrueTime=Unknown"
    " StartTime=2026-11-22T17:50:00 EndTime=Unknown Partition=cpu,gpu ReqNodeList=(null)"
    " ExcNodeList=c[01-02] NodeList= NumNodes=4-6 NumCPUs=5 NumTasks=5 CPUs/Task=3"
    " TRES=cpu=15,mem=15G,node=2,billing=7 NtasksPerN:B:S:C=2:0:*:* CoreSpec=* MinCPUsNode=6"
    " MinMemoryCPU=2.50G MinTmpDiskNode=1G Features=a|b OverSubscribe=NO Contiguous=1"
    " Licenses=ansys@flex1:2,x Command=(null) TresPerNode=gres:gpu:a100:2,gres:gpu:1"
)
RUNNING = (
    "JobId=9 JobName=x UserId=bob(60602) GroupId=users(100) MCS_label=N/A Priority=5 Nice=0"
    " Account=wg_bio QOS=normal JobState=RUNNING Reason=None Dependency=(null) TimeLimit=UNLIMITED"
    " TimeMin=N/A SubmitTime=2026-11-22T17:20:35 EligibleTime=2026-11-22T17:20:35"
    " StartTime=2026-11-22T17:20:37 EndTime=2026-11-22T17:30:37 Partition=cpu NumNodes=3 NumCPUs=13"
    " TRES=cpu=13,mem=6G,node=3 CoreSpec=* JOB_GRES=(null)   Nodes=c02 CPU_IDs=0-8,12 Mem=2048"
    " GRES=gpu:a100:2(IDX:0,3)   Nodes=c[03-04] CPU_IDs=0-2 Mem=1024 GRES= MinCPUsNode=3"
    " Command=Nodes=c09 CPU_IDs=0-63 Mem=1 GRES="
)


def node_line(**changes: str) -> str:
    return with_fields(NODE, changes)


def with_fields(line: str, changes: dict[str, str]) -> str:
    words = line.split(" ")
    return " ".join(
        f"{name}={changes.pop(name)}" if (name := word.partition("=")[0]) in changes else word
        for word in words
    )


def pending_line(**changes: str) -> str:
    return with_fields(PENDING, changes)


def read_job(line: str) -> SlurmJob:
    parsed = jobs.read_jobs(line)
    assert parsed.unreadable == ()
    return parsed.rows[0]


def test_node_is_read() -> None:
    parsed = machine.read_hosts(NODE)
    assert parsed.unreadable == ()
    (g01,) = parsed.rows
    assert (g01.name, g01.cpus, g01.threads, g01.memory, g01.tmp, g01.weight) == (
        "g01",
        44,
        2,
        510_000,
        900,
        10,
    )
    assert g01.gpus == (Gpus("", 2), Gpus("a100", 4))
    assert g01.features == {"big", "ib"}
    assert g01.state is NodeState.DRAINED


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("MIXED", NodeState.UP),
        ("ALLOCATED+PLANNED", NodeState.UP),
        ("IDLE+COMPLETING", NodeState.UP),
        ("DOWN+DRAIN", NodeState.DOWN),
        ("DOWN*", NodeState.NOT_RESPONDING),
        ("IDLE+NOT_RESPONDING", NodeState.NOT_RESPONDING),
        ("IDLE+CLOUD+POWERED_DOWN", NodeState.POWERED_DOWN),
        ("IDLE~", NodeState.POWERED_DOWN),
        ("MIXED+POWERING_UP", NodeState.POWERING_UP),
        ("IDLE+POWERING_DOWN", NodeState.DOWN),
        ("FUTURE", NodeState.FUTURE),
    ],
)
def test_node_states_are_read(text: str, state: NodeState) -> None:
    assert machine.read_hosts(node_line(State=text)).rows[0].state is state


@pytest.mark.parametrize(
    ("field", "text"), [("CPUTot", "many"), ("RealMemory", "-1"), ("Weight", "5000000000")]
)
def test_unreadable_node_is_reported(field: str, text: str) -> None:
    parsed = machine.read_hosts(f"{NODE}\n{node_line(**{field: text})}")
    assert len(parsed.rows) == 1
    assert [line.line for line in parsed.unreadable] == [2]
    assert field.lower() in parsed.unreadable[0].field.lower()


def test_partition_is_read() -> None:
    (gpu,) = machine.read_partition_rules(PARTITION).rows
    assert (gpu.name, gpu.nodes, gpu.can_start_jobs, gpu.tier) == (
        "gpu",
        ("g01", "g02", "h1"),
        True,
        3,
    )
    assert (gpu.max_seconds, gpu.min_nodes, gpu.max_nodes) == (7 * 86_400, 2, 4)
    assert (gpu.sharing, gpu.rows, gpu.preempted) == (OverSubscribe.FORCE, 2, PreemptMode.REQUEUE)
    assert (gpu.memory_per_cpu, gpu.memory_per_node) == (None, 4_000)
    assert (gpu.partition_qos, gpu.is_default) == ("long", False)


def test_partition_of_slurmctld_is_read() -> None:
    """Printed by 22.05 for GraceTime=90 MaxMemPerCPU=500 PriorityJobFactor=7 QOS=normal."""
    (rules,) = machine.read_partition_rules(
        "PartitionName=a AllowGroups=ALL Default=YES QoS=normal DefaultTime=NONE GraceTime=90"
        " MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED"
        " Nodes=n[1-4] PriorityJobFactor=7 PriorityTier=1 OverSubscribe=NO PreemptMode=OFF State=UP"
        " DefMemPerCPU=10 MaxMemPerCPU=500"
    ).rows
    assert (rules.is_default, rules.partition_qos, rules.factor) == (True, "normal", 7)
    assert (rules.grace_seconds, rules.max_memory_per_cpu, rules.max_memory_per_node) == (
        90,
        500,
        None,
    )


@pytest.mark.parametrize(
    ("state", "up"), [("UP", True), ("DRAIN", True), ("DOWN", False), ("INACTIVE", False)]
)
def test_partition_state_is_read(state: str, up: bool) -> None:
    (rules,) = machine.read_partition_rules(with_fields(PARTITION, {"State": state})).rows
    assert (rules.state.value, rules.can_start_jobs) == (state, up)


def test_access_to_a_partition_is_read() -> None:
    line = with_fields(PARTITION, {"AllowGroups": "staff,admins"})
    named = "AllowAccounts=wg_a,dept bio AllowQos=high MaxCPUsPerNode=8 ReqResv=YES"
    (rules,) = machine.read_partition_rules(f"{line} {named}").rows
    assert rules.accounts == AccessList(("wg_a", "dept bio"), "AccountNotAllowed")
    assert rules.qos == AccessList(("high",), "QOSNotAllowed")
    assert (rules.groups, rules.max_cpus_per_node) == (
        AccessList(("staff", "admins"), "AccountNotAllowed"),
        8,
    )
    assert rules.needs_reservation
    (rules,) = machine.read_partition_rules(
        f"{PARTITION} DenyAccounts=wg_b DenyQos=low DenyGroups=staff"
        " TRESBillingWeights=CPU=2,GRES/gpu=oops MaxCPUsPerNode=UNLIMITED DefaultTime=00:30:00"
    ).rows
    assert rules.accounts == AccessList(("wg_b",), "AccountNotAllowed", denies=True)
    assert rules.qos == AccessList(("low",), "QOSNotAllowed", denies=True)
    assert (rules.groups, rules.max_cpus_per_node, rules.weights) == (None, None, None)
    assert rules.default_seconds == 1_800


def test_reason_of_a_node_is_read() -> None:
    (node,) = machine.read_hosts(NODE).rows
    assert node.reason == "State=IDLE Weight=1 (by root, 2026-11-22T17:20:49Z)"
    (node,) = machine.read_hosts(NODE.partition(" Reason=")[0]).rows
    assert node.reason == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "Job's_account_not_permitted_to_use_this_partition_(cpu_allows_wg_a,wg_b_not_wg_c)",
            "AccountNotAllowed",
        ),
        (
            "Job's_QOS_not_permitted_to_use_this_partition_(cpu_denies_low_including_low)",
            "QOSNotAllowed",
        ),
        ("uid 601 not in group permitted to use this partition (gpu).", "AccountNotAllowed"),
        ("AssocGrpBillingMinutes", "AssocGrpBillingMinutes"),
    ],
)
def test_sentences_instead_of_reasons_are_read(text: str, word: str) -> None:
    assert words.reason(text) == word


def test_component_of_a_heterogeneous_job_is_read() -> None:
    numbers = PENDING.partition(" JobName=")[0]
    component = read_job(
        PENDING.replace(numbers, "JobId=8 HetJobId=7 HetJobOffset=1 HetJobIdSet=7-8")
    )
    assert (component.het_job, component.het_offset, component.squeue_name) == (7, 1, "7+1")
    assert read_job(PENDING).het_job is None


def test_reservation_is_read() -> None:
    (course,) = machine.read_reservations(RESERVATION).rows
    assert (course.name, course.nodes, int(course.end) - int(course.begin)) == (
        "course",
        ("c05", "c06"),
        3_600,
    )
    assert (course.users, course.accounts) == (frozenset({"alice"}), frozenset())
    assert (course.flexible, course.any_nodes, course.maintenance) == (True, True, False)
    assert (course.groups, course.partition, course.features, course.licenses) == (
        frozenset(),
        "",
        "",
        {},
    )


def test_reservation_for_groups_is_read() -> None:
    """Printed by 22.05 for flags=MAINT,OVERLAP,IGNORE_JOBS and the like."""
    (service,) = machine.read_reservations(
        "ReservationName=r1 StartTime=2026-11-26T21:31:08 EndTime=2026-11-26T22:31:08"
        " Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 CoreCnt=4 Features=big PartitionName=a"
        " Flags=MAINT,OVERLAP,IGNORE_JOBS,SPEC_NODES Users=(null) Groups=root,daemon"
        " Accounts=(null) Licenses=matlab:2,ansys State=INACTIVE"
    ).rows
    assert (service.maintenance, service.overlapping, service.ignores_jobs) == (True, True, True)
    assert (service.groups, service.partition, service.features, service.licenses) == (
        frozenset({"root", "daemon"}),
        "a",
        "big",
        {"matlab": 2, "ansys": 1},
    )


@pytest.mark.parametrize(
    "text", ["No reservations in the system\n", with_fields(RESERVATION, {"Nodes": "(null)"})]
)
def test_reservations_without_nodes_are_left_out(text: str) -> None:
    parsed = machine.read_reservations(text)
    assert (parsed.rows, parsed.unreadable) == ((), ())


def test_pending_job_is_read() -> None:
    job = read_job(PENDING)
    assert (job.job_id, job.name, job.array, job.task, job.tasks, job.throttle) == (
        7,
        "a job",
        7,
        None,
        (1, 2, 3, 8),
        2,
    )
    assert (job.partitions, job.limit, job.time_min, job.reason) == (
        ("cpu", "gpu"),
        600,
        None,
        "Priority",
    )
    assert job.expected is not None
    assert (job.eligible or 0) - job.submitted == 2
    assert job.expected - job.submitted == 29 * 60 + 25
    assert job.licenses == {"ansys@flex1": 2, "x": 1}
    request = job.wanted
    assert (request.nodes, request.max_nodes, request.tasks, request.tasks_per_node) == (2, 6, 5, 2)
    assert (
        request.cpus_per_task,
        request.cpus_per_node,
        request.memory_per_cpu,
        request.memory_per_node,
    ) == (3, 6, 2_560, None)
    assert (request.tmp, request.constraint, request.contiguous, request.exclusive) == (
        1_024,
        "a|b",
        True,
        True,
    )
    assert (request.required, request.excluded) == ((), ("c01", "c02"))
    assert request.gpus == (Gpus("", 1), Gpus("a100", 2))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("UNLIMITED", UNLIMITED_SECONDS), ("Partition_Limit", None), ("1-00:00:30", 86_430)],
)
def test_time_limits_are_read(text: str, seconds: int | None) -> None:
    assert read_job(pending_line(TimeLimit=text)).limit == seconds


def test_running_job_is_read() -> None:
    job = read_job(RUNNING)
    assert job.allocated == (
        JobNodes(("c02",), 10, 2_048, (Gpus("a100", 2),)),
        JobNodes(("c03", "c04"), 3, 1_024),
    )
    assert (job.started or 0) - job.submitted == 2
    assert (job.ends or 0) - (job.started or 0) == 600
    assert not job.is_pending


def test_ended_jobs_are_left_out() -> None:
    assert jobs.read_jobs(RUNNING.replace("JobState=RUNNING", "JobState=FAILED")).rows == ()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (pending_line(ArrayTaskId="1-3,..."), "ArrayTaskId"),
        (pending_line(TresPerNode="gres:gpu:a:b:1"), "TresPerNode"),
        (f"{pending_line(TresPerNode='')} TresPerJob=gres:gpu:a:5,gres:gpu:b:1", "TresPerJob"),
        (f"{pending_line(TresPerNode='')} TresPerSocket=gres:gpu:1", "TresPerSocket"),
        (pending_line(NumNodes="some", TRES=""), "NumNodes"),
        (pending_line(TimeLimit="soon"), "TimeLimit"),
    ],
)
def test_unknown_request_is_reported(line: str, field: str) -> None:
    parsed = jobs.read_jobs(line)
    assert parsed.rows == ()
    assert [line.field for line in parsed.unreadable] == [field]


@pytest.mark.parametrize(
    ("nodes", "tasks", "text", "expected"),
    [
        ("1-1", 1, "TresPerJob=gres:gpu:3", {"gpus": (Gpus("", 3),), "tasks": 1}),
        (
            "1-1",
            4,
            "TresPerJob=gres/gpu:a:2,gres/gpu:b:1",
            {"gpus": (Gpus("a", 2), Gpus("b", 1)), "tasks": 4},
        ),
        ("1", 4, "TresPerJob=gres:gpu:3", {"total_gpus": Gpus("", 3), "tasks": 4}),
        ("1", 1, "TresPerJob=gres/gpu:a100:6", {"total_gpus": Gpus("a100", 6), "tasks": None}),
        ("1", 4, "TresPerTask=gres:gpu:1", {"gpus_per_task": (Gpus("", 1),), "tasks": 4}),
        ("1", 4, "TresPerTask=cpu=2,gres/gpu=1", {"gpus_per_task": (Gpus("", 1),), "tasks": 4}),
        (
            "1",
            2,
            "TresPerJob=gres:gpu:4 TresPerTask=gres:gpu:2",
            {"gpus_per_task": (Gpus("", 2),), "tasks": 2},
        ),
        (
            "1",
            6,
            "TresPerJob=gres/gpu:3 NtasksPerTRES=2 CpusPerTres=gres:gpu:4 MemPerTres=gres/gpu:100",
            {
                "gpus_per_task": (Gpus("", 1),),
                "tasks": 6,
                "tasks_per_gpu": 2,
                "cpus_per_gpu": 4,
                "memory_per_gpu": 100,
            },
        ),
        (
            "2",
            2,
            "TresPerJob=gres:gpu:4 TresPerNode=gres:gpu:2",
            {"gpus": (Gpus("", 2),), "tasks": 2},
        ),
    ],
)
def test_gpus_are_of_nodes_of_tasks_or_in_all(
    nodes: str, tasks: int, text: str, expected: dict[str, object]
) -> None:
    line = pending_line(NumNodes=nodes, TRES="node=1", NumTasks=str(tasks)).split(" TresPerNode=")[
        0
    ]
    line = line.replace("C=2:0", "C=0:0").replace("MinMemoryCPU=2.50G", "MinMemoryTRES=0")
    wanted = read_job(f"{line} {text}").wanted
    fields = {"gpus": (), "gpus_per_task": (), "total_gpus": None, **expected}
    assert {name: getattr(wanted, name) for name in fields} == fields


ASSOCIATION = (
    "ClusterName=lab Account=wg_bio UserName=carol(60603) Partition= Priority=0 ID=9 ParentAccount="
    " Lft=7 DefAssoc=Yes GrpJobs=10(3) GrpWall=600(12.50) GrpTRES=cpu=40(30),mem=N(9)"
    " GrpTRESMins=cpu=1000(39),gres/gpu=N(7) GrpTRESRunMins=cpu=N(464) MaxJobs=5(3) MaxWallPJ=20"
    " MaxTRESPJ=cpu=32 MaxTRESPN= MaxTRESMinsPJ=cpu=60"
)


def test_association_limits_are_read() -> None:
    (carol,) = limits.read_association_limits(f"Association Records\n{ASSOCIATION}\n").rows
    assert (carol.name, carol.user, carol.partition, carol.parent) == (
        "wg_bio",
        "carol",
        "",
        "wg_bio",
    )
    assert carol.limits.jobs == {LimitKind.GRP_JOBS: 10, LimitKind.MAX_JOBS: 5}
    assert carol.limits.wall == {LimitKind.GRP_WALL: 600, LimitKind.MAX_WALL: 20}
    assert carol.limits.tres == {
        LimitKind.GRP_TRES: {"cpu": 40},
        LimitKind.GRP_TRES_MINS: {"cpu": 1_000},
        LimitKind.MAX_TRES: {"cpu": 32},
        LimitKind.MAX_TRES_MINS: {"cpu": 60},
    }
    assert carol.used == LimitUsage(seconds={"cpu": 2_340.0, "gres/gpu": 420.0}, wall_seconds=750.0)


def test_invalid_limit_is_reported() -> None:
    parsed = limits.read_association_limits(ASSOCIATION.replace("GrpJobs=10(3)", "GrpJobs=ten"))
    assert [(line.field, parsed.rows) for line in parsed.unreadable] == [("GrpJobs", ())]


def test_qos_usage_excludes_account_and_user_limits() -> None:
    line = (
        "QOS=high(2) GrpWall=N(3.00) GrpTRES=cpu=N(1) GrpTRESMins=cpu=N(2) Account Limits="
        " wg_bio={GrpTRESMins=cpu=N(9)} User Limits="
    )
    (high,) = limits.read_qos_usage(line).rows
    assert high.name == "high"
    assert high.used == LimitUsage(seconds={"cpu": 120.0}, wall_seconds=180.0)


def test_qos_of_the_database_is_read() -> None:
    cells = dict.fromkeys(limits.QOS_LIMITS.columns, "") | {
        "Name": "high",
        "Flags": "OverPartQOS,DenyOnLimit",
        "UsageFactor": "2.000000",
        "Priority": "100",
        "Preempt": "low,normal",
        "PreemptMode": "requeue",
        "PreemptExemptTime": "00:05:00",
        "GrpTRES": "cpu=64,mem=2G,gres/gpu:t4=3",
        "MaxJobsPU": "4",
        "MaxWall": "1-00:00:00",
    }
    (high,) = limits.QOS_LIMITS.read("|".join(cells.values())).rows
    assert (high.name, high.flags, high.usage_factor) == (
        "high",
        frozenset({"OverPartQOS", "DenyOnLimit"}),
        2.0,
    )
    assert (high.priority, high.preempts, high.mode, high.exempt_seconds) == (
        100,
        frozenset({"low", "normal"}),
        "REQUEUE",
        300,
    )
    assert high.limits.tres == {LimitKind.GRP_TRES: {"cpu": 64, "mem": 2_048, "gres/gpu:t4": 3}}
    assert high.limits.jobs == {LimitKind.MAX_JOBS_PER_USER: 4}
    assert high.limits.wall == {LimitKind.MAX_WALL: 1_440}


def test_qos_without_priority_is_reported() -> None:
    parsed = limits.QOS_LIMITS.read("high||1.000000|||cluster|||||||||||||||||\n")
    assert parsed.rows == ()
    assert [(line.line, line.why.partition(":")[0]) for line in parsed.unreadable] == [
        (1, "23 cells instead of 25")
    ]


def test_licenses_are_read() -> None:
    text = (
        "LicenseName=matlab Total=20 Used=3 Free=17 Reserved=2 Remote=no\nLicenseName=x Total=1"
        " Used=1 Free=0 Reserved=0 Remote=no\n"
    )
    assert [
        (license.name, license.total, license.free) for license in machine.read_licenses(text).rows
    ] == [("matlab", 20, 15), ("x", 1, 0)]
    assert machine.read_licenses("No licenses configured in Slurm.\n").rows == ()
