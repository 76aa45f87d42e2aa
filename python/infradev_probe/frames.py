"""Sealed frames over a stream socket: the one way by which the harness and the kit talk.

A frame is ``IDF1``, a sequence number, two lengths, a BLAKE2s seal over direction, numbers, header and payload, then a
JSON header and raw payload bytes (docs: protocol). A channel absorbs its key into a keyed hash state and forgets the
bytes; its functions hold that state and the socket's own C methods in closures, so that code that patches ``json``,
``socket`` or ``hashlib`` later changes nothing here. In a process of the code under test this raises the price of a
forgery and no more.
"""

from __future__ import annotations

import array
import hashlib
import json
import socket
import struct
from json import encoder as _encoder
from typing import Any, Callable, NamedTuple, Sequence

MAGIC = b"IDF1"
HEADER_LIMIT = 16 * 1024 * 1024
PAYLOAD_LIMIT = 1024 * 1024 * 1024
#: SCM_RIGHTS carries at most this many descriptors on Linux.
FD_LIMIT = 253
ZERO_KEY = bytes(32)
_PREFIX = struct.Struct("<4sIIQ16s")
_NUMBERS = struct.Struct("<IIQ")


class FrameError(Exception):
    """The other side broke the framing: wrong magic, seal, sequence, size or JSON. The channel can't be used again."""


class ChannelClosed(Exception):
    """The other side closed the channel between two frames."""


class Frame(NamedTuple):
    """One message: its ``type``, the whole header, the payload and any descriptors that came with the first byte."""

    type: str
    header: dict[str, Any]
    payload: bytearray
    fds: tuple[int, ...]


def json_writer() -> Callable[[Any], bytes]:
    """A function from plain values to UTF-8 JSON that keeps working when ``json`` is patched afterwards.

    NaN and infinities raise ``ValueError``; lone surrogates, which JSON can't carry, become ``?``.
    """

    def refuse(value: object) -> object:
        raise TypeError(f"{type(value).__name__} is not a plain JSON value")

    make = getattr(_encoder, "c_make_encoder", None)
    if make is not None:
        try:
            encode = make({}, refuse, _encoder.encode_basestring, None, ":", ",", False, False, False)
            join, to_bytes = "".join, str.encode
            return lambda value: to_bytes(join(encode(value, 0)), "utf-8", "replace")
        except TypeError:  # another Python's private signature: the public one below says the same, slower
            pass
    slow = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=refuse).encode
    return lambda value: slow(value).encode("utf-8", "replace")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


class Channel:
    """A connected socket with a key. ``send(header, payload=b"")``, ``receive()``, ``rekey(key)``, ``fileno()``.

    ``side`` is the direction byte of what this end sends: ``b"h"`` for the harness, ``b"r"`` for everyone else.
    Both calls block. ``receive`` raises :class:`ChannelClosed` at a clean end and :class:`FrameError` otherwise.
    """

    __slots__ = ("send", "receive", "rekey", "fileno", "close")

    send: Callable[..., None]
    receive: Callable[[], Frame]
    rekey: Callable[[bytes], None]
    fileno: Callable[[], int]
    close: Callable[[], None]

    def __init__(self, sock: socket.socket, key: bytes, side: bytes = b"r") -> None:
        self.send, self.receive, self.rekey = _open(sock, key, side)
        self.fileno, self.close = sock.fileno, sock.close


def _open(
    sock: socket.socket, key: bytes, side: bytes
) -> tuple[Callable[..., None], Callable[[], Frame], Callable[[bytes], None]]:
    if side not in (b"h", b"r"):
        raise ValueError("side is b'h' or b'r'")
    far = b"r" if side == b"h" else b"h"
    blake, write_json, read_json = hashlib.blake2s, json_writer(), json.JSONDecoder(parse_constant=_refuse_constant).decode
    recvmsg, recv_into, sendmsg = sock.recvmsg, sock.recv_into, sock.sendmsg
    pack, unpack, numbers = _PREFIX.pack, _PREFIX.unpack, _NUMBERS.pack
    space = socket.CMSG_SPACE(FD_LIMIT * array.array("i").itemsize)
    cloexec = getattr(socket, "MSG_CMSG_CLOEXEC", 0x40000000)
    keyed = blake(key=key, digest_size=16)
    sent = received = 0
    del key

    def rekey(key: bytes) -> None:
        nonlocal keyed
        if len(key) != 32:
            raise FrameError("a channel's key has 32 bytes")
        keyed = blake(key=key, digest_size=16)

    def seal(direction: bytes, seq: int, header: Any, payload: Any) -> bytes:
        state = keyed.copy()
        state.update(direction + numbers(seq, len(header), len(payload)))
        state.update(header)
        state.update(payload)
        return state.digest()

    def send(header: dict[str, Any], payload: Any = b"", fds: Sequence[int] = ()) -> None:
        nonlocal sent
        body = write_json(header)
        payload = memoryview(payload).cast("B") if len(payload) else b""
        if len(body) > HEADER_LIMIT:
            raise FrameError(f"a header of {len(body)} bytes is over the limit of {HEADER_LIMIT}")
        if len(payload) > PAYLOAD_LIMIT:
            raise FrameError(f"a payload of {len(payload)} bytes is over the limit of {PAYLOAD_LIMIT}")
        head = pack(MAGIC, sent, len(body), len(payload), seal(side, sent, body, payload)) + body
        sent += 1
        ancillary: list[Any] = []
        if fds:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        for part in (memoryview(head), memoryview(payload)):
            while len(part):
                part = part[sendmsg([part], ancillary) :]
                ancillary = []

    def fill(buffer: memoryview) -> None:
        while len(buffer):
            got = recv_into(buffer)
            if not got:
                raise FrameError("the channel ended inside a frame")
            buffer = buffer[got:]

    def receive() -> Frame:
        nonlocal received
        fds = array.array("i")
        start, ancillary, flags, _ = recvmsg(_PREFIX.size, space, cloexec)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        if not start:
            raise ChannelClosed("the channel was closed")
        if flags & socket.MSG_CTRUNC:
            raise FrameError("descriptors were lost on the way")
        prefix = bytearray(_PREFIX.size)
        prefix[: len(start)] = start
        fill(memoryview(prefix)[len(start) :])
        magic, seq, hlen, plen, seen = unpack(prefix)
        if magic != MAGIC:
            raise FrameError(f"a frame starts with {bytes(magic)!r}, not {MAGIC!r}")
        if seq != received:
            raise FrameError(f"frame {seq} came where {received} was due")
        if hlen > HEADER_LIMIT or plen > PAYLOAD_LIMIT:
            raise FrameError(f"a frame of {hlen} + {plen} bytes is over the limits")
        header, payload = bytearray(hlen), bytearray(plen)
        fill(memoryview(header))
        fill(memoryview(payload))
        if seal(far, seq, header, payload) != seen:
            raise FrameError(f"the seal of frame {seq} is wrong")
        received += 1
        try:
            value = read_json(header.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise FrameError(f"the header of frame {seq} is not JSON: {error}") from None
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise FrameError(f"the header of frame {seq} is not an object with a type")
        return Frame(value["type"], value, payload, tuple(fds))

    return send, receive, rekey
