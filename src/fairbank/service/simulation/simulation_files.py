"""Files around a simulation: policies, shares and synthetic sites are read; starts and synthetic
traces are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairbank.core.errors import Conflict, FairbankError, InvalidInput, NotFound
from fairbank.core.os_errors import translate_os_error
from fairbank.core.settings_file import read_whole
from fairbank.service.ops.atomic_file import atomic_write, check_writable
from fairbank.simulator.engine.policies import SimulationPolicy, policy_named
from fairbank.simulator.results.delivered_shares import read_holdings

if TYPE_CHECKING:
    from fairbank.simulator.traces.site_settings import SyntheticSiteSettings
    from fairbank.simulator.traces.synthetic import SyntheticWorkload

NAME_MAX = 24
"""Maximum length of a name: the width of a column."""


def policies_of(names: Sequence[str]) -> list[SimulationPolicy]:
    """Return the policies, by name or as a file describes them. Raises NotFound for one that does
    not exist, InvalidInput for an invalid file, and for two policies with the same name.
    """
    policies = [
        read_policy(Path(name)) if name.endswith(".toml") else policy_named(name) for name in names
    ]
    for number, policy in enumerate(policies):
        if any(policy.name == other.name for other in policies[:number]):
            remedy = "name the files differently: a policy is called as its file is, without .toml"
            raise InvalidInput(
                f"two policies are called {policy.name!r}", field="policy", remedy=remedy
            )
    return policies


def read_policy(path: Path) -> SimulationPolicy:
    """Return the policy in a file, which has the name of the file. Raises NotFound for one that
    cannot be read, InvalidInput naming the key.
    """
    # Imported here because it loads NumPy, which named policies do not need.
    from fairbank.simulator.engine.policy_settings import policy_of  # noqa: PLC0415

    if not path.stem.isprintable() or len(path.stem) > NAME_MAX:
        remedy = (
            f"a policy is called as its file is: at most {NAME_MAX} printable characters before"
            " .toml"
        )
        raise InvalidInput(
            "this file's name is not a name of a policy", field="policy", remedy=remedy
        )
    text = _read_file(path, "policy", "name a file that describes a policy")
    try:
        return policy_of(path.stem, text)
    except FairbankError as bad:
        raise type(bad)(f"{path}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad


def read_shares(path: Path) -> Mapping[str, int]:
    """Read shares from a file. Raises NotFound if it cannot be read, InvalidInput with the line for
    invalid content.
    """
    content = _read_file(path, "shares", "name a file of lines: account,shares")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as strange:
        what = (
            f"cannot read {path}: byte 0x{strange.object[strange.start]:02x} at place"
            f" {strange.start + 1} is no UTF-8"
        )
        raise InvalidInput(
            what, field="shares", remedy="save it as text in UTF-8, with lines: account,shares"
        ) from strange
    return read_holdings(text.splitlines())


def read_site(path: Path) -> SyntheticSiteSettings:
    """Read a synthetic site from a file. Raises NotFound for a file that cannot be read,
    InvalidInput with the place for invalid content.
    """
    # Imported here because it loads msgspec, which traces do not need.
    from fairbank.simulator.traces.site_settings import parse_site  # noqa: PLC0415

    return parse_site(_read_file(path, "model", "name a file that describes a centre"), str(path))


def check_starts(path: Path, trace: Path | None) -> None:
    """Check the file for starts before the work begins. Raises InvalidInput for the trace itself,
    and an error of `translate_os_error` if it cannot be written.
    """
    if trace is not None and path.exists() and trace.exists() and path.samefile(trace):
        raise InvalidInput(
            f"{path} is the trace itself", field="starts", remedy="name another file"
        )
    try:
        check_writable(path)
    except OSError as error:
        raise translate_os_error(error, f"cannot write {path}", field="starts") from error


def write_starts(lines: Iterable[str], path: Path) -> None:
    """Write the file as a whole or not at all. Raises an error of `translate_os_error` if it cannot
    be written.
    """
    try:
        with atomic_write(path) as file:
            file.writelines(map(str.encode, lines))
    except BrokenPipeError:
        pass  # the reader closed the pipe
    except OSError as error:
        raise translate_os_error(error, f"cannot write {path}", field="starts") from error


def save_trace(workload: SyntheticWorkload, path: Path, *, replace: bool = False) -> None:
    """Write a synthetic workload as a trace, as a whole or not at all.

    Args:
        workload: yields the lines of the trace.
        path: the file to write; a device such as /dev/stdout is allowed.
        replace: overwrite an existing file.

    Raises:
        Conflict: the file exists and `replace` is false.
        FairbankError: writing failed (`translate_os_error`).
    """
    # A device, such as /dev/stdout, may be redirected to a file that exists.
    if not replace and path.is_file() and path.parent != Path("/dev"):
        raise Conflict(
            f"there is a file {path} already",
            field="save",
            remedy="name another, or replace this one with --force",
        )
    try:
        with atomic_write(path) as file:
            file.writelines(map(str.encode, workload.lines()))
    except OSError as error:
        raise translate_os_error(error, f"cannot write {path}", field="save") from error


def _read_file(path: Path, field: str, remedy: str) -> bytes:
    """Return the content of a file. Raises NotFound, with the remedy, for a file that cannot be
    read, InvalidInput for one that is too large.
    """
    try:
        with path.open("rb") as file:
            return read_whole(file, str(path), field=field)
    except OSError as error:
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field=field, remedy=remedy
        ) from error
