"""Processes that meet by mutual TLS, which jaxlib has since 0.12."""

import shutil
import subprocess

import pytest

import hlofront as jax
from hlofront.base.config import options
from hlofront.bridge.coordination import supports_mutual_tls
from tests.processes.group import Group

FILES = ("mtls_cert_file", "mtls_key_file", "mtls_ca_file")


@pytest.fixture
def certificate(tmp_path):
    """The three files by parameter."""
    return made_certificate(tmp_path, "first")


def made_certificate(folder, name):
    """Files of a certificate that is its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    cert, key = folder / f"{name}.pem", folder / f"{name}_key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=test"]
        + ["-addext", "subjectAltName=URI:spiffe://example.org/trainer"],
        check=True,
        capture_output=True,
    )
    return dict(zip(FILES, map(str, (cert, key, cert)), strict=True))


@pytest.fixture
def unused_client(monkeypatch):
    monkeypatch.setattr("hlofront.pjrt.process_group.clients.are_made", lambda: False)


SCRIPT = """
import os, hlofront as jax

arguments = {arguments}
jax.distributed.initialize(
    **arguments[int(os.environ["JAX_PROCESS_ID"]) % len(arguments)],
    mtls_peer_uri_prefix="spiffe://{host}/",
    verify_secure_credentials=True,
    initialization_timeout=10,
)
print("joined", jax.process_index(), jax.process_count(), flush=True)
"""
needs_mutual_tls = pytest.mark.skipif(
    not supports_mutual_tls, reason="jaxlib before 0.12 has no mutual TLS"
)


@pytest.mark.slow
@needs_mutual_tls
def test_processes_meet_by_mutual_tls(tmp_path, certificate):
    script = SCRIPT.format(arguments=[certificate], host="example.org")
    with Group(tmp_path, script, 2) as group:
        assert group.wait() == [0, 0]
        assert [group.output(n) for n in (0, 1)] == ["joined 0 2", "joined 1 2"]


@pytest.mark.slow
@needs_mutual_tls
def test_a_certificate_that_is_not_accepted_is_an_error(tmp_path, certificate):
    stranger = certificate | made_certificate(tmp_path, "second")
    stranger["mtls_ca_file"] = certificate["mtls_ca_file"]  # It trusts the others.
    for arguments, host, process, text in [
        ([certificate], "other.org", 0, "none begins with mtls_peer_uri_prefix"),
        ([certificate, stranger], "example.org", 1, "does not accept the certificate"),
    ]:
        script = SCRIPT.format(arguments=arguments, host=host)
        with Group(tmp_path, script, len(arguments)) as group:
            assert group.wait([process]) == [1]
            assert text in group.output(process)


def test_mutual_tls_that_is_required_must_be_given(unused_client):
    with pytest.raises(RuntimeError, match="verify_secure_credentials requires mutual TLS"):
        jax.distributed.initialize("localhost:1", 1, 0, verify_secure_credentials=True)
    with (
        options["jax_distributed_verify_secure_credentials"](True),
        pytest.raises(RuntimeError, match="verify_secure_credentials requires mutual TLS"),
    ):
        jax.distributed.initialize("localhost:1", 1, 0)


def test_all_files_of_mutual_tls_are_needed(unused_client):
    with pytest.raises(ValueError, match="mtls_key_file and mtls_ca_file is missing"):
        jax.distributed.initialize("localhost:1", 1, 0, mtls_cert_file="cert.pem")
    with (
        options["jax_mtls_key_file"]("key.pem"),
        pytest.raises(ValueError, match="mtls_cert_file and mtls_ca_file is missing"),
    ):
        jax.distributed.initialize("localhost:1", 1, 0)


def test_files_that_cannot_be_read_or_used_are_errors_at_once(unused_client):
    text = "mtls_cert_file is 'mtls_cert_file'" if supports_mutual_tls else "Install jaxlib 0.12"
    with pytest.raises(RuntimeError, match=text):
        jax.distributed.initialize("localhost:1", 1, 0, **{name: name for name in FILES})


def test_the_prefix_ends_with_a_slash(unused_client, certificate):
    with pytest.raises(ValueError, match="must end with '/'"):
        jax.distributed.initialize(
            "localhost:1", 1, 0, **certificate, mtls_peer_uri_prefix="spiffe://example.org"
        )
