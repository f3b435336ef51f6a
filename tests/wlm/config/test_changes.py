"""Changes of a configuration: what may change while jobs run, and the file of `cluster up`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.wlm.config.comparison import Comparison, InUse, compare
from fairbank.wlm.config.default_file import MachineSize, default_file
from tests.wlm.config.files import CONF, MACHINE, MACHINE_TOML, conf, conf_error, toml

IN_USE = InUse({"n2": 3}, {"n2": 800}, frozenset({"main"}))


def changed(old: str, new: str) -> Comparison:
    return compare(conf(old), conf(new), IN_USE)


def test_equal_settings_change_nothing() -> None:
    assert changed(MACHINE, f"# new\n{MACHINE}") == ([], "", [], [], [])


def test_limits_partitions_and_free_nodes_change_while_jobs_run() -> None:
    new = (
        "KillWait=3\nSchedulerParameters=bf_window=60\nPriorityFlags=MAX_TRES\n"
        "NodeName=n1 CPUs=1\nNodeName=n2 CPUs=3 RealMemory=800 State=DOWN\nNodeName=n[4-6] CPUs=4\n"
        "PartitionName=main Nodes=n1 MaxTime=10\nPartitionName=new Nodes=ALL\n"
    )
    assert changed(MACHINE, new) == Comparison(
        keywords=["SchedulerParameters", "PriorityFlags", "KillWait"],
        nodes="n[1-6]",
        partitions=["main", "new"],
        refused=[],
        later=[
            "KillWait changes when the node daemons are started again",
            "n[1-2,4-6] changes when the node daemons are started again",
        ],
    )


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("CPUs=4", "CPUs=2", "node n2 cannot have 2 CPUs: its jobs have 3"),
        ("RealMemory=1000", "RealMemory=500", "node n2 cannot have 500 MiB: its jobs have 800"),
        ("CPUs=4", "CPUs=4 ThreadsPerCore=2", "node n2 cannot change ThreadsPerCore: it has jobs"),
        ("n[1-4]", "n[3-6]", "node n2 cannot be removed: it has jobs"),
        ("=main", "=other", "partition main cannot be removed: it has jobs"),
        (
            "NodeName",
            "ClusterName=b\nNodeName",
            "ClusterName cannot change while the controller runs: stop it first",
        ),
    ],
    ids=["CPUs", "memory", "threads", "node", "partition", "cluster"],
)
def test_change_against_running_jobs_is_refused_by_name(old: str, new: str, refused: str) -> None:
    assert changed(MACHINE, MACHINE.replace(old, new)).refused == [refused]


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("gpu:t4:2", "gpu:t4:2", []),
        ("gpu:t4:2", "gpu:t4:4", ["node n2 cannot change Gres: its jobs have GPUs"]),
        ("gpu:t4:2", "gpu:a100:2", ["node n2 cannot change Gres: its jobs have GPUs"]),
        ("gpu:t4:1", "gpu:t4:1", ["node n2 cannot have 1 GPUs: its jobs have 2"]),
    ],
)
@pytest.mark.parametrize("actual", [True, False])
def test_gpus_of_a_node_with_jobs_that_have_some_stay(
    old: str, new: str, refused: list[str], actual: bool
) -> None:
    table = f'[scheduling]\nnode_resources = "{"actual" if actual else "configured"}"\n'
    before, after = (
        toml(table + MACHINE_TOML.replace("cpus = 4", f'cpus = 4\ngres = "{gres}"'))
        for gres in (old, new)
    )
    assert compare(before, after, InUse({"n2": 1}, gpus={"n2": 2})).refused == refused


def test_link_to_the_bank_cannot_change_while_the_controller_runs() -> None:
    size = MachineSize(16, 64_000)
    old, new = (
        toml(default_file("ws17", size)),
        toml(default_file("ws17", size, agent="/run/a", bank="/run/b")),
    )
    fault = "{} cannot change while the controller runs: stop it first"
    assert compare(old, new, InUse()).refused == [fault.format(key) for key in ("agent", "server")]


def test_file_with_one_fault_changes_nothing() -> None:
    """Settings are one value: with a fault there are none."""
    bad = conf_error(f"KillWait=3\n{MACHINE}PartitionName=late Nodes=n1 MaxTime=never\n")
    assert bad.message.startswith(f"{CONF}, line 4, MaxTime: 'never' is not")


def test_file_of_one_machine_has_all_of_it() -> None:
    settings = toml(
        default_file("ws17", MachineSize(16, 64_000, 2, 2), agent="/run/a", bank="/run/b")
    )
    (node,), (main,) = settings.nodes, settings.partitions
    assert (node.name, node.cpus, node.threads, node.memory) == ("ws17", 16, 2, 64_000)
    assert (main.name, main.is_default, main.memory_per_cpu) == ("main", True, 4_000)
    assert (main.default_seconds, main.max_seconds) == (86_400, 30 * 86_400)
    assert settings.cluster.cluster_name == "ws17"
    assert settings.scheduling.affinity
    assert settings.bank.socket == "/run/a"
    weights = settings.priority.factors.weights
    assert settings.priority.by_factors
    assert min(weights.age, weights.fairshare) > 0


def test_jobs_are_not_bound_to_cpus_that_the_host_has_not() -> None:
    size = MachineSize(64, 1_000, is_real=False)
    assert not toml(default_file("ws17", size)).scheduling.affinity


def test_file_with_a_bank_has_its_accounts_and_no_other() -> None:
    text = default_file("ws17", MachineSize(2, 1_000), agent="/run/a", bank="/run/b")
    settings = toml(text)
    assert settings.bank.server == "/run/b"
    assert settings.accounting.needs_association
    assert not settings.accounting.associations


def test_file_without_bank_asks_for_no_verdict() -> None:
    assert toml(default_file("ws17", MachineSize(2, 1_000))).bank.socket == ""


@given(
    cores=st.integers(1, 512),
    threads=st.integers(1, 8),
    sockets=st.integers(1, 8),
    memory=st.integers(1, 10**7),
    nodes=st.integers(1, 1_000),
)
def test_virtual_nodes_share_the_machine(
    cores: int, threads: int, sockets: int, memory: int, nodes: int
) -> None:
    size = MachineSize(cores * threads, memory, sockets, threads)
    settings = toml(default_file("host", size, nodes=nodes))
    assert len(settings.nodes) == nodes
    node = settings.nodes[0]
    # Without a core for each, jobs of several nodes run on the same one, and nothing is bound.
    assert settings.scheduling.affinity is (cores >= nodes)
    assert node.cpus == (size.cpus if nodes == 1 else max(cores // nodes, 1) * node.threads)
    assert node.threads == (threads if cores >= nodes else 1)
    assert node.memory == max(memory // nodes, 1)
    assert settings.partitions[0].memory_per_cpu == max(node.memory // node.cpus, 1)
