"""GPUs of a node: detection in directories that play /dev, /proc and /sys, and variables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairbank.wlm.node.devices.device_group import denial, device_groups
from fairbank.wlm.node.devices.gpu_use import busy_parts
from fairbank.wlm.node.devices.gpus import (
    JOB_GPUS,
    STEP_GPUS,
    GpuDevice,
    HostGpus,
    NodeGpus,
    assign_gpus,
    detect_gpus,
)

A100, T4 = "NVIDIA A100-SXM4-40GB", "Tesla T4"


def play_nvidia(root: Path, models: Sequence[str], *, driver: bool = True) -> None:
    """Write the files of NVIDIA's driver. The device numbers go down along the bus."""
    (root / "dev").mkdir(parents=True)
    for at, model in enumerate(models):
        minor = len(models) - 1 - at
        (root / f"dev/nvidia{minor}").touch()
        if driver:
            bus = root / f"proc/driver/nvidia/gpus/0000:{at:02x}:00.0"
            bus.mkdir(parents=True)
            text = f"Model: \t\t {model}\nIRQ:   \t\t 35\nDevice Minor: \t {minor}\n"
            (bus / "information").write_text(text)
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-modeset"):
        (root / "dev" / name).touch()


def play_amd(root: Path, vendors: Sequence[str]) -> None:
    (root / "dev/dri").mkdir(parents=True)
    (root / "dev/kfd").touch()
    for at, vendor in enumerate(vendors):
        device = root / f"sys/devices/pci0000:00/0000:{at:02x}:00.0"
        (device / f"drm/card{at}").mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "product_name").write_text("AMD Instinct MI250X\n")
        node = root / f"sys/class/drm/renderD{128 + at}"
        node.mkdir(parents=True)
        (node / "device").symlink_to(device)


def test_gpus_of_nvidia_are_in_the_order_of_the_bus(tmp_path: Path) -> None:
    play_nvidia(tmp_path, [A100, T4])
    assert detect_gpus(str(tmp_path)) == [
        GpuDevice(0, "nvidia_a100-sxm4-40gb", "nvidia", (f"{tmp_path}/dev/nvidia1",)),
        GpuDevice(1, "tesla_t4", "nvidia", (f"{tmp_path}/dev/nvidia0",)),
    ]


def test_gpus_are_found_by_their_devices_without_the_driver(tmp_path: Path) -> None:
    play_nvidia(tmp_path, ["", "", ""], driver=False)
    files = [gpu.files for gpu in detect_gpus(str(tmp_path))]
    assert files == [(f"{tmp_path}/dev/nvidia{number}",) for number in range(3)]


def test_gpus_of_amd_are_found_beside_those_of_others(tmp_path: Path) -> None:
    play_amd(tmp_path, ["0x1002", "0x8086", "0x1002"])
    dri = f"{tmp_path}/dev/dri"
    assert detect_gpus(str(tmp_path)) == [
        GpuDevice(0, "amd_instinct_mi250x", "amd", (f"{dri}/renderD128", f"{dri}/card0")),
        GpuDevice(1, "amd_instinct_mi250x", "amd", (f"{dri}/renderD130", f"{dri}/card2")),
    ]


def test_host_without_gpus_has_none(tmp_path: Path) -> None:
    assert detect_gpus(str(tmp_path)) == []


def test_gpus_go_to_nodes_by_type() -> None:
    devices = [
        GpuDevice(at, kind, "nvidia") for at, kind in enumerate(("tesla_t4", "x_a100_y", "k"))
    ]
    assigned = assign_gpus([["a100", ""], ["T4", ""]], devices)
    numbers = [[gpu.number for gpu in own] for own in assigned]
    assert numbers == [[1, 2], [0, 1]]
    assert assigned[1][1] == GpuDevice(1, "")  # a number only


NVIDIA = NodeGpus([GpuDevice(number, "", "nvidia") for number in (4, 5, 6)])
AMD = NodeGpus([GpuDevice(number, "", "amd") for number in (0, 1)])
ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("gpus", "numbers", "allowed", "expected"),
    [
        (NVIDIA, (0, 2), None, {"CUDA_VISIBLE_DEVICES": "4,6", "SLURM_JOB_GPUS": "4,6", **ORDER}),
        (NVIDIA, (2,), (1, 2), {"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_GPUS": "6", **ORDER}),
        (AMD, (1,), None, {"ROCR_VISIBLE_DEVICES": "1", "SLURM_JOB_GPUS": "1"}),
        (NVIDIA, (), None, {"CUDA_VISIBLE_DEVICES": ""}),
        (AMD, (), (), {"ROCR_VISIBLE_DEVICES": ""}),
        (NodeGpus(()), (), None, {}),
        (
            NodeGpus([GpuDevice(0)]),
            (0,),
            None,
            {"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "0", **ORDER},
        ),
    ],
)
def test_variables_name_the_gpus_of_a_job(
    gpus: NodeGpus, numbers: Sequence[int], allowed: Sequence[int] | None, expected: dict[str, str]
) -> None:
    variables = gpus.variables(JOB_GPUS, numbers, allowed)
    assert variables.pop("SLURM_GPUS_ON_NODE", "0") == str(len(numbers))
    assert variables == expected
    assert "HIP_VISIBLE_DEVICES" not in variables


def test_variables_of_the_submitter_are_taken_out() -> None:
    names = (b"CUDA_VISIBLE_DEVICES", b"HIP_VISIBLE_DEVICES", STEP_GPUS.encode(), b"HOME")
    assert NVIDIA.clean(dict.fromkeys(names, b"7")) == {b"HOME": b"7"}


def test_gpu_that_is_gone_is_not_reported(tmp_path: Path) -> None:
    play_nvidia(tmp_path, [A100, A100])
    host = HostGpus({"n1": ["a100"], "n2": ["a100"]}, 2, str(tmp_path))
    assert [len(host.present(name)) for name in ("n1", "n2", "n3")] == [1, 1, 0]
    (tmp_path / "dev/nvidia0").unlink()
    assert [len(host.present(name)) for name in ("n1", "n2")] == [1, 0]
    # The next daemon finds one less than there were.
    (tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information").unlink()
    host = HostGpus({"n1": ["a100"], "n2": ["a100"]}, 2, str(tmp_path))
    assert [len(host.present(name)) for name in ("n1", "n2")] == [1, 0]


def test_host_that_never_had_the_gpus_plays_them(tmp_path: Path) -> None:
    host = HostGpus({"n1": ["a100", "a100"]}, 0, str(tmp_path))
    assert host.present("n1") == ("a100", "a100")
    assert [gpu.number for gpu in host.of_node("n1").of((0, 1))] == [0, 1]


def test_devices_of_other_jobs_are_hidden(tmp_path: Path) -> None:
    play_nvidia(tmp_path, [A100, A100, T4])
    host = HostGpus({"n1": ["a100", "a100"], "n2": ["t4"]}, 3, str(tmp_path))
    hidden = host.hidden_files(host.of_node("n1"), (1,))
    assert hidden == [f"{tmp_path}/dev/nvidia2", f"{tmp_path}/dev/nvidia0"]


def test_busy_parts_are_those_that_drivers_and_programs_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_amd(tmp_path, ["0x1002"] * 3)
    for at, text in enumerate(("75\n", "never\n")):
        (tmp_path / f"sys/class/drm/renderD{128 + at}/device/gpu_busy_percent").write_text(text)
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '0, 40\\n1, [N/A]\\n7, 50\\nx\\n'\n")
    program.chmod(0o755)
    first, *_ = amd = detect_gpus(str(tmp_path))
    green = [GpuDevice(at, "t4", "nvidia") for at in range(2)]
    devices = [*amd, *green]
    monkeypatch.setenv("PATH", "/no")
    assert asyncio.run(busy_parts(devices, str(tmp_path))) == {first: 0.75}
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    both = {first: 0.75, green[0]: 0.4}
    assert asyncio.run(busy_parts(devices, str(tmp_path))) == both
    program.write_text("#!/bin/sh\necho 0, 40\nexit 9\n")
    assert asyncio.run(busy_parts(devices, str(tmp_path))) == {first: 0.75}


def test_group_denies_devices_where_the_kernel_lets_it(tmp_path: Path) -> None:
    groups = device_groups(tmp_path, allowed=True)
    if groups.parent is None:
        pytest.skip("this process may not make groups in a hierarchy of devices of version 1")
    group = Path(groups.create("run", denial(["/dev/full", str(tmp_path / "gone")])))
    try:
        child = os.fork()
        if child == 0:
            (group / "cgroup.procs").write_text("0")
            codes = {"/dev/full": 1, "/dev/zero": 2}
            failed = 0
            for file, code in codes.items():
                try:
                    os.close(os.open(file, os.O_RDONLY))
                except PermissionError:
                    failed |= code
            os._exit(failed)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    finally:
        group.rmdir()


def test_no_group_is_made_unless_it_is_allowed(tmp_path: Path) -> None:
    groups = device_groups(tmp_path, allowed=False)
    assert (groups.parent, groups.create("run", denial(["/dev/full"]))) == (None, "")
