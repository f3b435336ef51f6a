"""Job description for sbatch: command line options and #SBATCH lines, as far as they set the price.

See sbatch(1) for their meaning. A range of nodes counts as its upper end. Of the other options
some may change the price and some are harmless; an unknown option is taken to change the price.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from fairbank.cli.framework.options import add_clusters, add_option
from fairbank.cli.framework.parser import Parser
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, gres_counts, parse_gpus, parse_gres
from fairbank.core.slurm_numbers import parse_array
from fairbank.core.tres import parse_memory

if TYPE_CHECKING:
    from argparse import Namespace

SCRIPT_MAX_LINES = 10_000
_MARK = "#SBATCH"

_NEXT_PART = ["hetjob"], ["packjob"]
_SHARED = frozenset(f"--exclusive={word}" for word in ("user", "mcs", "topo"))
"""Options that keep others away from the nodes, but take no more of them."""


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
    "the parts beyond the first": "hetjob packjob",
}
DEARER = {name: effect for effect, names in _DEARER.items() for name in names.split()}
_SHORT = {
    "-S": "--core-spec",
    "-B": "--extra-node-info",
    "-w": "--nodelist",
    "-F": "--nodefile",
    "-L": "--licenses",
}
_OVERCOMMIT = frozenset({"-O", "--overcommit"})
_HARMLESS = frozenset(
    "-J --job-name -o --output -e --error -i --input --mail-type --mail-user -D --chdir --export"
    " --export-file --comment -d --dependency -b --begin --deadline --delay-boot --requeue"
    " --no-requeue --signal --open-mode -C --constraint --prefer --cluster-constraint -x --exclude"
    " --nice --priority --parsable -H --hold -Q --quiet -v --verbose -W --wait --test-only"
    " --reservation --wckey --tmp --mem-bind --tres-bind --gpu-bind --gpu-freq --cpu-freq -m"
    " --distribution --contiguous --switches --use-min-nodes -s --oversubscribe -O --overcommit"
    " --gres-flags --profile --acctg-freq --power --time-min --get-user-env --propagate -k"
    " --no-kill --ignore-pbs --kill-on-invalid-dep --mcs-label --container --container-id --network"
    " --uid --gid --wrap --extra --x11".split()
)


def add_job_options(parser: Parser) -> None:
    """Add the options of sbatch that set the price, with its short names."""
    group = parser.add_argument_group("The job, as for sbatch")
    add_option(group, "-A, --account PROJECT", "who pays")
    about = "or several, with commas (default: that of the cluster, if it has one)"
    add_option(group, "-p, --partition NAME", about)
    add_clusters(group, "which cluster (default: the bank's only one)")
    add_option(group, "-q, --qos NAME")
    add_option(group, "-t, --time LIMIT", "minutes, h:mm:ss or d-hh:mm:ss")
    add_option(group, "-N, --nodes N")
    add_option(group, "-n, --ntasks N")
    add_option(group, "--ntasks-per-node, --tasks-per-node N")
    add_option(group, "-c, --cpus-per-task N")
    add_option(group, "--exclusive", "whole nodes", action="store_true", default=None)
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

    Of a heterogeneous job the first part is read. Raises InvalidInput, naming the line.
    """
    words: list[str] = []
    others: list[str] = []
    for number, line in enumerate(lines, 1):
        if number > SCRIPT_MAX_LINES:
            break
        if line.startswith(_MARK):
            try:
                line_words = shlex.split(line[len(_MARK) :], comments=True)
            except ValueError as bad:
                raise InvalidInput(
                    f"line {number} cannot be read: {bad}",
                    field="JOBFILE",
                    remedy="close the quotes",
                ) from bad
            if line_words in _NEXT_PART:
                others = line_words
                break
            words += (word for word in line_words if word not in _SHARED)
        elif line.strip() and not line.startswith("#"):
            break
    parser = Parser("#SBATCH", "")
    add_job_options(parser)
    options, rest = parser.parse_known_args(words)
    options.overcommit = not _OVERCOMMIT.isdisjoint(rest) or None
    return options, [*unread_options(rest), *others]


def unread_options(words: Iterable[str]) -> list[str]:
    """Return the options of a script that may change the price, as they were written."""
    flags = [word.partition("=")[0] for word in words if word.startswith("-")]
    named = [word if word.startswith("--") else word[:2] for word in flags]
    return [name for name in named if name not in _HARMLESS]


def describe_unread(unread: Iterable[str]) -> str:
    """Return the options with what they add, if known."""
    about = {name: DEARER.get(_SHORT.get(name, name)) for name in sorted(set(unread))}
    return ", ".join(f"{name} ({what})" if what else name for name, what in about.items())


class JobDescription(NamedTuple):
    """Requested resources as fields of `POST /quote`, notes on them, and tasks of an array.

    `memory` is one of the fields `mem`, `mem_per_cpu` and `mem_per_gpu`, or empty. `tasks` are
    those of one job, on at most so many for each node, and with so many CPUs each. `node_requests`
    is what a single node must have, by option, and `max_nodes` the upper end of --nodes.
    """

    tres: str
    exclusive: bool
    memory: dict[str, str]
    doubts: list[str]
    array_tasks: int
    tasks: int
    tasks_per_node: int | None
    cpus_per_task: int
    node_requests: dict[str, str]
    max_nodes: int | None


def describe_job(options: Namespace) -> JobDescription:
    """Return the requested resources. Raises InvalidInput, naming the option."""
    per_node = _count(options.ntasks_per_node, "--ntasks-per-node")
    given_tasks = _given_tasks(options)
    nodes = _nodes(options, given_tasks, per_node)
    tasks = given_tasks or nodes * (per_node or 1)
    cpus_per_task = _count(options.cpus_per_task, "--cpus-per-task") or 1
    cpus = tasks * cpus_per_task
    counts = {"cpu": cpus, "node": nodes, **_gres_counts(options, nodes, tasks)}
    doubts = []
    most_cpus = nodes * (per_node or 1) * cpus_per_task
    if per_node and tasks > 1 and most_cpus > cpus and not options.exclusive:
        doubts.append(
            f"Slurm before 24.05 takes {most_cpus} cores: those of --ntasks-per-node on each node"
        )
    return JobDescription(
        tres=_tres_text(counts),
        exclusive=bool(options.exclusive),
        memory=_memory(options),
        doubts=doubts,
        array_tasks=_array_tasks(options.array) if options.array is not None else 1,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=cpus_per_task,
        node_requests=_node_requests(options, cpus_per_task, min(tasks, per_node or 1)),
        # Tasks that share CPUs may all run on the nodes that are there.
        max_nodes=None if options.overcommit else _count(options.nodes, "--nodes"),
    )


def _tres_text(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _node_requests(options: Namespace, cpus_per_task: int, tasks_per_node: int) -> dict[str, str]:
    """Return the TRES that a single node must have, by the option that requests them.

    Args:
        options: the job.
        cpus_per_task: CPUs of a task, which are on one node.
        tasks_per_node: tasks that are on one node in any case.
    """
    requests: dict[str, dict[str, int]] = {}
    if options.cpus_per_task is not None:
        requests["--cpus-per-task"] = {"cpu": cpus_per_task}
    if options.ntasks_per_node is not None and not options.overcommit:
        requests["--ntasks-per-node"] = {"cpu": cpus_per_task * tasks_per_node}
    for option, text in (
        ("--gpus-per-node", options.gpus_per_node),
        ("--gpus-per-task", options.gpus_per_task),
    ):
        if text is not None:
            requests[option] = gres_counts(parse_gpus(text, field=option))
    if options.gpus is not None:  # on as many nodes as it takes, each with one or more
        gpus = gres_counts(parse_gpus(options.gpus, field="--gpus"))
        requests["--gpus"] = dict.fromkeys(gpus, 1)
    if options.gres not in (None, "none"):
        by_gpus = any((options.gpus, options.gpus_per_node, options.gpus_per_task))
        listed = parse_gres(options.gres, field="--gres")
        requests["--gres"] = gres_counts(g for g in listed if not (by_gpus and g.name == GPU))
    return {option: _tres_text(counts) for option, counts in requests.items() if counts}


def _given_tasks(options: Namespace) -> int | None:
    """Return the tasks that --ntasks, or --gpus with --gpus-per-task, requests."""
    tasks = _count(options.ntasks, "--ntasks")
    gpus, per_task = _gpus(options.gpus, "--gpus"), _gpus(options.gpus_per_task, "--gpus-per-task")
    return tasks or (-(-gpus // per_task) if gpus and per_task else None)


def _nodes(options: Namespace, tasks: int | None, tasks_per_node: int | None) -> int:
    """Return the number of nodes, as sbatch derives it from the counts for each node."""
    nodes = _count(options.nodes, "--nodes")
    if nodes and tasks:
        nodes = min(nodes, tasks)  # sbatch: can't run 2 processes on 4 nodes, setting nnodes to 2
    gpus, per_node = _gpus(options.gpus, "--gpus"), _gpus(options.gpus_per_node, "--gpus-per-node")
    by_tasks = -(-tasks // tasks_per_node) if tasks and tasks_per_node else 1
    return max(nodes or 1, by_tasks, -(-gpus // per_node) if gpus and per_node else 1)


def _gpus(text: str | None, option: str) -> int:
    return sum(gres.number for gres in parse_gpus(text, field=option)) if text is not None else 0


def _array_tasks(text: str) -> int:
    remedy = "write numbers and ranges, such as 1,5-8, 0-15:4 or 1-100%10"
    return len(set(chain.from_iterable(parse_array(text, field="--array", remedy=remedy))))


_COUNT = re.compile(r"(?:\d{1,9}-)?(\d{1,9})", re.ASCII)


def _count(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    match = _COUNT.fullmatch(text)
    if text.isascii() and text.isdigit() and len(text) > 9:
        raise InvalidInput(
            f"{text[:40]} is more than any cluster has", field=option, remedy=f"at most {10**9 - 1}"
        )
    if match is None or int(match[1]) == 0:
        raise InvalidInput(
            f"{text[:40]!r} is not a number of anything",
            field=option,
            remedy="write a whole number from 1 on",
        )
    return int(match[1])


def _memory(options: Namespace) -> dict[str, str]:
    """Return the field with the requested memory; of several options the first of these counts."""
    for option, text in (
        ("--mem-per-cpu", options.mem_per_cpu),
        ("--mem-per-gpu", options.mem_per_gpu),
        ("--mem", options.mem),
    ):
        if text is not None:
            size = parse_memory(text, field=option)
            return {option.removeprefix("--").replace("-", "_"): f"{size}M"}
    return {}


def _gres_counts(options: Namespace, nodes: int, tasks: int) -> dict[str, int]:
    """Return the totals of GPUs and other generic resources, by name and by type."""
    totals: dict[str, int] = {}
    by_gres = [] if options.gres in (None, "none") else parse_gres(options.gres, field="--gres")
    for option, text, times in (
        ("--gpus", options.gpus, 1),
        ("--gpus-per-node", options.gpus_per_node, nodes),
        ("--gpus-per-task", options.gpus_per_task, tasks),
    ):
        if text is not None:
            totals = gres_counts(parse_gpus(text, field=option), times)
            # sbatch takes the total before the parts.
            by_gres = [gres for gres in by_gres if gres.name != GPU]
            break
    return totals | gres_counts(by_gres, nodes)
