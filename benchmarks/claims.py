"""Claims, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from benchmarks import (
    agent,
    charged_usage,
    cluster,
    commands,
    controller_restart,
    cpu_time,
    deep_queues,
    fairtree,
    full_controller,
    history,
    http,
    ledger,
    node_changes,
    passes,
    priority,
    reconcile,
    replay,
    simulate,
    slurm_queue,
    step_daemon,
    steps,
    traces,
    unchanged_queue,
    usage,
    waiting_jobs,
    workload_manager,
)
from benchmarks.measure import Say, Table
from benchmarks.page import drawings, page
from benchmarks.results import Claim, load_claim


class Measure(Protocol):
    def __call__(self, *, short: bool, say: Say) -> list[Table]: ...


CLAIMS: Mapping[str, Measure] = {
    "ledger": ledger.measure,
    "http": http.measure,
    "cpu_time": cpu_time.measure,
    "agent": agent.measure,
    "history": history.measure,
    "charged_usage": charged_usage.measure,
    "replay": replay.measure,
    "simulate": simulate.measure,
    "deep_queues": deep_queues.measure,
    "traces": traces.measure,
    "reconcile": reconcile.measure,
    "commands": commands.measure,
    "waiting_jobs": waiting_jobs.measure,
    "cluster": cluster.measure,
    "fairtree": fairtree.measure,
    "priority": priority.measure,
    "usage": usage.measure,
    "passes": passes.measure,
    "node_changes": node_changes.measure,
    "step_daemon": step_daemon.measure,
    "steps": steps.measure,
    "workload_manager": workload_manager.measure,
    "full_controller": full_controller.measure,
    "slurm_queue": slurm_queue.measure,
    "unchanged_queue": unchanged_queue.measure,
    "controller_restart": controller_restart.measure,
}
REMARKS = {
    "ledger": ledger.REMARK,
    "http": http.REMARK,
    "cpu_time": cpu_time.REMARK,
    "charged_usage": charged_usage.REMARK,
    "simulate": simulate.REMARK,
    "deep_queues": deep_queues.REMARK,
    "traces": traces.REMARK,
    "reconcile": reconcile.REMARK,
    "waiting_jobs": waiting_jobs.REMARK,
    "cluster": cluster.REMARK,
    "fairtree": fairtree.REMARK,
    "priority": priority.REMARK,
    "usage": usage.REMARK,
    "steps": steps.REMARK,
    "workload_manager": workload_manager.REMARK,
    "slurm_queue": slurm_queue.REMARK,
}


def write_page(folder: Path) -> str:
    """Return the page about the results kept in `folder`. It ends with the list of what was not
    measured.
    """
    text = page(_kept(folder), REMARKS)
    missing = [
        f"- `make bench ARGS='--only {name}'`\n"
        for name in CLAIMS
        if load_claim(name, folder) is None
    ]
    return f"{text}\n## Not measured yet\n\n{''.join(missing)}" if missing else text


def figures(folder: Path) -> dict[str, bytes]:
    """Return the figures of the page as SVG, by file name."""
    return drawings(_kept(folder))


def _kept(folder: Path) -> list[Claim]:
    return [claim for name in CLAIMS if (claim := load_claim(name, folder)) is not None]
