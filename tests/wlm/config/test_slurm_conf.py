"""Syntax of slurm.conf: DEFAULT lines, included files, the sample of the SLURM 2002 report."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.cluster.node import NodeState
from fairbank.cluster.partition_rules import OverSubscribe, PartitionState
from fairbank.wlm.config.slurm_conf import FILES_MAX
from tests.wlm.config.files import CONF, MACHINE, TOML, conf, conf_error, error, load

SAMPLE = (Path(__file__).parent / "slurm-2002.conf").read_text()


def test_sample_of_the_2002_report_is_read() -> None:
    settings, notes = load(CONF, {CONF: SAMPLE})
    assert notes == (
        f"{CONF}, line 3, BackupController has no effect: backup controllers are not built yet",
    )
    nodes = {node.name: node for node in settings.nodes}
    assert len(nodes) == 9_999
    assert nodes["lx0002"].state is NodeState.DRAINED
    assert (nodes["lx8000"].cpus, nodes["lx8000"].memory, nodes["lx8000"].weight) == (16, 2048, 16)
    assert nodes["lx8001"].features == {"1200MHz"}
    login, debug, teaching, batch = settings.partitions
    assert login.state is PartitionState.DOWN
    assert debug.is_default
    assert teaching.groups is not None
    assert teaching.groups.names == ("students", "teachers")
    assert (len(batch.nodes), batch.max_seconds, batch.max_nodes) == (9_959, None, 4096)
    assert batch.root_only
    assert settings.cluster.slurmctld_host == ("lx0001",)


def test_one_line_of_the_2002_report_has_512_nodes() -> None:
    nodes = conf(
        "NodeName=linux[001-512] CPUs=4 RealMemory=1024 TmpDisk=4096 Weight=4 Feature=Linux\n"
        "PartitionName=p Nodes=ALL\n"
    ).nodes
    assert [nodes[0].name, nodes[-1].name, len(nodes)] == ["linux001", "linux512", 512]
    assert {(node.cpus, node.memory, node.tmp, node.weight) for node in nodes} == {
        (4, 1_024, 4_096, 4)
    }
    assert {node.features for node in nodes} == {frozenset({"Linux"})}


def test_default_lines_of_the_2002_report_hold() -> None:
    lines = SAMPLE.replace("# NodeName", "NodeName").replace("# PartitionName", "PartitionName")
    settings = conf(lines)
    assert {node.tmp for node in settings.nodes} == {16_384}
    debug, batch = settings.partitions[1], settings.partitions[3]
    assert (debug.max_seconds, debug.max_nodes) == (1_800, 2)
    assert (batch.max_seconds, batch.max_nodes) == (None, 4096)


def test_default_lines_hold_from_there_on() -> None:
    settings = conf(
        "NodeName=a\n"
        "NodeName=DEFAULT CPUs=4 RealMemory=100\n"
        "NodeName=b\n"
        "NodeName=default CPUs=8\n"
        "NodeName=c\n"
        "NodeName=d CPUs=2\n"
        "PartitionName=DEFAULT Nodes=ALL OverSubscribe=EXCLUSIVE DefMemPerCPU=10\n"
        "PartitionName=p\n"
        "PartitionName=q DefMemPerNode=20 Nodes=a\n"
    )
    assert [(node.cpus, node.memory) for node in settings.nodes] == [
        (1, 1), (4, 100), (8, 100), (2, 100),
    ]  # fmt: skip
    first, second = settings.partitions
    assert first.sharing is OverSubscribe.EXCLUSIVE
    assert (first.memory_per_cpu, first.memory_per_node) == (10, None)
    assert (second.memory_per_cpu, second.memory_per_node) == (None, 20)


def test_memory_of_the_cluster_is_that_of_partitions_without_their_own() -> None:
    settings = conf(
        f"DefMemPerCPU=5\nMaxMemPerNode=50\n{MACHINE}PartitionName=q Nodes=n1"
        " DefMemPerNode=7 MaxMemPerNode=9\n"
    )
    main, other = settings.partitions
    assert (main.memory_per_cpu, main.max_memory_per_node) == (5, 50)
    assert (other.memory_per_cpu, other.memory_per_node, other.max_memory_per_node) == (None, 7, 9)


def test_cpus_follow_from_sockets_cores_and_threads() -> None:
    settings = conf(
        "NodeName=a Sockets=2 CoresPerSocket=4 ThreadsPerCore=2\n"
        "NodeName=b CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2\n"
        "NodeName=c CPUs=16 Boards=2 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=2\n"
        "NodeName=d CPUs=16 ThreadsPerCore=2\n"
        "NodeName=e CPUs=1 ThreadsPerCore=2\n"
        "PartitionName=p Nodes=ALL\n"
    )
    assert [(node.cpus, node.threads) for node in settings.nodes] == [
        (16, 2), (8, 1), (16, 2), (16, 2), (1, 1),
    ]  # fmt: skip
    by_cpu = conf(
        "SelectTypeParameters=CR_CPU\nNodeName=d CPUs=16 ThreadsPerCore=2\n"
        "PartitionName=p Nodes=ALL\n"
    )
    assert by_cpu.nodes[0].threads == 1


def test_quotes_enclose_a_whole_value() -> None:
    settings = conf(
        'NodeName=a Reason="no fan"\nNodeName=b Reason="no"fan\nPartitionName=p Nodes=a\n'
    )
    assert [node.reason for node in settings.nodes] == ["no fan", '"no"fan']


def test_all_is_no_word_of_a_deny_list() -> None:
    admitted, denied = conf(
        "NodeName=a\nPartitionName=DEFAULT Nodes=ALL\n"
        "PartitionName=p AllowAccounts=all\nPartitionName=q DenyAccounts=ALL\n"
    ).partitions
    assert admitted.accounts is None
    assert denied.accounts is not None
    assert denied.accounts.names == ("ALL",)


def test_included_file_takes_the_place_of_its_line() -> None:
    text = 'NodeName=DEFAULT CPUs=4\nInclude  nodes.conf\nNodeName=b\nPartitionName=p Nodes="a,b"\n'
    settings = conf(text, **{"nodes.conf": "NodeName=a # in a file\nNodeName=DEFAULT CPUs=2\n"})
    assert [node.cpus for node in settings.nodes] == [4, 2]


def test_files_are_named_from_the_directory_of_slurm_conf() -> None:
    files = {
        "etc/wlm.toml": 'slurm_conf = "slurm/slurm.conf"\n[jobs]\nkill_wait = 3\n',
        "etc/slurm/slurm.conf": "include nodes/all.conf\nPartitionName=p Nodes=a\n",
        "etc/slurm/nodes/all.conf": "Include ./nodes/one.conf\n",
        "etc/slurm/nodes/one.conf": "NodeName=a\n",
    }
    settings = load("etc/wlm.toml", files).settings
    assert (settings.jobs.kill_wait, settings.nodes[0].name) == (3, "a")


def test_error_in_an_included_file_names_that_file() -> None:
    bad = conf_error(f"{MACHINE}Include more.conf\n", **{"more.conf": "\n\nKillWait=soon\n"})
    assert bad.message.startswith("more.conf, line 3, KillWait: 'soon' is not a whole number")


@pytest.mark.parametrize(
    ("files", "place", "message"),
    [
        ({CONF: "Include slurm.conf"}, CONF, "is included twice, or includes itself"),
        ({CONF: "Include a", "a": "Include b", "b": "Include x/../a"}, "b", "is included twice"),
        ({CONF: "Include a\nInclude a", "a": ""}, CONF, "is included twice"),
        ({CONF: "Include a"}, CONF, "cannot read 'a': No such file or directory"),
        (
            {CONF: "Include 0", **{f"{n}": f"Include {n + 1}" for n in range(FILES_MAX)}},
            f"{FILES_MAX - 2}",
            f"more than {FILES_MAX} files",
        ),
    ],
    ids=["itself", "circle", "twice", "missing", "too many"],
)
def test_files_that_cannot_be_included_are_refused(
    files: dict[str, str], place: str, message: str
) -> None:
    bad = error(CONF, files)
    assert bad.message.startswith(f"{place}, line ")
    assert message in bad.message
    assert bad.field == "Include"
    assert bad.remedy


def test_keyword_of_both_files_is_given_twice() -> None:
    files = {TOML: f'slurm_conf = "{CONF}"\n[jobs]\nkill_wait = 3\n', CONF: "\nKillWait=3\n"}
    bad = error(TOML, files)
    assert bad.message == (
        f"{CONF}, line 2, KillWait: is given twice, first in {TOML}, line 3 as kill_wait"
    )


def test_second_host_is_added_to_the_first() -> None:
    settings = conf(f"SlurmctldHost=a\nSlurmctldHost=b\n{MACHINE}")
    assert settings.cluster.slurmctld_host == ("a", "b")


def test_several_keywords_that_begin_alike_are_no_repetition() -> None:
    lines = "AccountingStorageHost=db\nAccountingStorageType=accounting_storage/slurmdbd\n"
    _, notes = load(CONF, {CONF: MACHINE + lines})
    assert [note.partition(", ")[2] for note in notes] == [
        "line 3, AccountingStorageHost has no effect",
        "line 4, AccountingStorageType has no effect",
    ]
    again = conf_error(f"{MACHINE}{lines}AccountingStorageHost=other\n")
    assert "AccountingStorageHost: is given twice" in again.message
