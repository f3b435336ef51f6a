"""Job description for the price of a job: options of sbatch and #SBATCH lines.

See sbatch(1) for their meaning. A range of nodes counts as its upper end. Of the other options
some may change the price and some are harmless; an unknown option is taken to change the price.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairbank.cli.framework.options import add_clusters, add_option
from fairbank.cli.framework.parser import Parser
from fairbank.core.gres import GPU, Gres, gres_counts
from fairbank.core.submission.options import options_by_flag, read_values
from fairbank.core.submission.resources import node_range, requested_tasks
from fairbank.core.submission.script import parse_script
from fairbank.core.submission.values import TaskLayout

# Options that change the price, by what they make a job hold beside what is read.
_DEARER = {
    "all of each node": "--core-spec --thread-spec",
    "more cores": "--ntasks-per-gpu --ntasks-per-core --ntasks-per-socket --cpus-per-gpu --mincpus"
    " --extra-node-info --sockets-per-node --cores-per-socket --threads-per-core --hint",
    "more GPUs": "--gpus-per-socket",
    "more of each": "--tres-per-task",
    "more nodes": "--nodelist --nodefile --spread-job",
    "licenses": "--licenses",
    "burst buffers": "--bb --bbf",
    "": "--reboot --wait-all-nodes",  # time of nodes, perhaps
    "the parts beyond the first": "hetjob packjob",
}
DEARER = {name: effect for effect, names in _DEARER.items() for name in names.split()}
_PLACE = "account partition reservation clusters qos time".split()
_RESOURCES = (
    "nodes ntasks ntasks-per-node cpus-per-task exclusive mem mem-per-cpu mem-per-gpu gpus"
    " gpus-per-node gpus-per-task gres array overcommit".split()
)


def add_job_options(parser: Parser) -> None:
    """Add the options of sbatch that set the price, with its short names."""
    group = parser.add_argument_group("The job, as for sbatch")
    add_option(group, "-A, --account PROJECT", "who pays")
    about = "or several, with commas (default: that of the cluster, if it has one)"
    add_option(group, "-p, --partition NAME", about)
    add_option(group, "--reservation NAME")
    add_clusters(group, "which cluster (default: the bank's only one)")
    add_option(group, "-q, --qos NAME")
    add_option(group, "-t, --time LIMIT", "minutes, h:mm:ss or d-hh:mm:ss")
    add_option(group, "-N, --nodes N")
    add_option(group, "-n, --ntasks N")
    add_option(group, "--ntasks-per-node, --tasks-per-node N")
    add_option(group, "-c, --cpus-per-task N")
    exclusive = {"action": "store_const", "const": "exclusive"}
    add_option(group, "--exclusive", "whole nodes", **exclusive)
    add_option(group, "--mem SIZE", "for each node: 16G, 4000M; 0: all of it")
    add_option(group, "--mem-per-cpu SIZE")
    add_option(group, "--mem-per-gpu SIZE")
    add_option(group, "-G, --gpus [TYPE:]N")
    add_option(group, "--gpus-per-node [TYPE:]N")
    add_option(group, "--gpus-per-task [TYPE:]N")
    add_option(group, "--gres NAME[:TYPE][:N]", "for each node")
    add_option(group, "-a, --array RANGE")
    parser.set_defaults(overcommit=None)


def read_script(lines: Iterable[str]) -> tuple[Namespace, list[str]]:
    """Return the options of the #SBATCH lines, and the ignored ones that may change the price.

    Of a heterogeneous job the first part is read. Raises InvalidInput, naming the line or option.
    """
    given, next_part, _ = parse_script(lines, field="JOBFILE")
    options = Namespace(**dict.fromkeys(map(_field, _PLACE + _RESOURCES)))
    unread = []
    for option, flag, text in given:
        if option is not None and hasattr(options, _field(option.name)):
            setattr(options, _field(option.name), text)
        elif flag.startswith("-") and (option is None or option.flag in DEARER):
            unread.append(flag)
    return options, [*unread, next_part] if next_part else unread


def _field(name: str) -> str:
    """Return the field of the parsed options that has the value of an option."""
    return "cluster" if name == "clusters" else name.replace("-", "_")


def describe_unread(unread: Iterable[str]) -> str:
    """Return the options with what they add, if known."""
    options = options_by_flag("sbatch")
    names = {flag: options[flag].flag if flag in options else flag for flag in unread}
    about = {flag: DEARER.get(name) for flag, name in sorted(names.items())}
    return ", ".join(f"{name} ({what})" if what else name for name, what in about.items())


class JobDescription(NamedTuple):
    """Requested resources as fields of `POST /quote`, notes on them, and tasks of an array.

    The layout is that of one job. `node_requests` is what a single node must have, by option, and
    `max_nodes` the upper end of --nodes.
    """

    tres: str
    layout: TaskLayout
    doubts: list[str]
    array_tasks: int
    node_requests: dict[str, str]
    max_nodes: int | None


def describe_job(options: Namespace) -> JobDescription:
    """Return the requested resources. Raises InvalidInput, naming the option."""
    texts = {name: getattr(options, _field(name)) for name in _RESOURCES}
    job = read_values({name: text for name, text in texts.items() if text is not None}, "sbatch")
    per_node, tasks, range_ = job.get("ntasks-per-node"), requested_tasks(job), node_range(job)
    nodes = range_.most or range_.least
    tasks = tasks or nodes * (per_node or 1)
    cpus_per_task = job.get("cpus-per-task", 1)
    exclusive, overcommit = job.get("exclusive") == "exclusive", "overcommit" in job
    cpus = tasks * cpus_per_task
    counts = {"cpu": cpus, "node": nodes, **_gres_counts(job, nodes, tasks)}
    doubts = []
    most_cpus = nodes * (per_node or 1) * cpus_per_task
    if per_node and tasks > 1 and most_cpus > cpus and not exclusive:
        doubts.append(
            f"Slurm before 24.05 takes {most_cpus} cores: those of --ntasks-per-node on each node"
        )
    return JobDescription(
        tres=_tres_text(counts),
        layout=TaskLayout(exclusive, _memory(job), tasks, per_node, cpus_per_task),
        doubts=doubts,
        array_tasks=len(job["array"].numbers) if job.get("array") else 1,
        node_requests=_node_requests(job, cpus_per_task, min(tasks, per_node or 1)),
        # Tasks that share CPUs may all run on the nodes that are there.
        max_nodes=job["nodes"].most if "nodes" in job and not overcommit else None,
    )


def _tres_text(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _node_requests(
    job: Mapping[str, Any], cpus_per_task: int, tasks_per_node: int
) -> dict[str, str]:
    """Return the TRES that a single node must have, by the option that requests them.

    Args:
        job: values of its options.
        cpus_per_task: CPUs of a task, which are on one node.
        tasks_per_node: tasks that are on one node in any case.
    """
    requests: dict[str, dict[str, int]] = {}
    if "cpus-per-task" in job:
        requests["--cpus-per-task"] = {"cpu": cpus_per_task}
    if "ntasks-per-node" in job and "overcommit" not in job:
        requests["--ntasks-per-node"] = {"cpu": cpus_per_task * tasks_per_node}
    for name in ("gpus-per-node", "gpus-per-task"):
        if name in job:
            requests[f"--{name}"] = gres_counts(job[name])
    if "gpus" in job:  # on as many nodes as it takes, each with one or more
        requests["--gpus"] = dict.fromkeys(gres_counts(job["gpus"]), 1)
    by_gpus = any(name in job for name in ("gpus", "gpus-per-node", "gpus-per-task"))
    listed: list[Gres] = job.get("gres", [])
    requests["--gres"] = gres_counts(g for g in listed if not (by_gpus and g.name == GPU))
    return {option: _tres_text(counts) for option, counts in requests.items() if counts}


def _memory(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the field with the requested memory; of several options the first of these counts."""
    for name in ("mem-per-cpu", "mem-per-gpu", "mem"):
        if name in job:
            return {_field(name): f"{job[name]}M"}
    return {}


def _gres_counts(job: Mapping[str, Any], nodes: int, tasks: int) -> dict[str, int]:
    """Return the totals of GPUs and other generic resources, by name and by type."""
    totals: dict[str, int] = {}
    by_gres: list[Gres] = job.get("gres", [])
    for name, times in (("gpus", 1), ("gpus-per-node", nodes), ("gpus-per-task", tasks)):
        if name in job:
            totals = gres_counts(job[name], times)
            # sbatch takes the total before the parts.
            by_gres = [gres for gres in by_gres if gres.name != GPU]
            break
    return totals | gres_counts(by_gres, nodes)
