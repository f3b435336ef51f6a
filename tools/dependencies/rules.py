"""Allowed imports between packages. They go one way; a forbidden one is reported with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tools.dependencies.graph import Graph, Import

# A name is a folder, or one file where it has rules of its own. The longest name that fits counts.
# A package may always import itself. Pure: no input, output, clock or randomness without a seed.
PURE: Mapping[str, str] = {
    "core": "",
    "core.submission": "core",
    "cluster": "core",
    "bank": "core cluster",
    "priority": "core",
    "scheduling": "core cluster",
    "jobqueue": "core core.submission cluster priority scheduling",
    "wlm.core": "core core.submission cluster priority scheduling jobqueue wlm.protocol.frames"
    " wlm.protocol.messages",
    "simulator": "core cluster bank priority scheduling",
    "report": "core priority report.slurm",
    "report.slurm": "core",
    "report.plots.simulations": "simulator report",
    "report.plots.site_factor": "priority report",
    "slurm.parsers": "core core.submission cluster priority report.slurm",
    "slurm.parsers.traces": "core cluster simulator slurm.parsers",
    "slurm.reconcile": "core cluster bank slurm.parsers",
    "slurm.health": "core cluster slurm.parsers slurm.reconcile",
    "slurm.fairshare_view": "core core.submission cluster priority jobqueue report report.slurm "
    "slurm.parsers",
    "slurm.queue_snapshot": "core cluster priority scheduling jobqueue slurm.parsers "
    "slurm.parsers.traces",
    "wlm.protocol.messages": "core cluster wlm.protocol.frames",
    "csv_import": "core cluster",
    "wlm.config": "core core.submission cluster priority scheduling slurm.parsers wlm.core",
}
SHELLS: Mapping[str, str] = {
    "unix_users": "",
    "client_file": "core",
    "store": "core cluster bank",
    "service": "core cluster bank simulator store",
    "rest": "unix_users core cluster bank service rest.schemas rest.auth rest.auth.authenticator",
    "rest.schemas": "core cluster bank",
    "rest.client": "unix_users core rest.auth",
    "rest.client.bulk_reports": "core rest.client rest.schemas",
    "rest.client.bank_client": "core cluster bank rest.schemas rest.client "
    "rest.client.bulk_reports",
    "rest.auth": "core",
    "rest.auth.authenticator": "core bank service rest rest.auth",
    "rest.server": "core service rest rest.schemas rest.auth rest.server.unix_socket "
    "rest.server.daemon_tasks",
    "rest.server.unix_socket": "core",
    "rest.server.daemon_tasks": "",
    "statefile": "core",
    "agent": "core cluster statefile rest.schemas rest.client rest.client.bulk_reports rest.auth "
    "rest.server.unix_socket rest.server.daemon_tasks",
    "wlm.protocol": "core wlm.protocol.frames wlm.protocol.messages",
    "wlm.node": "core cluster statefile rest.auth rest.server rest.server.unix_socket "
    "rest.server.daemon_tasks wlm.protocol wlm.protocol.messages wlm.stepd wlm.stepd.processes",
    "wlm.controller": "unix_users core core.submission agent cluster priority scheduling jobqueue "
    "statefile rest.auth rest.client rest.client.bank_client rest.server rest.server.unix_socket "
    "rest.server.daemon_tasks report.slurm "
    "wlm.config wlm.core wlm.protocol wlm.protocol.frames wlm.protocol.messages "
    "wlm.stepd.processes",
    "wlm.client": "client_file core wlm.protocol.frames",
    "wlm.protocol.frames": "",
    "wlm.commands": "unix_users core core.submission report.slurm wlm.client wlm.protocol.frames",
    "wlm.stepd.processes": "",
    # Of the standard library only what a test lists.
    "wlm.stepd": "wlm.protocol.frames wlm.stepd.processes",
    "slurm": "unix_users core core.submission cluster bank priority agent scheduling report "
    "report.slurm rest.schemas rest.client rest.client.bank_client rest.client.bulk_reports "
    "slurm.parsers slurm.fairshare_view slurm.queue_snapshot slurm.reconcile "
    "slurm.reconcile.repair slurm.reconcile.reconciler",
    "csv_import.storage": "core cluster bank rest.client.bank_client csv_import",
    "slurm.reconcile.repair": "core cluster bank rest.client.bank_client slurm.parsers "
    "slurm.reconcile",
    "slurm.reconcile.reconciler": "core cluster bank rest.client.bank_client slurm slurm.parsers "
    "slurm.reconcile slurm.reconcile.repair",
    "slurm.health.doctor": "core cluster rest.client rest.client.bank_client slurm slurm.parsers "
    "slurm.reconcile slurm.health",
    # Packages that load msgspec are not here: a command loads them when it runs (`is_free`).
    "cli": "client_file core core.submission bank report report.slurm rest.client",
    "wlm": "",
    "setup": "*",  # any package
}
PACKAGES = {**PURE, **SHELLS}

ROOT = ""  # the package itself: its name and version, which any module may read


def package_of(module: str) -> str:
    """Return the longest name of the table that covers the module, else its top folder."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in PACKAGES), parts[0])


def may_import(source: str, target: str) -> bool:
    """Return True if the table allows one module to import another."""
    here, there = package_of(source), package_of(target)
    allowed = PACKAGES.get(here, "").split()
    return target == ROOT or here == there or there in allowed or "*" in allowed


def is_free(item: Import) -> bool:
    """Return True for an import that the rules ignore.

    Type checkers run no code. A command imports its services when it runs, so that start-up
    stays fast; any package may be imported there.
    """
    return item.is_for_types or (item.is_deferred and package_of(item.source) == "cli")


def forbidden_imports(graph: Graph) -> Iterator[str]:
    """Report forbidden imports, cycles, and differences between the table and the package."""
    present = {package_of(name) for name in graph.modules if name != ROOT}
    for name in sorted(present - PACKAGES.keys()):
        yield f"{name}: add this package to the table in tools/dependencies/rules.py"
    for name in sorted(PACKAGES.keys() - present):
        yield f"{name}: no such package; remove it from tools/dependencies/rules.py"
    for item in graph.imports:
        if item.is_internal and not is_free(item) and not may_import(item.source, item.target):
            here = package_of(item.source)
            hint = f"(allowed: {PACKAGES.get(here) or 'only itself'})"
            yield f"{graph.location(item)}: {here} may not import {item.target} {hint}"
    if modules := cycle(graph):
        yield f"import cycle: {' -> '.join(modules)}"


def unused_entries(graph: Graph) -> Iterator[str]:
    """Report imports that the table allows and no module needs."""
    needed = {
        (package_of(item.source), package_of(item.target))
        for item in graph.imports
        if item.is_internal and not is_free(item)
    }
    for name, allowed in PACKAGES.items():
        for target in allowed.split():
            if target != "*" and (name, target) not in needed:
                yield f"{name}: does not import {target}; remove it from {__name__}"


def cycle(graph: Graph) -> list[str]:
    """Return modules that import each other in a cycle, or an empty list."""
    needs: dict[str, set[str]] = {name: set() for name in graph.modules}
    for item in graph.imports:
        if item.is_internal and item.source != item.target and not is_free(item):
            needs[item.source].add(item.target)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []
