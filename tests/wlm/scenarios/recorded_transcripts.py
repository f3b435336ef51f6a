"""Recording of the transcripts of Slurm, so that tests can compare without one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.wlm.scenarios.scenario import FOLDER
from tests.wlm.scenarios.transcript import Transcript

RECORDING = FOLDER / "recorded.txt"
COMMAND = "python -m tests.slurm.lab record_scenarios tests/wlm/scenarios/recorded.txt"


def write_recording(path: Path, release: str, transcripts: Mapping[str, Transcript]) -> None:
    """Write transcripts: a line for each field, and further lines of its value indented."""
    lines = [f"# Scenarios under Slurm {release}, written by `{COMMAND}`."]
    for name in sorted(transcripts):
        lines += ["", f"## {name}"]
        for field, value in transcripts[name].items():
            lines.append(f"{field} | " + value.replace("\n", "\n    "))
    path.write_text("\n".join(lines) + "\n")


def read_recording(path: Path = RECORDING) -> Mapping[str, Transcript]:
    """Return the recorded transcripts by scenario."""
    loaded: dict[str, dict[str, str]] = {}
    name = field = ""
    for line in path.read_text().split("\n")[1:-1]:
        if line.startswith("## "):
            name, field = line[3:], ""
            loaded[name] = {}
        elif line.startswith("    ") and field:
            loaded[name][field] += "\n" + line[4:]
        elif line:
            field, _, value = line.partition(" | ")
            loaded[name][field] = value
    return loaded
