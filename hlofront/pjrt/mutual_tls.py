"""Mutual TLS of the coordination service: the files and checks of `distributed.initialize`."""

import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from hlofront.base.config import options
from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.coordination import supports_mutual_tls

# The files by the last word of their parameter and option, with what messages call them.
_FILES = {"cert": "certificate", "key": "private key", "ca": "certificates of the authorities"}


def mutual_tls(
    cert_file: str | None,
    key_file: str | None,
    ca_file: str | None,
    peer_uri_prefix: str | None,
    is_required: bool | None,
) -> dict[str, str]:
    """Return the settings of mutual TLS by jaxlib's names; empty for connections without it.

    The options with the names of arguments replace those that are None.

    Raises:
      ValueError: if only some of the three files are passed, or the prefix does not end with "/".
      JaxRuntimeError: if a file cannot be read.
      RuntimeError: if this jaxlib has no mutual TLS, or it is required and no files are passed.
    """
    given = {
        "mtls_cert_file": (cert_file, options["jax_mtls_cert_file"]),
        "mtls_key_file": (key_file, options["jax_mtls_key_file"]),
        "mtls_ca_file": (ca_file, options["jax_mtls_ca_file"]),
        "mtls_peer_uri_prefix": (peer_uri_prefix, options["jax_mtls_peer_uri_prefix"]),
    }
    settings: dict[str, str] = {}
    for name, (argument, option) in given.items():
        value = option.value if argument is None else argument
        if value is not None:
            settings[name] = os.fspath(value)
    if is_required is None:
        is_required = options["jax_distributed_verify_secure_credentials"].value
    if not settings:
        if is_required:
            # jaxlib would end the process.
            raise RuntimeError(
                "verify_secure_credentials requires mutual TLS: pass mtls_cert_file, mtls_key_file "
                "and mtls_ca_file to distributed.initialize, or set the options of these names"
            )
        return {}
    missing = [f"mtls_{word}_file" for word in _FILES if f"mtls_{word}_file" not in settings]
    if missing:
        raise ValueError(
            f"mutual TLS needs three files, and {' and '.join(missing)} is missing: got "
            f"{', '.join(settings)}"
        )
    prefix = settings.get("mtls_peer_uri_prefix")
    if prefix is not None and not prefix.endswith("/"):
        raise ValueError(f"mtls_peer_uri_prefix must end with '/', got {prefix!r}")
    if not supports_mutual_tls:
        raise RuntimeError(
            "distributed.initialize: the installed jaxlib has no mutual TLS. Install jaxlib 0.12, "
            "which needs Python 3.12, or leave the mtls_ arguments and options out and let the "
            "processes meet in a network of their own"
        )
    for word, said in _FILES.items():
        path = settings[f"mtls_{word}_file"]
        if not os.access(path, os.R_OK):
            raise JaxRuntimeError(
                f"NOT_FOUND: cannot read the {said} of mutual TLS: mtls_{word}_file is {path!r}"
            )
    return settings


def check_handshake(address: str, settings: Mapping[str, str]) -> None:
    """Connect to the coordination service as jaxlib does, which would end this process on failure.

    Raises:
      OSError: if one of the two does not accept the other's certificate, or it cannot be loaded.
    """
    host, _, port = address.rpartition(":")
    host, prefix = host.strip("[]"), settings.get("mtls_peer_uri_prefix")
    context = ssl.create_default_context(cafile=settings["mtls_ca_file"])
    context.load_cert_chain(settings["mtls_cert_file"], settings["mtls_key_file"])
    context.check_hostname = prefix is None
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        details: Any = secure.getpeercert() or {}
        names: list[tuple[str, str]] = list(details.get("subjectAltName", ()))
        uris = [value for kind, value in names if kind == "URI"]
        if prefix is not None and not any(uri.startswith(prefix) for uri in uris):
            raise OSError(
                f"the URIs in the coordinator's certificate are {uris}, and none begins with "
                f"mtls_peer_uri_prefix, {prefix!r}"
            )
        # The service answers after it has checked this process's certificate.
        if not secure.recv(1):
            raise OSError("the coordinator does not accept the certificate of this process")
