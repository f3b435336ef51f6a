"""Errors of connections to a bank: what failed, and the remedy of each.

Commands import it only when a connection has failed.
"""

from __future__ import annotations

import os
import socket
from grp import getgrgid
from pathlib import Path
from stat import S_IMODE, S_ISDIR

from fairbank.core.errors import FairbankError, Forbidden, Unavailable
from fairbank.rest.client.address import HTTP, HTTPS, UNIX, Address
from fairbank.rest.client.response import CHECK, NotABank
from fairbank.unix_users import user_name

_PROBE_SECONDS = 5


def unreachable(address: Address, error: OSError, bank_file: str | None = None) -> FairbankError:
    """Return the error for a connection that failed.

    Args:
        bank_file: settings of a bank on this host, if they name the address.
    """
    if isinstance(error, PermissionError) and address.scheme == UNIX:
        return _not_permitted(address)
    if isinstance(error, TimeoutError):
        return Unavailable(
            f"the bank at {address} does not answer in time",
            field="server",
            remedy="try again: it may be busy or stopped"
            if address.scheme == UNIX
            else f"try again, or {CHECK}: a firewall may drop what is sent to that port",
        )
    why = (error.strerror or str(error) or type(error).__name__).lower()
    if isinstance(error, socket.gaierror):
        return Unavailable(
            f"the host {address.place} is not known here: {why}",
            field="server",
            remedy=f"{CHECK}, and the name service of this host",
        )
    if address.scheme == HTTPS and not isinstance(error, ConnectionRefusedError):
        return _without_tls(address, error, why)
    if isinstance(error, ConnectionResetError):
        return NotABank(
            f"the server at {address} ended the connection", field="server", remedy=CHECK
        )
    if address.scheme != UNIX and isinstance(error, ConnectionRefusedError):
        return Unavailable(
            f"no server listens at {address}: {why}",
            field="server",
            remedy="check the port in --server or FAIRBANK_SERVER, or start the bank there with:"
            f" fairbank serve --port {address.port}",
        )
    return _not_running(address, why, bank_file)


def _not_running(address: Address, why: str, bank_file: str | None) -> Unavailable:
    if bank_file is not None:
        from shlex import quote  # noqa: PLC0415  an import that only this error needs

        return Unavailable(
            f"the bank of {bank_file} is not running: nothing answers at {address}: {why}",
            field="server",
            remedy=(
                f"start it with: fairbank serve --config {quote(bank_file)}; or name another bank,"
                " such as the host's, with --server or FAIRBANK_SERVER"
            ),
        )
    return Unavailable(
        f"no bank answers at {address}: {why}",
        field="server",
        remedy=(
            "start the bank with: fairbank serve; "
            "or give its address with --server or FAIRBANK_SERVER"
        ),
    )


def _not_permitted(address: Address) -> Forbidden:
    """Return the error for a socket that the user may not use: it names user, owner and mode."""
    socket_path = Path(address.place)
    closed = [
        directory
        for directory in socket_path.parents
        if not os.access(directory, os.X_OK, effective_ids=True)
    ]
    # The outermost directory counts. A socket is opened by writing, a directory by searching.
    place, bits = (closed[-1], 0o010) if closed else (socket_path, 0o020)
    user = user_name(os.geteuid())
    text = f"user {user} may not connect to {address}"
    try:
        status = place.stat()
    except OSError:  # changed meanwhile
        return Forbidden(text, field="server", remedy="ask the bank's staff")
    owner = user_name(status.st_uid)
    group = _group_name(status.st_gid)
    what = f"the directory {place}" if S_ISDIR(status.st_mode) else "the socket"
    joining = f"have user {user} added to the group {group}, or " if status.st_mode & bits else ""
    return Forbidden(
        f"{text}: {what} belongs to user {owner} and group {group}, with mode"
        f" {S_IMODE(status.st_mode):04o}",
        field="server",
        remedy=f"{joining}ask {owner} for access, or name another bank: FAIRBANK_SERVER",
    )


def _group_name(gid: int) -> str:
    try:
        return getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


# --- TLS ---


def _without_tls(address: Address, error: OSError, why: str) -> Unavailable:
    """Return the error for a TLS connection that failed after the server was reached."""
    import ssl  # noqa: PLC0415  the connection has loaded it

    if isinstance(error, ssl.SSLCertVerificationError):
        return Unavailable(
            f"the certificate of {address} is not accepted: {error.verify_message}",
            field="server",
            remedy="check the host's name and the certificate; SSL_CERT_FILE names a file of"
            " authorities to trust",
        )
    if isinstance(error, ssl.SSLError | ConnectionResetError) and not _is_alert(error):
        clear = address._replace(scheme=HTTP)
        return Unavailable(
            f"the server at {address} does not use TLS there",
            field="server",
            remedy=f"write {clear}, or the port that has TLS",
        )
    return _not_running(address, why, None)


def is_tls_server(address: Address) -> bool:
    """Return whether the server at an address without TLS answers with TLS."""
    import ssl  # noqa: PLC0415  10 ms of CPU that only this error needs

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host = (address.place.encode("ascii"), address.port)
    try:
        with (
            socket.create_connection(host, _PROBE_SECONDS) as connection,  # type: ignore[arg-type]
            context.wrap_socket(connection, server_hostname=address.place),
        ):
            return True
    except OSError as error:
        return _is_alert(error)


def _is_alert(error: OSError) -> bool:
    """Return whether the error is an alert of a server that speaks TLS."""
    return "ALERT" in (getattr(error, "reason", None) or "")


def tls_port(address: Address) -> Unavailable:
    """Return the error for a port with TLS that was addressed without it."""
    return Unavailable(
        f"the server at {address} uses TLS there",
        field="server",
        remedy=f"write {address._replace(scheme=HTTPS)}",
    )
