"""Lua interpreter with the parts of Slurm's table `slurm` that the plug-ins use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSIONS = ("lua51", "lua52", "lua53", "lua54", "lua55")


@dataclass
class Result:
    """Result of a plug-in's entry point.

    `user` has the lines that the user sees, `log` those in the log, `job` the job as changed.
    """

    code: int
    user: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)


class Lua:
    """Lua interpreter of one version. Each instance has its own state, as each slurmctld has."""

    def __init__(self, version: str, plugins: Path) -> None:
        self._runtime = importlib.import_module(f"lupa.{version}").LuaRuntime(
            unpack_returned_tuples=True
        )
        self.plugins = plugins
        self.user: list[str] = []
        self.log: list[str] = []
        self._runtime.globals().slurm = self.table(
            SUCCESS=0,
            ERROR=-1,
            log_user=self._logger(self.user),
            log_error=self._logger(self.log),
            log_info=self._logger(self.log),
            log_debug=self._logger(self.log),
        )

    def table(self, **values: object) -> Any:
        return self._runtime.table_from(values)

    def module(self, name: str) -> Any:
        """Return a module of `plugins/fairbank`."""
        load = self._runtime.eval("""
            function(folder, name)
              local function use(other)
                return assert(loadfile(folder .. "/fairbank/" .. other .. ".lua"))(use)
              end
              return assert(loadfile(folder .. "/fairbank/" .. name .. ".lua"))(use)
            end""")
        return load(str(self.plugins), name)

    def replace(self, library: str, functions: Any) -> None:
        """Replace functions in a Lua library, such as a clock with a fixed time."""
        for name, function in functions.items():
            self._runtime.globals()[library][name] = function

    def run_as(self, uid: int, gid: int = 100) -> None:
        """Set the uid and the gid that /proc shows for this process."""
        self._runtime.execute(f"""
            local open = io.open
            io.open = function(path, mode)
              if path ~= "/proc/self/status" then return open(path, mode) end
              local text = "Uid:\\t{uid}\\t{uid}\\nGid:\\t{gid}\\n"
              return {{ read = function() return text end, close = function() end }}
            end""")

    def start(self, plugin: Path) -> None:
        """Load a plug-in as Slurm does."""
        self._runtime.globals().dofile(str(plugin))

    def call(self, function: str, *arguments: object, job: Mapping[str, object]) -> Result:
        """Call an entry point with the job as its first argument."""
        self.user.clear()
        self.log.clear()
        desc = self.table(**job)
        code = self._runtime.globals()[function](desc, *arguments)
        return Result(int(code), list(self.user), list(self.log), dict(desc))

    def _logger(self, lines: list[str]) -> Any:
        """Return a log function that takes a format and formats in Lua, strictly, as Slurm does."""
        wrap = self._runtime.eval(
            "function(append) return function(...) append(string.format(...)) end end"
        )
        return wrap(lines.append)
