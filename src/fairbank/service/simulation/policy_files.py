"""Policies that files describe."""

from __future__ import annotations

from pathlib import Path

from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.engine.policy_settings import PAGE, policy_of

NAME_MAX = 24
"""Characters: a column is no wider."""


def read_policy(path: Path) -> SimulationPolicy:
    """The policy in a file, called by the file's stem. Raises NotFound for one that cannot be read, InvalidInput naming the key."""
    if not path.stem.isprintable() or len(path.stem) > NAME_MAX:
        remedy = f"a policy is called as its file is: at most {NAME_MAX} printable characters before .toml"
        raise InvalidInput("this file's name is no name of a policy", field="policy", remedy=remedy)
    try:
        text = path.read_bytes()
    except OSError as error:
        remedy = f"name a file that describes a policy; {PAGE} shows one"
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field="policy", remedy=remedy
        ) from error
    try:
        return policy_of(path.stem, text)
    except FairbankError as bad:
        raise type(bad)(f"{path}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad
