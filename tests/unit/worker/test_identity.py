"""Authority, tokens and bootstraps."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eva.adapters.identity.authority import Authority
from eva.adapters.identity.bootstrap import Bootstrap, decode_bootstrap
from eva.adapters.identity.certificates import MASTER_NAME, new_key, new_request
from eva.adapters.identity.tokens import TokenProblem, TokenRefusedError
from eva.model.errors import InputError, OperatorError
from eva.model.ids import InstanceId

I7, I8 = InstanceId("i-7"), InstanceId("i-8")
NOW_MS = 1_800_000_000_000


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "identity", "test", ["127.0.0.1", "master.example"], NOW_MS)


def refused(authority: Authority, instance: InstanceId, token: str, now_ms: int = NOW_MS) -> object:
    with pytest.raises(TokenRefusedError) as caught:
        authority.join(instance, token, new_request(new_key(), instance), now_ms)
    return caught.value.problem


def test_a_certificate_names_the_instance_and_is_good_for_dialling_in_alone(
    authority: Authority,
) -> None:
    request = new_request(new_key(), I8)  # what it asks to be called counts for nothing
    pem = authority.join(I7, authority.issue_token(I7, NOW_MS), request, NOW_MS)
    certificate = x509.load_pem_x509_certificate(pem)
    assert certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "i-7"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))


def test_the_masters_certificate_names_its_hosts(authority: Authority) -> None:
    certificate = x509.load_pem_x509_certificate(authority.master.certificate_pem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [MASTER_NAME, "master.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_a_token_is_refused_when_unknown_used_expired_or_revoked(authority: Authority) -> None:
    assert refused(authority, I7, "guess") is TokenProblem.UNKNOWN
    token = authority.issue_token(I7, NOW_MS, lifetime_ms=1_000)
    assert refused(authority, I8, token) is TokenProblem.UNKNOWN
    assert refused(authority, I7, token, NOW_MS + 1_001) is TokenProblem.EXPIRED
    authority.join(I7, token, new_request(new_key(), I7), NOW_MS + 1_000)
    assert refused(authority, I7, token) is TokenProblem.USED
    fresh = authority.issue_token(I8, NOW_MS)
    authority.revoke(I8)
    assert refused(authority, I8, fresh) is TokenProblem.UNKNOWN
    late = authority.issue_token(I8, NOW_MS)
    assert refused(authority, I8, late) is TokenProblem.REVOKED
    with pytest.raises(TokenRefusedError):
        authority.check(I8)
    authority.check(I7)


def test_the_same_key_may_ask_again(authority: Authority) -> None:
    token, request = authority.issue_token(I7, NOW_MS), new_request(new_key(), I7)
    for _ in range(2):
        authority.join(I7, token, request, NOW_MS)


@pytest.mark.parametrize("csr", [b"", b"nonsense"])
def test_nonsense_is_no_request(authority: Authority, csr: bytes) -> None:
    with pytest.raises(InputError, match="certificate request"):
        authority.join(I7, authority.issue_token(I7, NOW_MS), csr, NOW_MS)


def test_other_kinds_of_keys_are_refused(authority: Authority) -> None:
    key = rsa.generate_private_key(65_537, 2_048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(OperatorError, match="P-256"):
        new_request(pem, I7)


def test_it_is_the_same_after_a_restart_and_tokens_too(
    authority: Authority, tmp_path: Path
) -> None:
    token = authority.issue_token(I7, NOW_MS)
    authority.close()
    again = Authority(tmp_path / "identity", "test", [], NOW_MS)
    assert again.certificate_pem == authority.certificate_pem
    again.join(I7, token, new_request(new_key(), I7), NOW_MS)


def test_nothing_secret_can_be_read_by_others_and_tokens_are_not_kept(
    authority: Authority, tmp_path: Path
) -> None:
    token = authority.issue_token(I7, NOW_MS)
    for path in (tmp_path / "identity").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert token.encode() not in path.read_bytes()


def test_a_key_that_others_could_read_is_refused(authority: Authority, tmp_path: Path) -> None:
    authority.close()
    (tmp_path / "identity/authority.key").chmod(0o644)
    with pytest.raises(OperatorError, match="can be read by others"):
        Authority(tmp_path / "identity", "test", [], NOW_MS)


def test_a_bootstrap_survives_being_a_word() -> None:
    bootstrap = Bootstrap("c", I7, "h:1", "h:2", "PEM", "secret", "s3://b/p", "docker")
    assert decode_bootstrap(f" {bootstrap.encode()}\n") == bootstrap
    assert "secret" not in repr(bootstrap)


@pytest.mark.parametrize("text", ["", "eva1.", "eva1.!!!", "eva1.e30=", "hello"])
def test_what_is_no_bootstrap_is_said_to_be_none(text: str) -> None:
    with pytest.raises(InputError, match="not a bootstrap"):
        decode_bootstrap(text)
