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
