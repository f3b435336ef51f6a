"""What a site decides about its Slurm's side: one TOML file, read strictly, for `fairbank slurm sync`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from fairbank.core import ids
from fairbank.core.errors import NotFound
from fairbank.core.validation import parse_toml, validated_settings
from fairbank.slurm.policy_file import PolicyAction

SITE_FILE = "/etc/fairbank/slurm.toml"
POLICY_FILE = "/etc/slurm/fairbank/policy"

Uid = Annotated[int, msgspec.Meta(ge=0, le=ids.UID_MAX)]


class Forced(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where all jobs of a short-term allocation go, and a QOS of its own."""

    partition: str | None = None
    reservation: str | None = None
    qos: str | None = None


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of submission that the bank does not know. `policy` is where the file goes; `public_policy` a second one without
    balances, for submit hosts where not everybody may see them. `projects` are named by account."""

    policy: str = POLICY_FILE
    public_policy: str | None = None
    price: PolicyAction = PolicyAction.WARN
    gres: PolicyAction = PolicyAction.WARN
    unlisted: PolicyAction = PolicyAction.REFUSE
    qos: str | None = None
    stale_seconds: Annotated[int, msgspec.Meta(ge=1)] = 3600
    exempt: frozenset[Uid] = frozenset()
    projects: dict[str, Forced] = {}


def read_site(path: str | None) -> Site:
    """The file named, or the usual one where there is one. Raises NotFound, InvalidInput with the place in it."""
    where = Path(path or SITE_FILE)
    try:
        text = where.read_bytes()
    except FileNotFoundError as missing:
        if path is None:
            return Site()
        raise NotFound(
            f"there is no {where}",
            field="--site",
            remedy="name another file, or none for the usual rules",
        ) from missing
    except OSError as bad:
        raise NotFound(
            f"cannot read {where}: {bad.strerror}",
            field="--site",
            remedy="ask as the user who keeps it",
        ) from bad
    said = parse_toml(text, str(where), field="--site")
    with validated_settings(str(where), Site, "docs/reference/slurm.md"):
        return msgspec.convert(said, Site)
