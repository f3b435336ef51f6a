"""Text of the wlm.toml that `fairbank cluster up` writes for a machine."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.core.settings_file import toml_string


class MachineSize(NamedTuple):
    """Size of a host: CPUs of all sockets, memory in MiB, sockets, and CPUs of a core.

    `is_real`: it has all of these CPUs, so that jobs can be bound to them. `gpus` has the number of
    each type.
    """

    cpus: int
    memory: int
    sockets: int = 1
    threads: int = 1
    is_real: bool = True
    gpus: tuple[tuple[str, int], ...] = ()


def default_file(
    host: str, size: MachineSize, *, nodes: int = 1, agent: str = "", bank: str = ""
) -> str:
    """Return a wlm.toml for one host.

    Jobs without a request for memory get the part of their CPUs, or the first one would have all
    of it. They have a time limit, because the bank holds credit only for a limit.

    Args:
        host: name of the host, which is the name of the cluster and of its node.
        nodes: number of virtual nodes; with several they have numbers, as in `host-[1-4]`.
        agent: socket of the bank's agent; empty: no bank.
        bank: socket of the bank, which has accounts and users.
    """
    cores = size.cpus // size.threads
    # Virtual nodes have cores of their own if there are enough; else nothing is bound.
    has_own_cores = cores >= nodes
    cpus = cores // nodes * size.threads if has_own_cores else 1
    memory = max(size.memory // nodes, 1)
    names = host if nodes == 1 else f"{host}-[1-{nodes}]"
    lines = [
        "# Settings of the workload manager: docs/reference/wlm-settings.md",
        "",
        "[cluster]",
        f"cluster_name = {toml_string(host)}",
        f"slurmctld_host = {toml_string(host)}",
        "",
        "[scheduling]",
        f"def_mem_per_cpu = {max(memory // cpus, 1)}",
        f'task_plugin = "task/{"affinity" if has_own_cores and size.is_real else "none"}"',
        "",
        "[priority]",
        'priority_type = "priority/multifactor"',
        "priority_weight_age = 1000",
        "priority_weight_fairshare = 10000",
        "",
        "[jobs]",
        "# The job of a salloc or srun that was killed would hold its nodes until its time limit.",
        "inactive_limit = 60",
        "# A job that uses more memory than it has is ended, and no other.",
        'job_acct_gather_params = "OverMemoryKill"',
        "",
        *([bank_table(agent, bank), ""] if agent else []),
        "[[nodes]]",
        f"node_name = {toml_string(names)}",
        f"cpus = {cpus}",
        *_sockets(size, nodes),
        *([f"threads_per_core = {size.threads}"] if has_own_cores else []),
        f"real_memory = {memory}",
        *_gpus(size, nodes),
        "",
        "[[partitions]]",
        'partition_name = "main"',
        'nodes = "ALL"',
        "default = true",
        'default_time = "1-00:00:00"',
        'max_time = "30-00:00:00"',
        'tres_billing_weights = "CPU=1.0"',
    ]
    return "\n".join(lines) + "\n"


def _gpus(size: MachineSize, nodes: int) -> list[str]:
    """Return the GPUs of each node; those of a type that are too few for all have no node."""
    words = [
        ":".join(filter(None, ("gpu", kind, str(count // nodes))))
        for kind, count in size.gpus
        if count // nodes
    ]
    return [f"gres = {toml_string(','.join(words))}"] if words else []


def bank_table(agent: str, bank: str) -> str:
    """Return the table with the sockets of the bank's agent and of the bank."""
    return f"[bank]\nagent = {toml_string(agent)}\nserver = {toml_string(bank)}"


def _sockets(size: MachineSize, nodes: int) -> list[str]:
    """Return the sockets of a host that is one node; their cores may not be the same number."""
    cores, rest = divmod(size.cpus, size.sockets * size.threads)
    if nodes > 1 or rest or not cores:
        return []
    return [f"sockets = {size.sockets}", f"cores_per_socket = {cores}"]
