"""Certificates for one measurement of links: made for it, and worth nothing once it is over."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from loadframe.fleet.identity import Identity

GOOD_FOR = datetime.timedelta(hours=1)
CLOCKS_OFF = datetime.timedelta(days=2)
"""Hosts whose clocks are off are what a check is to find: they can be measured all the same."""


class Authority:
    """Signs identities for as long as it exists."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Loadframe, one check")])
        self._certificate = self._signed(self._name, self._key.public_key(), authority=True)

    def identity(self, host: str) -> Identity:
        """A new one. host: its name in the fleet file."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._signed(name, key.public_key(), authority=False)
        told = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Identity(_pem(certificate), told.decode(), _pem(self._certificate))

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCKS_OFF)
            .not_valid_after(now + CLOCKS_OFF + GOOD_FOR)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        )
        if not authority:
            both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
