"""The protocol between a client of the bulk loader and the loader, over a stream socket.

A frame is its kind (one byte), the length of its body (uint32, little-endian) and the body. A connection carries one
file: FILE, any number of BLOCK, END from the client; the loader answers each BLOCK with TAKEN and END with LOADED, once
every row is committed. REFUSED (a sentence) ends it at any time. A client that hangs up before END takes its file back.
Only the standard library is used: a loader process is started for each file.
"""

import socket
import struct

HEAD = struct.Struct("<cI")
FILE, BLOCK, END, TAKEN, LOADED, REFUSED = b"F", b"B", b"E", b"T", b"L", b"R"
FILE_BODY = struct.Struct("<Q")
"""The number of a file, unique among all that are loaded."""
END_BODY = struct.Struct("<QQ")
"""How many rows the client sent, and the sum of their amounts, which must be those that the loader has."""
LONGEST = 1 << 24


class HungUpError(Exception):
    """The other side closed the connection between two frames or inside one."""


class OutOfStepError(Exception):
    """What was received is no frame, or not the one expected now."""


class Stream:
    """Frames in both directions over a connected socket, which it owns."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb", buffering=1 << 18)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """HungUpError where the other end has closed."""
        try:
            self._connection.sendall(HEAD.pack(kind, len(body)) + body)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise HungUpError from error

    def receive(self) -> tuple[bytes, bytes]:
        """Kind and body of the next frame. HungUpError, OutOfStepError."""
        kind, length = HEAD.unpack(self._exactly(HEAD.size))
        if length > LONGEST:
            raise OutOfStepError(f"a frame of {length} bytes; {LONGEST} is the longest")
        return kind, self._exactly(length)

    def expect(self, kind: bytes) -> bytes:
        """The body of the next frame. HungUpError; OutOfStepError for another kind."""
        received, body = self.receive()
        if received == REFUSED:
            raise OutOfStepError(body.decode("utf-8", "replace"))
        if received != kind:
            raise OutOfStepError(f"{received!r} came where {kind!r} should")
        return body

    def _exactly(self, length: int) -> bytes:
        try:
            data: bytes = self._reader.read(length)
        except ConnectionResetError as error:
            raise HungUpError from error
        if len(data) < length:
            raise HungUpError
        return data

    def hung_up(self) -> bool:
        """Whether the other side has closed the connection; what it sent before can still be received."""
        try:
            return self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._reader.close()
        self._connection.close()
