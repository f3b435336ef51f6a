"""GPUs of this host: detection, which node has which, and the variables of a job.

Sources: /proc/driver/nvidia of NVIDIA's driver; /sys/class/drm and /dev/kfd of amdgpu. The numbers
are those of CUDA and ROCm in the order of the PCI bus.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

VARIABLES = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES"}
"""Variable that names the GPUs of a program, by maker. Those of HIP and OpenCL would be counted
within the ones that ROCR_VISIBLE_DEVICES leaves.
"""
JOB_GPUS, STEP_GPUS, ON_NODE = "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE"
_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Order in which CUDA counts GPUs; its own default is by speed."""
_OWN = (*VARIABLES.values(), "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", STEP_GPUS, ON_NODE)
"""Variables that a job does not get from its submitter, who may have other GPUs."""
_MODEL = re.compile(r"^Model:\s*(.+?)\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_NO_WORD = re.compile(r"[^a-z0-9.-]+")
_AMD = "0x1002"
"""PCI number of AMD."""


class GpuDevice(NamedTuple):
    """GPU of the host. `number` is that among the GPUs of its maker, `files` are below /dev.

    `type` is its model as in Slurm, in lower case; empty: not known. A GPU that only the settings
    have has no maker and no files.
    """

    number: int
    type: str = ""
    maker: str = ""
    files: tuple[str, ...] = ()


def detect_gpus(root: str = "/") -> list[GpuDevice]:
    """Return the GPUs of the host. `root` is the directory with its dev, proc and sys."""
    return [*_nvidia(Path(root)), *_amd(Path(root))]


def _nvidia(root: Path) -> list[GpuDevice]:
    """Return the GPUs of NVIDIA, by the driver or, in a container without it, by their devices."""
    entries = []
    for path in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        text = _read(path)
        model, minor = _MODEL.search(text), _MINOR.search(text)
        if minor is not None:
            entries.append((model[1] if model else "", minor[1]))
    if not entries:
        numbers = (path.name.removeprefix("nvidia") for path in root.glob("dev/nvidia[0-9]*"))
        entries = [("", number) for number in sorted(filter(str.isdecimal, numbers), key=int)]
    return [
        GpuDevice(at, _type(model), "nvidia", (f"{root}/dev/nvidia{minor}",))
        for at, (model, minor) in enumerate(entries)
    ]


def _amd(root: Path) -> list[GpuDevice]:
    """Return the GPUs of AMD that ROCm can use."""
    if not (root / "dev/kfd").exists():
        return []
    entries = []
    for node in root.glob("sys/class/drm/renderD*"):
        if _read(node / "device/vendor").strip() == _AMD:
            bus = os.path.realpath(node / "device")
            files = sorted(path.name for path in (node / "device/drm").glob("card*"))
            entries.append((bus, _read(node / "device/product_name"), [node.name, *files]))
    return [
        GpuDevice(at, _type(model), "amd", tuple(f"{root}/dev/dri/{name}" for name in names))
        for at, (_, model, names) in enumerate(sorted(entries))
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _type(model: str) -> str:
    return _NO_WORD.sub("_", model.strip().lower()).strip("_")


def assign_gpus(
    nodes: Sequence[Sequence[str]], devices: Iterable[GpuDevice]
) -> list[list[GpuDevice]]:
    """Return the GPUs of each node by their numbers there.

    A device goes to a GPU whose type its model has as a part, and what is left goes to the others
    in their order. GPUs without a device only have a number.

    Args:
        nodes: types of the GPUs of each node that shares the host; empty: any.
        devices: all GPUs of the host.
    """
    left = list(devices)
    places = [(node, number) for node, types in enumerate(nodes) for number in range(len(types))]
    chosen: dict[tuple[int, int], GpuDevice] = {}
    for only_same in (True, False):
        for node, number in places:
            kind = nodes[node][number].lower()
            fitting = (one for one in left if not only_same or (kind and kind in one.type))
            device = None if (node, number) in chosen else next(fitting, None)
            if device is not None:
                left.remove(device)
                chosen[node, number] = device
    return [
        [
            chosen.get((node, number), GpuDevice(number, kind, ""))
            for number, kind in enumerate(types)
        ]
        for node, types in enumerate(nodes)
    ]


class NodeGpus:
    """GPUs of a node by their numbers, and how a job is bound to some of them."""

    def __init__(self, gpus: Sequence[GpuDevice]) -> None:
        self.gpus = gpus
        makers = {gpu.maker for gpu in gpus} - {""}
        self._makers = sorted(makers) or (["nvidia"] if gpus else [])

    def of(self, numbers: Iterable[int]) -> list[GpuDevice]:
        """Return GPUs by number; those that the node does not have any more are left out."""
        return [self.gpus[number] for number in numbers if number < len(self.gpus)]

    def clean(self, environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return an environment without the variables of the GPUs of its submitter."""
        own = {name.encode() for name in _OWN}
        return {name: value for name, value in environment.items() if name not in own}

    def variables(
        self, name: str, numbers: Sequence[int], allowed: Sequence[int] | None
    ) -> dict[str, str]:
        """Return the variables of the tasks that have some GPUs.

        Without GPUs the variables of their makers are empty, which hides all: there may be others'.

        Args:
            name: the variable with the numbers of the GPUs on the host.
            numbers: GPUs of the tasks.
            allowed: GPUs that the job can open, so that it counts only these; None: it can open all
                of the host.
        """
        variables: dict[str, str] = {}
        gpus = self.of(numbers)
        for maker in self._makers:
            own = [gpu for gpu in gpus if gpu.maker in (maker, "")]
            visible = [gpu.number for gpu in own]
            if allowed is not None:
                order = [gpu for gpu in self.of(sorted(allowed)) if gpu.maker in (maker, "")]
                visible = [order.index(gpu) for gpu in own]
            variables[VARIABLES[maker]] = _listed(visible)
            if maker == "nvidia" and own:
                variables |= _ORDER
        if gpus:
            variables[name] = _listed(gpu.number for gpu in gpus)
            variables[ON_NODE] = str(len(gpus))
        return variables


NO_GPUS = NodeGpus(())


class HostGpus:
    """GPUs of the host, and which of its nodes has which."""

    def __init__(self, nodes: Mapping[str, Sequence[str]], expected: int, root: str) -> None:
        """Find the GPUs.

        Args:
            nodes: types of the GPUs of each node, by name.
            expected: number that the host had when the nodes were configured.
            root: directory with dev, proc and sys.
        """
        self._expected, self.root = expected, root
        self.devices = detect_gpus(root)
        assigned = assign_gpus([*nodes.values()], self.devices)
        self._nodes = {name: NodeGpus(gpus) for name, gpus in zip(nodes, assigned, strict=True)}

    def of_node(self, name: str) -> NodeGpus:
        return self._nodes.get(name, NO_GPUS)

    def has_devices(self, name: str) -> bool:
        """Return True for a node with GPUs on a host that has some."""
        return bool(self.devices and self.of_node(name).gpus)

    def present(self, name: str) -> tuple[str, ...]:
        """Return the types of the GPUs that a node has now.

        One whose device is gone is missing. A host without any may still play some.
        """
        has_lost = len(self.devices) < self._expected
        return tuple(
            gpu.type
            for gpu in self.of_node(name).gpus
            if (gpu.maker or not has_lost) and all(Path(file).exists() for file in gpu.files)
        )

    def hidden_files(self, node: NodeGpus, numbers: Sequence[int]) -> list[str]:
        """Return the devices of the host that a job with some GPUs of a node must not open."""
        own = node.of(numbers)
        return [file for gpu in self.devices if gpu not in own for file in gpu.files]


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
