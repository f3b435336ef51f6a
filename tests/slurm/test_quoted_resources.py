"""Nodes, cores and GPUs of `fairbank quote` beside those that a real Slurm allocates for the same
options. A node of cpu has 64 cores, one of gpu 48 and four GPUs.
"""

from __future__ import annotations

import msgspec
import pytest

from fairbank.cli.commands.bank.job_script import JobDescription, describe_job, read_script
from fairbank.cluster.allocated_tres import NodeSize, allocated_tres
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Partition
from fairbank.core.tres import parse_counts, parse_weights
from fairbank.rest.routes.job import requested_memory
from fairbank.rest.schemas.requests import DescribedJob
from fairbank.slurm.parsers.machine import read_nodes, read_partitions
from fairbank.slurm.reconcile.node_sizes import largest_node
from fairbank.slurm.reconcile.prices import SlurmMachine
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.output_parsers import tres

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

NODES, CPUS, GPUS = "node", "cpu", "gres/gpu"
SAME = {
    "cpu": [
        "",
        "-N2",
        "-N2 -c4",
        "-n8",
        "-n8 -c4",
        "-n5 -N2",
        "-n4 -N6",
        "-n1 -N2",
        "-n2 -N3-5",
        "--ntasks-per-node=4",
        "-N2 --ntasks-per-node=4",
        "-n8 --ntasks-per-node=4",
    ],
    "gpu": [
        "--gpus=2",
        "--gpus=a100:2",
        "-N2 --gpus=4",
        "-n2 --gpus=4",
        "-n2 -N2 --gpus=3",
        "-n4 --gpus=4 --ntasks-per-node=2",
        "--gpus=6 --gpus-per-node=3",
        "--gpus=4 --gpus-per-node=4",
        "--gpus=8 --gpus-per-node=4",
        "--gpus-per-node=2",
        "-N2 --gpus-per-node=a100:2",
        "--gpus-per-node=2 --ntasks-per-node=2",
        "-n8 --gpus-per-node=2 --ntasks-per-node=4",
        "-n2 --gpus-per-task=1",
        "-n2 --gpus-per-task=1 --gpus=2",
        "-n4 --gpus-per-task=a100:1",
        "-n4 -N2 --gpus-per-task=1",
        "-N2 --gpus-per-task=1",
        "-N2 --gpus-per-task=1 --ntasks-per-node=2",
        "--gpus=4 --gpus-per-task=2",
        "--gres=gpu",
        "--gres=gpu:a100",
        "--gres=gpu:3",
        "-N2 --gres=gpu:a100:2",
        "-n2 --gres=gpu:a100:1",
        "-n8 --gres=gpu:2 --ntasks-per-node=4",
        "--gres=gpu:2 --gpus=2",
    ],
}
FEW_TASKS = {
    "cpu": [
        "-n8 --ntasks-per-node=3",
        "-n8 -N4 --ntasks-per-node=4",
        "-n7 -N3 --ntasks-per-node=3",
        "-n3 -N2 --ntasks-per-node=2",
        "-n3 -N2 -c2 --ntasks-per-node=2",
        "-n4 --ntasks-per-node=8",
    ]
}
"""Jobs with fewer tasks than --ntasks-per-node on each of their nodes."""
RANGES = {
    "cpu": ["-N2-4", "-N3-12", "-n2 -N1-4", "-n8 -N2-3", "-n8 -N2-12", "-N2-3 --ntasks-per-node=4"],
    "gpu": ["-N1-2 --gpus-per-node=2", "-n3 -N1-2 --gpus-per-node=2", "-n2 -N1-2 --gres=gpu:a100"],
}
"""The quote counts the upper end; how many nodes of a range Slurm takes depends on those free."""
LARGER = {"cpu": ["-n100", "-n2 -c64", "-n2 -c40"], "gpu": ["--gpus=8", "-n6 --gpus-per-task=1"]}
"""Jobs that fit no single node. The bank does not know the size of nodes."""


def described(options: str) -> JobDescription:
    parsed, unread = read_script([f"#SBATCH {options} --mem=1G"])
    assert unread == []
    return describe_job(parsed)


def quoted(options: str) -> dict[str, int]:
    """Return the counts that the quote prices."""
    return _counts(dict(word.split("=") for word in described(options).tres.split(",")))


def _counts(amounts: dict[str, str]) -> dict[str, int]:
    return {name: int(amounts.get(name, 0)) for name in (NODES, CPUS, GPUS)}


def allocated(slurm: Cluster, requests: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """Run a job with each options, and return what accounting has of it. The jobs of a partition
    run one after the other, so that each finds all nodes free.
    """
    jobs = {
        options: slurm.submit(
            "alice",
            *("--dependency=singleton", f"--job-name={partition}", f"--partition={partition}"),
            *("--time=5", "--mem=1G", *options.split()),
        )
        for partition, every in requests.items()
        for options in every
    }
    counts = {}
    for options, job in jobs.items():
        (row,) = slurm.wait_for_sacct(job, "COMPLETED", seconds=200)
        counts[options] = _counts(tres(row["AllocTRES"]))
    return counts


def test_quote_counts_what_slurm_allocates(slurm: Cluster, record_figure: RecordFigure) -> None:
    counts = allocated(slurm, SAME)
    assert {options: quoted(options) for options in counts} == counts
    record_figure(f"quotes of {len(counts)} combinations of options count as Slurm allocates")


def test_cores_of_few_tasks_are_those_of_newer_slurms_and_noted(slurm: Cluster) -> None:
    for options, counts in allocated(slurm, FEW_TASKS).items():
        (note,) = described(options).doubts
        (most,) = (int(word) for word in note.split() if word.isdigit())
        expected = quoted(options) | ({} if slurm.release >= (24, 5) else {CPUS: most})
        assert counts == expected, options


def test_range_of_nodes_is_quoted_at_its_upper_end(slurm: Cluster) -> None:
    for options, counts in allocated(slurm, RANGES).items():
        quote = quoted(options)
        assert all(counts[name] <= quote[name] for name in counts), (options, counts, quote)


WHOLE = {
    "cpu": [
        "--exclusive",
        "--exclusive -n70",
        "--exclusive --mem=10G",
        "--exclusive --mem-per-cpu=1500M",
        "-N2 --exclusive --mem=0",
        "--mem=0",
        "-n8",
    ],
    "gpu": ["--exclusive", "--exclusive --gpus=2", "-N2 --exclusive --gres=gpu:1", "--gpus=1"],
}


def test_quote_counts_whole_nodes_and_default_memory_as_slurm_does(slurm: Cluster) -> None:
    """The size of nodes and the default memory are those that `slurm import` reads."""
    machine = SlurmMachine(
        cluster="lab",
        partitions=read_partitions(slurm.root("scontrol", "--oneliner", "show", "partition")).rows,
        nodes=read_nodes(slurm.root("scontrol", "--oneliner", "show", "node")).rows,
    )
    for partition in machine.partitions:
        place = Partition(
            partition.name,
            "any",
            parse_weights(partition.weights or "cpu=1"),
            size=largest_node(machine, partition.name) or NodeSize(),
            default_memory=partition.default_memory,
        )
        jobs = {
            options: slurm.submit(
                "alice",
                *("--dependency=singleton", f"--job-name={partition.name}"),
                *(f"--partition={partition.name}", "--time=5", *options.split()),
            )
            for options in WHOLE.get(partition.name, ())
        }
        for options, job in jobs.items():
            (row,) = slurm.wait_for_sacct(job, "COMPLETED", seconds=200)
            taken = parse_counts(row["AllocTRES"])
            taken.pop("billing")
            # Accounting counts types only if AccountingStorageTRES lists them.
            quoted_counts = {
                name: count
                for name, count in allocated_tres(requested(options), place).items()
                if ":" not in name
            }
            assert quoted_counts == taken, options


def requested(options: str) -> JobRequest:
    """Return the job as `POST /quote` gets it."""
    parsed, _ = read_script([f"#SBATCH {options}"])
    job = describe_job(parsed)
    fields = {"account": "a", "time_limit": 1, "tres": job.tres, **job.layout.memory}
    body = msgspec.convert(fields, DescribedJob)
    counts = parse_counts(job.tres)
    return JobRequest(
        "lab", "", counts, 300, None, job.layout.exclusive, requested_memory(body, counts)
    )


def test_job_larger_than_a_node_is_quoted_with_its_cores_and_gpus(slurm: Cluster) -> None:
    for options, counts in allocated(slurm, LARGER).items():
        quote = quoted(options)
        assert counts[GPUS] == quote[GPUS], options
        assert (counts[NODES], quote[NODES]) == (2, 1), options
        assert counts[CPUS] - quote[CPUS] in (0, 1), options  # a core for the second node's task
