"""The claims, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from benchmarks import (
    agent,
    cluster,
    commands,
    fairtree,
    history,
    http,
    ledger,
    passes,
    priority,
    reconcile,
    replay,
    simulate,
    spent,
    traces,
    usage,
)
from benchmarks.measure import Say, Table
from benchmarks.page import drawings, page
from benchmarks.results import Claim, kept


class Measure(Protocol):
    def __call__(self, *, short: bool, say: Say) -> list[Table]: ...


CLAIMS: Mapping[str, Measure] = {
    "ledger": ledger.measure,
    "http": http.measure,
    "spent": spent.measure,
    "agent": agent.measure,
    "history": history.measure,
    "replay": replay.measure,
    "simulate": simulate.measure,
    "traces": traces.measure,
    "reconcile": reconcile.measure,
    "commands": commands.measure,
    "cluster": cluster.measure,
    "fairtree": fairtree.measure,
    "priority": priority.measure,
    "usage": usage.measure,
    "passes": passes.measure,
}
REMARKS = {
    "ledger": ledger.REMARK,
    "http": http.REMARK,
    "spent": spent.REMARK,
    "simulate": simulate.REMARK,
    "traces": traces.REMARK,
    "reconcile": reconcile.REMARK,
    "cluster": cluster.REMARK,
    "fairtree": fairtree.REMARK,
    "priority": priority.REMARK,
    "usage": usage.REMARK,
}


def drawn(folder: Path) -> str:
    """The page about the results kept in `folder`; what was not measured is said at its end."""
    text = page(_kept(folder), REMARKS)
    missing = [
        f"`make bench ARGS='--only {name}'`" for name in CLAIMS if kept(name, folder) is None
    ]
    return f"{text}\n## Not measured yet\n\n{', '.join(missing)}\n" if missing else text


def figures(folder: Path) -> dict[str, bytes]:
    """The figures that the page shows, as SVG by the names of their files."""
    return drawings(_kept(folder))


def _kept(folder: Path) -> list[Claim]:
    return [claim for name in CLAIMS if (claim := kept(name, folder)) is not None]
