"""What slurm.conf is asked for while slurmctld is away."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType

from fairbank.slurm import doctor
from fairbank.slurm.answers import scontrol
from fairbank.slurm.conf_file import TOLD
from fairbank.slurm.judging import health, loading
from tests.slurm.beside.checked import CONFIG


def _settings_named_in(module: ModuleType) -> set[str]:
    """The texts of a module that are, whole, the name of a setting as slurmctld tells them."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)} & CONFIG.keys()


def test_what_the_doctor_reads_is_what_is_taken_from_slurm_conf() -> None:
    """Neither less, which would be judged as if it were not set, nor more, which nobody reads."""
    readers = (doctor, health, loading, scontrol)
    assert set(TOLD) == {name for module in readers for name in _settings_named_in(module)}
