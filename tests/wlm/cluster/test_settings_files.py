"""Files that `fairbank cluster up` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fairbank.cli.commands.cluster.directory import ClusterDirectory
from fairbank.cli.commands.cluster.settings_files import first_line, write_node_settings
from fairbank.wlm.node.settings import read_settings
from tests.wlm.config.files import MACHINE_TOML, toml
from tests.wlm.node.test_gpus import play_nvidia


def test_node_is_compared_with_the_host_for_which_its_size_was_chosen(tmp_path: Path) -> None:
    directory, settings = ClusterDirectory(tmp_path), toml(MACHINE_TOML)
    file = tmp_path / "node.json"
    write_node_settings(directory, settings, again=False)
    now = read_settings(file)
    assert now.host_cpus
    assert now.host_memory
    larger = msgspec.structs.replace(now, host_memory=2 * now.host_memory)
    file.write_bytes(msgspec.json.encode(larger))
    write_node_settings(directory, settings, again=False)
    assert read_settings(file) == larger
    write_node_settings(directory, settings, again=True)
    assert read_settings(file) == now


@pytest.mark.parametrize(
    ("scheduling", "gres", "types"),
    [
        ('node_resources = "actual"', "", ("tesla_t4", "tesla_t4")),
        ('node_resources = "actual"', 'gres = "gpu:t4:1"', ("t4",)),
        ("", "", ()),
    ],
)
def test_node_has_the_gpus_that_are_configured_or_found(
    scheduling: str, gres: str, types: tuple[str, ...], tmp_path: Path
) -> None:
    play_nvidia(tmp_path / "host", ["Tesla T4"] * 2)
    machine = f'[[nodes]]\nnode_name = "n1"\n{gres}\n[[partitions]]\npartition_name = "p"\n'
    machine += 'nodes = "ALL"\n'
    text = f'[cluster]\ngpu_root = "{tmp_path}/host"\n[scheduling]\n{scheduling}\n{machine}'
    write_node_settings(ClusterDirectory(tmp_path), toml(text), again=True)
    written = read_settings(tmp_path / "node.json")
    assert (written.nodes[0].gpus, written.host_gpus) == (types, 2)


@pytest.mark.parametrize("folder", ["plain", "with a space", "long" * 50])
def test_commands_start_python_from_any_directory(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    python = tmp_path / folder / "python"
    python.symlink_to(sys.executable)
    program = tmp_path / "program"
    program.write_text(
        f"{first_line(str(python))}\nimport sys\nprint(sys.flags.safe_path, sys.argv)"
    )
    program.chmod(0o755)
    run = subprocess.run([program, "a b"], capture_output=True, text=True, check=True)
    assert run.stdout == f"True {[str(program), 'a b']}\n"
