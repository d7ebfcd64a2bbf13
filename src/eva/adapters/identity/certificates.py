"""Keys and certificates, as small as they can be: P-256, one level, one purpose each.

The authority signs exactly two kinds of certificate: that of the master, good for serving under the
name MASTER_NAME, and those of workers, good for dialling in, whose common name is the instance. A
worker's certificate can therefore never pass for the master.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from eva.model.errors import InputError, OperatorError
from eva.model.ids import InstanceId

MASTER_NAME = "eva-master"  # what workers expect the master's certificate to name, wherever it is
_LIFETIME = dt.timedelta(days=3_650)
_CLOCK_SLACK = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and the certificate of its public one, both as PEM."""

    key_pem: bytes
    certificate_pem: bytes


def new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def new_authority(cluster: str, now_ms: int) -> KeyPair:
    key_pem = new_key()
    key = _load_key(key_pem)
    name = _name(f"eva {cluster}")
    certificate = (
        _builder(name, name, key.public_key(), now_ms)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(key_pem, _pem(certificate))


def master_certificate(authority: KeyPair, hosts: Sequence[str], now_ms: int) -> KeyPair:
    key_pem = new_key()
    names: list[x509.GeneralName] = [x509.DNSName(MASTER_NAME)]
    names += [_general_name(host) for host in hosts]
    certificate = _signed(
        authority,
        MASTER_NAME,
        _load_key(key_pem).public_key(),
        ExtendedKeyUsageOID.SERVER_AUTH,
        names,
        now_ms,
    )
    return KeyPair(key_pem, certificate)


def new_request(key_pem: bytes, instance: InstanceId) -> bytes:
    """A worker's request for a certificate."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(instance))
    return builder.sign(_load_key(key_pem), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )


def worker_certificate(
    authority: KeyPair, csr_pem: bytes, instance: InstanceId, now_ms: int
) -> bytes:
    """A certificate for the key of the request, in the name that we say, whatever it asks for."""
    public = _requested_key(csr_pem)
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    names = [x509.DNSName("eva-worker")]
    return _signed(authority, instance, public, usage, names, now_ms)


def key_fingerprint(csr_pem: bytes) -> str:
    """Which key a request is for: a token used once may be used again by the same key alone."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(
        _requested_key(csr_pem).public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return digest.finalize().hex()


def _requested_key(csr_pem: bytes) -> ec.EllipticCurvePublicKey:
    try:
        request = x509.load_pem_x509_csr(csr_pem)
        if not request.is_signature_valid:
            raise ValueError("it is not signed by its own key")
        public = request.public_key()
    except (ValueError, InvalidSignature) as error:
        raise InputError.single("csr", f"not a certificate request: {error}") from error
    if not isinstance(public, ec.EllipticCurvePublicKey) or public.curve.name != "secp256r1":
        raise InputError.single("csr", "the key must be on the curve P-256")
    return public


def _signed(
    authority: KeyPair,
    name: str,
    public: ec.EllipticCurvePublicKey,
    usage: x509.ObjectIdentifier,
    names: Sequence[x509.GeneralName],
    now_ms: int,
) -> bytes:
    signer = x509.load_pem_x509_certificate(authority.certificate_pem)
    key = _load_key(authority.key_pem)
    certificate = (
        _builder(_name(name), signer.subject, public, now_ms)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, now_ms: int
) -> x509.CertificateBuilder:
    now = dt.datetime.fromtimestamp(now_ms / 1_000, tz=dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    except ValueError as error:
        raise InputError.single(
            "instance", f"{text!r} cannot be the name in a certificate: {error}"
        ) from error


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise OperatorError(
            f"the private key is a {type(key).__name__} and not one on P-256, as Eva makes them: "
            "restore the key that stood there, or remove the identity folder to begin anew"
        )
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
