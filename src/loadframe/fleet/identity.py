"""Who may speak over a link that is measured: both ends show a certificate of one check's authority (mutual TLS). The
keys are in memory and in the agents' own connections: never an argument of a command, never on a disk."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM texts: one host's certificate and key, and the authority that both ends trust."""

    certificate: str
    key: str
    authority: str

    def context(self, *, server: bool) -> ssl.SSLContext:
        """TLS 1.3 with this identity, that accepts the same authority's alone. ValueError for texts that are none."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = False  # the authority signs nothing else
        made.verify_mode = ssl.CERT_REQUIRED
        try:
            made.load_verify_locations(cadata=self.authority)
            file = os.memfd_create("identity")
            try:
                os.write(file, f"{self.key}\n{self.certificate}".encode())
                made.load_cert_chain(f"/proc/self/fd/{file}")
            finally:
                os.close(file)
        except ssl.SSLError as error:
            raise ValueError(f"this is no identity: {error}") from error
        return made
