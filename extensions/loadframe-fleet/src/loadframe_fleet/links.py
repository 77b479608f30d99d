"""The capacity of a link between two hosts: round trips, and throughput in each direction, through one TLS connection,
whose listener cuts off whoever lacks this link's certificate. Keys are never in a command or on a disk. The receiver
counts. Encryption takes a CPU: where the busier end uses nearly a whole one, that limited the figure."""

import contextlib
import os
import socket
import ssl
import statistics
import struct
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM texts that both ends have."""

    certificate: str
    key: str

    def context(self, *, server: bool) -> ssl.SSLContext:
        """TLS 1.3 with this identity, accepting only the same one. ValueError for invalid texts."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = False  # no one else has the key
        made.verify_mode = ssl.CERT_REQUIRED
        try:
            made.load_verify_locations(cadata=self.certificate)
            file = os.memfd_create("identity")
            try:
                os.write(file, f"{self.key}\n{self.certificate}".encode())
                made.load_cert_chain(f"/proc/self/fd/{file}")
            finally:
                os.close(file)
        except ssl.SSLError as error:
            raise ValueError(f"this is no identity: {error}") from error
        return made


PINGS = 200
PINGS_FOR_S = 2.0
SEND_FOR_S = 1.0
PIECE = bytes(1 << 18)
HANDSHAKE_S = 5.0
SILENCE_S = 10.0
"""A link that carries nothing for so long has failed."""
MOST_AT_ONCE = 16
"""Concurrent handshakes: further connections wait."""
PING, DOWN, UP, DONE = b"P", b"D", b"U", b"E"
_COUNTED = struct.Struct("!dd")


class Listener:
    """Listens on one address until it is closed, or its time is over."""

    def __init__(self, address: str, identity: Identity, for_s: float) -> None:
        """OSError where the address is none of this host; ValueError for an invalid identity."""
        self._context = identity.context(server=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._ends = threading.Timer(for_s, self.close)
        self._ends.daemon = True
        self._room = threading.Semaphore(MOST_AT_ONCE)
        try:
            self._socket.bind((address, 0))
            self._socket.listen(MOST_AT_ONCE)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._ends.start()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Idempotent."""
        self._ends.cancel()
        with contextlib.suppress(OSError):  # it was closed
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            self._room.acquire()
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._speak, args=(peer,), daemon=True).start()

    def _speak(self, peer: socket.socket) -> None:
        try:
            peer.settimeout(HANDSHAKE_S)
            with self._context.wrap_socket(peer, server_side=True) as link:
                link.settimeout(SILENCE_S)
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while _answered(link):
                    pass
        except OSError:  # a stranger, or the other end has gone, which that end reports
            peer.close()
        finally:
            self._room.release()


def measure(address: str, port: int, identity: Identity) -> dict[str, float]:
    """The link from here to a listener, as in FleetLink. OSError (also ssl.SSLError) where it fails."""
    with (
        socket.create_connection((address, port), timeout=HANDSHAKE_S) as plain,
        identity.context(server=False).wrap_socket(plain) as link,
    ):
        link.settimeout(SILENCE_S)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        round_trips = sorted(_pinged(link))
        link.sendall(DOWN)
        cpu = _send(link)
        there, their_cpu = _COUNTED.unpack(_exactly(link, _COUNTED.size))
        there_cpu = max(cpu, their_cpu)
        link.sendall(UP)
        back, cpu = _receive(link)
        back_cpu = max(cpu, *struct.unpack("!d", _exactly(link, 8)))
        link.sendall(DONE)
    return {
        "round_trip_s": round_trips[0],
        "median_s": statistics.median(round_trips),
        "p99_s": round_trips[int(0.99 * (len(round_trips) - 1))],
        "pings": len(round_trips),
        "there_bytes_per_s": there,
        "back_bytes_per_s": back,
        "there_cpu": there_cpu,
        "back_cpu": back_cpu,
    }


def _pinged(link: ssl.SSLSocket) -> list[float]:
    trips_s: list[float] = []
    begun = time.monotonic()
    while len(trips_s) < PINGS and (not trips_s or time.monotonic() - begun < PINGS_FOR_S):
        at = time.perf_counter()
        link.sendall(PING)
        _exactly(link, 1)
        trips_s.append(time.perf_counter() - at)
    return trips_s


def _answered(link: ssl.SSLSocket) -> bool:
    command = _exactly(link, 1)
    if command == PING:
        link.sendall(PING)
    elif command == DOWN:
        link.sendall(_COUNTED.pack(*_receive(link)))
    elif command == UP:
        link.sendall(struct.pack("!d", _send(link)))
    return command in (PING, DOWN, UP)


def _send(link: ssl.SSLSocket) -> float:
    """Pieces for SEND_FOR_S, each preceded by its size, and one of size 0; the share of a CPU used."""
    begun, cpu = time.monotonic(), time.thread_time()
    while time.monotonic() - begun < SEND_FOR_S:
        link.sendall(struct.pack("!I", len(PIECE)))
        link.sendall(PIECE)
    link.sendall(struct.pack("!I", 0))
    return (time.thread_time() - cpu) / max(1e-9, time.monotonic() - begun)


def _receive(link: ssl.SSLSocket) -> tuple[float, float]:
    buffer = memoryview(bytearray(len(PIECE)))
    (left,) = struct.unpack("!I", _exactly(link, 4))
    begun, cpu, size = time.monotonic(), time.thread_time(), 0
    while left:
        if left > len(PIECE):
            raise OSError(f"a piece of {left:,} bytes")
        while left:
            got = link.recv_into(buffer[:left])
            if not got:
                raise ConnectionError("the other end has closed the link")
            left -= got
            size += got
        (left,) = struct.unpack("!I", _exactly(link, 4))
    lasted = time.monotonic() - begun
    return size / lasted if lasted > 0 else 0.0, (time.thread_time() - cpu) / max(1e-9, lasted)


def _exactly(link: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := link.recv(size - len(data))):
            raise ConnectionError("the other end has closed the link")
        data += more
    return data
