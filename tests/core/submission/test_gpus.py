"""GPUs of a job: the options become one request, and what contradicts itself is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.gres import Gres
from fairbank.core.submission.gpus import RequestedGpus, requested_gpus
from fairbank.core.submission.options import read_values

TWO, ONE = Gres("gpu", "", 2), Gres("gpu", "", 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, RequestedGpus()),
        ({"gres": "none"}, RequestedGpus(())),
        ({"gres": "gpu:0"}, RequestedGpus(())),
        ({"gres": "gpu:2"}, RequestedGpus((TWO,))),
        ({"gres": "gpu:2,gpu:1"}, RequestedGpus((TWO,))),  # as Slurm: the largest
        ({"gpus-per-node": "2"}, RequestedGpus((TWO,))),
        (
            {"gres": "gpu:a100:1,gpu:t4:2"},
            RequestedGpus((ONE._replace(type="a100"), Gres("gpu", "t4", 2))),
        ),
        ({"gpus": "2"}, RequestedGpus((), (), TWO)),
        ({"gpus-per-task": "1", "ntasks": "2"}, RequestedGpus((), (ONE,))),
        ({"gpus-per-task": "1", "gpus": "2"}, RequestedGpus((), (ONE,))),
        ({"gpus-per-node": "1", "gpus": "2"}, RequestedGpus((ONE,))),
        ({"gpus": "2", "ntasks-per-gpu": "3"}, RequestedGpus((), (), TWO, 3)),
        ({"gpus": "2", "ntasks-per-gpu": "3", "ntasks": "6"}, RequestedGpus((), (), TWO, 3)),
        ({"ntasks": "6", "ntasks-per-gpu": "3"}, RequestedGpus((), (), TWO, 3)),
        ({"nodes": "2", "ntasks-per-gpu": "3"}, RequestedGpus((), (), TWO, 3)),
        (
            {"gres": "gpu:1", "nodes": "2", "ntasks-per-gpu": "3"},
            RequestedGpus((ONE,), tasks_each=3),
        ),
        ({"gpus-per-task": "1", "ntasks": "2", "cpus-per-gpu": "4"}, RequestedGpus((), (ONE,))),
    ],
)
def test_options_request_gpus_in_one_way(
    options: Mapping[str, str], expected: RequestedGpus
) -> None:
    assert requested_gpus(read_values(options, "sbatch")) == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gres": "foo:1"}, "there is no generic resource 'foo'"),
        ({"gres": "gpu:1,gpu:a100:1"}, "--gres has GPUs with and without a type"),
        ({"gres": "gpu:1", "gpus-per-node": "1"}, "--gres and --gpus-per-node both name"),
        ({"gpus": "a100:1,t4:1"}, "--gpus names several types"),
        ({"gpus": "3", "gpus-per-node": "2"}, "--gpus=3 is no multiple of the 2 GPUs of a node"),
        ({"gpus": "t4:2", "gres": "gpu:a100:2"}, "--gpus=2 is no multiple"),
        ({"gpus-per-task": "1"}, "--gpus-per-task used without either --gpus or -n/--ntasks"),
        ({"gpus-per-task": "1", "gpus": "2", "ntasks": "3"}, "number of requested tasks differ"),
        ({"gpus-per-task": "1", "ntasks": "1", "gres": "gpu:1"}, "for each node and for each task"),
        ({"gpus-per-task": "1", "ntasks": "1", "overcommit": ""}, "exclude each other"),
        ({"ntasks-per-gpu": "2"}, "--ntasks-per-gpu needs GPUs, or tasks"),
        ({"ntasks-per-gpu": "2", "nodes": "1-2"}, "--ntasks-per-gpu needs GPUs, or tasks"),
        ({"ntasks-per-gpu": "2", "ntasks": "3"}, "has to be a multiple of --ntasks-per-gpu"),
        ({"ntasks-per-gpu": "2", "gpus": "2", "ntasks": "3"}, "are not the 3 tasks of --ntasks"),
        ({"ntasks-per-gpu": "1", "gpus-per-task": "1", "ntasks": "1"}, "are mutually exclusive"),
        ({"ntasks-per-gpu": "1", "gpus": "1", "ntasks-per-node": "1"}, "are mutually exclusive"),
        ({"cpus-per-gpu": "1", "gpus": "1", "cpus-per-task": "1"}, "are mutually exclusive"),
        ({"cpus-per-gpu": "1"}, "--cpus-per-gpu needs GPUs"),
        ({"mem-per-gpu": "1", "gres": "none"}, "--mem-per-gpu needs GPUs"),
    ],
)
def test_gpu_options_that_contradict_each_other_are_refused(
    options: Mapping[str, str], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        requested_gpus(read_values(options, "sbatch"))
    assert sentence in refused.value.message
    assert refused.value.field == "gres"
    assert refused.value.remedy


def test_step_may_request_gpus_by_task_without_tasks() -> None:
    values = read_values({"gpus-per-task": "1"}, "srun")
    assert requested_gpus(values, is_step=True).per_task == (ONE,)


def test_step_may_have_fewer_tasks_than_its_gpus_can_have() -> None:
    few = {"gpus": "2", "ntasks-per-gpu": "3", "ntasks": "4"}
    assert requested_gpus(read_values(few, "srun"), is_step=True).total == TWO
    with pytest.raises(InvalidInput, match="are not the 7 tasks"):
        requested_gpus(read_values(few | {"ntasks": "7"}, "srun"), is_step=True)
