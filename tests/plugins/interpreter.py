"""Our Lua files in a real Lua, with as much of Slurm's table `slurm` as they use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSIONS = ("lua51", "lua52", "lua53", "lua54", "lua55")


@dataclass
class Said:
    """What a plug-in answered: its code, what the user sees, what the log has, and the job as it left it."""

    code: int
    user: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)


class Lua:
    """An interpreter of this version. Each has a memory of its own, as each slurmctld has."""

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
            log_user=self._keeper(self.user),
            log_error=self._keeper(self.log),
            log_info=self._keeper(self.log),
            log_debug=self._keeper(self.log),
        )

    def table(self, **values: object) -> Any:
        return self._runtime.table_from(values)

    def module(self, name: str) -> Any:
        """A file of `plugins/fairbank`."""
        load = self._runtime.eval("""
            function(folder, name)
              local function use(other) return assert(loadfile(folder .. "/fairbank/" .. other .. ".lua"))(use) end
              return assert(loadfile(folder .. "/fairbank/" .. name .. ".lua"))(use)
            end""")
        return load(str(self.plugins), name)

    def set(self, library: str, replaced: Any) -> None:
        """Other functions in one of Lua's libraries, such as a clock that stands still."""
        for name, function in replaced.items():
            self._runtime.globals()[library][name] = function

    def run_as(self, uid: int, gid: int = 100) -> None:
        """Whose process the kernel says this is."""
        self._runtime.execute(f"""
            local open = io.open
            io.open = function(path, mode)
              if path ~= "/proc/self/status" then return open(path, mode) end
              return {{ read = function() return "Uid:\\t{uid}\\t{uid}\\nGid:\\t{gid}\\n" end, close = function() end }}
            end""")

    def start(self, plugin: Path) -> None:
        """Load a plug-in as Slurm does."""
        self._runtime.globals().dofile(str(plugin))

    def call(self, function: str, *arguments: object, job: Mapping[str, object]) -> Said:
        """Call an entry point with the job as its first argument."""
        self.user.clear()
        self.log.clear()
        desc = self.table(**job)
        code = self._runtime.globals()[function](desc, *arguments)
        return Said(int(code), list(self.user), list(self.log), dict(desc))

    def _keeper(self, lines: list[str]) -> Any:
        """A function of Slurm's kind, with a format; it formats in Lua, and strictly, as Slurm does."""
        wrap = self._runtime.eval(
            "function(keep) return function(...) keep(string.format(...)) end end"
        )
        return wrap(lines.append)
