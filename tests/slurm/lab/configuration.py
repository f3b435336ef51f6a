"""Texts of a cluster's configuration, as functions of its place and machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.slurm.lab.machine import NodeGroup, node_names
from tests.slurm.lab.packages import slurm_plugins
from tests.slurm.lab.place import Place

CLUSTER, DATABASE = "lab", "slurm_acct_db"
NODE_TIMEOUT = (
    15  # seconds after which a slurmd without an answer is down and its jobs end as NODE_FAIL
)

# Settings that do not depend on the place. Tests change them by name; a repeated name would make
# every command print a warning.
SETTINGS: Mapping[str, str] = {
    "ClusterName": CLUSTER,
    "SlurmUser": "slurm",
    "AuthType": "auth/munge",
    "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
    "DebugFlags": "NO_CONF_HASH",
    "MpiDefault": "none",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobAcctGatherFrequency": "5",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "GresTypes": "gpu",
    "SlurmdParameters": "config_overrides",
    "ReturnToService": "2",
    "SlurmdTimeout": str(NODE_TIMEOUT),
    "KillWait": "2",
    "MinJobAge": "300",
    "MaxArraySize": "20001",
    "MaxJobCount": "50000",
    "MailProg": "/bin/true",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": (
        "batch_sched_delay=0,bf_interval=5,bf_continue,default_queue_depth=1000,"
        "sched_min_interval=2000"
    ),
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageEnforce": "associations,limits,qos",
    "AccountingStorageTRES": "gres/gpu",
    "AccountingStoreFlags": "job_comment",
    "PriorityType": "priority/multifactor",
    "PriorityFlags": "MAX_TRES",
    "PriorityCalcPeriod": "1",
    "PriorityDecayHalfLife": "7-0",
    "PriorityMaxAge": "7-0",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "100000",
    "PriorityWeightJobSize": "1000",
    "PriorityWeightPartition": "1000",
    "PriorityWeightQOS": "1000",
    "LogTimeFormat": "iso8601_ms",
}


def slurm_conf(place: Place, machine: Sequence[NodeGroup], changes: Mapping[str, str]) -> str:
    """Return slurm.conf, with some settings changed or added. An empty text removes the setting."""
    settings = {**SETTINGS, **_places(place), **changes}
    lines = [f"{name}={value}" for name, value in settings.items() if value]
    return _text([*lines, *_nodes(place, machine), *_partitions(machine)])


def gres_conf(place: Place, machine: Sequence[NodeGroup]) -> str:
    """Return gres.conf: files that represent GPUs."""
    return _text(
        f"NodeName={','.join(group.nodes)} Name=gpu Type={group.gpu_kind}"
        f" File={place.gpus}/[0-{group.gpus - 1}]"
        for group in machine
        if group.gpus
    )


def cgroup_conf(release: tuple[int, int]) -> str:
    """Return cgroup.conf, with which no cgroup tree is needed: slurmd ends at once if it has to
    find out the version of one. 24.05 and newer can disable cgroups. Before, the plug-in of the
    first version loads without a tree, and none of our settings uses it.
    """
    return _text([f"CgroupPlugin={'disabled' if release >= (24, 5) else 'cgroup/v1'}"])


def slurmdbd_conf(place: Place) -> str:
    """Return slurmdbd.conf. MariaDB is reached through its socket (MYSQL_UNIX_PORT) as the user
    slurm without a password.
    """
    return _text(
        [
            "DbdHost=localhost",
            f"DbdPort={place.database_port}",
            "SlurmUser=slurm",
            "AuthType=auth/munge",
            f"AuthInfo=socket={place.munge}/socket",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=slurm",
            f"StorageLoc={DATABASE}",
            "DebugLevel=info",
            f"LogFile={place.logs}/slurmdbd.log",
            f"PidFile={place.state}/slurmdbd.pid",
        ]
    )


def _places(place: Place) -> dict[str, str]:
    return {
        "AuthInfo": f"socket={place.munge}/socket",
        "SlurmctldHost": f"{place.host}({place.address})",
        "SlurmctldPort": str(place.controller_port),
        "AccountingStorageHost": "localhost",
        # for slurmdbd, Slurm reads munge's socket here and not in AuthInfo
        "AccountingStoragePass": f"{place.munge}/socket",
        "AccountingStoragePort": str(place.database_port),
        "PluginDir": f"{slurm_plugins()}:{place.plugins}",
        "StateSaveLocation": str(place.state),
        "SlurmctldPidFile": f"{place.state}/slurmctld.pid",
        "SlurmctldLogFile": f"{place.logs}/slurmctld.log",
        "SlurmdSpoolDir": f"{place.spool}/%n",
        "SlurmdPidFile": f"{place.spool}/%n.pid",
        "SlurmdLogFile": f"{place.logs}/slurmd-%n.log",
    }


def _nodes(place: Place, machine: Sequence[NodeGroup]) -> Iterator[str]:
    numbers = {name: number for number, name in enumerate(node_names(machine))}
    for group in machine:
        gres = f" Gres=gpu:{group.gpu_kind}:{group.gpus}" if group.gpus else ""
        size = (
            f"CPUs={group.cpus} Sockets=2 CoresPerSocket={group.cpus // 2} ThreadsPerCore=1"
            f" RealMemory={group.memory}"
        )
        for name in group.nodes:
            address = (
                f"NodeHostname={place.host} NodeAddr={place.address}"
                f" Port={place.node_port(numbers[name])}"
            )
            yield f"NodeName={name} {address} {size}{gres} State=UNKNOWN"


def _partitions(machine: Sequence[NodeGroup]) -> Iterator[str]:
    limits = "DefaultTime=30 MaxTime=7-0 DefMemPerCPU=1000"
    for number, group in enumerate(machine):
        default = "NO" if number else "YES"
        weights = f'TRESBillingWeights="{group.weights}"'
        yield (
            f"PartitionName={group.partition} Nodes={','.join(group.nodes)} Default={default}"
            f" State=UP {limits} {weights}"
        )


def _text(lines: Iterator[str] | list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
