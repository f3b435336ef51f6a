"""Use of the GPUs of this host: which part of the time each was busy just now.

Sources: gpu_busy_percent of amdgpu in /sys; nvidia-smi(1), where there is one. Other GPUs do not
tell it.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairbank.wlm.node.devices.gpus import GpuDevice

_QUERY = ("--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits")
_QUERY_SECONDS = 10.0
_LINE = re.compile(r"\s*(\d{1,4})\s*,\s*(\d{1,3})\s*", re.ASCII)
_PERCENT = re.compile(r"\s*(\d{1,3})\s*", re.ASCII)


async def busy_parts(devices: Sequence[GpuDevice], root: str) -> dict[GpuDevice, float]:
    """Return the busy part of each GPU that tells it, from 0 to 1.

    Args:
        devices: GPUs of the host.
        root: directory with its dev, proc and sys.
    """
    parts = {
        device: part
        for device in devices
        if device.maker == "amd" and (part := _amd_part(device, root)) is not None
    }
    numbers = {device.number: device for device in devices if device.maker == "nvidia"}
    if numbers and (program := shutil.which("nvidia-smi")):
        for line in (await _output(program, *_QUERY)).splitlines():
            match = _LINE.fullmatch(line)  # [N/A] of a GPU that does not tell it
            if match and (device := numbers.get(int(match[1]))):
                parts[device] = min(int(match[2]), 100) / 100
    return parts


def _amd_part(device: GpuDevice, root: str) -> float | None:
    for file in device.files:
        path = Path(root, "sys/class/drm", Path(file).name, "device/gpu_busy_percent")
        with suppress(OSError, ValueError):
            if match := _PERCENT.fullmatch(path.read_text()):
                return min(int(match[1]), 100) / 100
    return None


async def _output(*command: str) -> str:
    """Return what a program prints; nothing if it fails or takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return ""
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _QUERY_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()  # its end is not awaited: a lost GPU can keep it in the kernel
        return ""
    return "" if process.returncode else output.decode(errors="replace")
