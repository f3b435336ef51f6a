"""Files that `fairbank cluster up` writes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairbank.cli.commands.cluster.directory import ClusterDirectory
from fairbank.cli.commands.cluster.settings_files import write_node_settings
from fairbank.wlm.node.settings import read_settings
from tests.wlm.config.files import MACHINE_TOML, toml


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
