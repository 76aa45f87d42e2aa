"""Frames: what is sealed comes through, what was touched does not."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import threading
from typing import Callable, Iterator

import pytest

from infradev_probe.frames import MAGIC, Channel, ChannelClosed, FrameError

KEY = bytes(range(32))
Pair = tuple[Channel, Channel, socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours, KEY, b"h"), Channel(theirs, KEY), ours, theirs


def frame(seq: int = 0, side: bytes = b"h", key: bytes = KEY, header: bytes = b'{"type":"x"}', payload: bytes = b"") -> bytes:
    """A frame by the text of the protocol, without the kit's code."""
    numbers = struct.pack("<I", seq) + struct.pack("<I", len(header)) + struct.pack("<Q", len(payload))
    seal = hashlib.blake2s(side + numbers + header + payload, key=key, digest_size=16).digest()
    return b"IDF1" + numbers + seal + header + payload


def test_a_frame_of_the_protocol_s_text_is_read(pair: Pair) -> None:
    _, reader, ours, _ = pair
    ours.sendall(frame(header='{"type":"x","é":[1,2.5,null]}'.encode(), payload=b"abc") + frame(seq=1))
    first, second = reader.receive(), reader.receive()
    assert first.header == {"type": "x", "é": [1, 2.5, None]} and bytes(first.payload) == b"abc"
    assert second.type == "x"


def test_what_is_sent_is_a_frame_of_the_protocol_s_text(pair: Pair) -> None:
    _, writer, ours, _ = pair
    writer.send({"type": "report", "n": 1})
    writer.send({"type": "é"}, b"xy")
    expected = frame(0, b"r", header=b'{"type":"report","n":1}') + frame(1, b"r", header='{"type":"é"}'.encode(), payload=b"xy")
    assert ours.recv(4096) == expected


TAMPERED: dict[str, Callable[[bytes], bytes]] = {
    "magic": lambda raw: b"IDF2" + raw[4:],
    "sequence": lambda raw: raw[:4] + struct.pack("<I", 1) + raw[8:],
    "seal": lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:],
    "header": lambda raw: raw[:-4] + b"y" + raw[-3:],
    "direction": lambda raw: frame(side=b"r", payload=b"a"),
    "key": lambda raw: frame(key=bytes(32), payload=b"a"),
    "no JSON": lambda raw: frame(header=b"{type:1}"),
    "no type": lambda raw: frame(header=b'{"kind":"x"}'),
    "no object": lambda raw: frame(header=b"[]"),
    "NaN": lambda raw: frame(header=b'{"type":"x","v":NaN}'),
    "deep": lambda raw: frame(header=b'{"type":"x","v":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no UTF-8": lambda raw: frame(header=b'{"type":"\xff"}'),
    "huge header": lambda raw: MAGIC + struct.pack("<IIQ", 0, 2**25, 0) + bytes(16),
    "huge payload": lambda raw: MAGIC + struct.pack("<IIQ", 0, 2, 2**40) + bytes(16),
    "cut": lambda raw: raw[:-2],
}


@pytest.mark.parametrize("way", TAMPERED)
def test_a_frame_that_was_touched_is_refused(pair: Pair, way: str) -> None:
    _, reader, ours, _ = pair
    raw = TAMPERED[way](frame(payload=b"a"))
    thread = threading.Thread(target=lambda: (ours.sendall(raw), ours.shutdown(socket.SHUT_WR)))
    thread.start()
    with pytest.raises(FrameError):
        reader.receive()
    thread.join()


def test_a_replayed_frame_is_refused(pair: Pair) -> None:
    _, reader, ours, _ = pair
    ours.sendall(frame() + frame())
    reader.receive()
    with pytest.raises(FrameError, match="frame 0 came where 1 was due"):
        reader.receive()


def test_a_clean_end_is_told_from_a_cut(pair: Pair) -> None:
    _, reader, ours, _ = pair
    ours.shutdown(socket.SHUT_WR)
    with pytest.raises(ChannelClosed):
        reader.receive()


def test_large_payloads_pass_whole(pair: Pair) -> None:
    writer, reader, _, _ = pair
    payload = os.urandom(5_000_000)
    thread = threading.Thread(target=lambda: writer.send({"type": "x"}, payload))
    thread.start()
    assert bytes(reader.receive().payload) == payload
    thread.join()


def test_a_message_over_the_limits_is_not_begun(pair: Pair) -> None:
    writer, reader, _, _ = pair
    with pytest.raises(FrameError, match="over the limit"):
        writer.send({"type": "x", "text": "a" * (16 * 1024 * 1024)})
    writer.send({"type": "x"})
    assert reader.receive().type == "x"


def test_descriptors_come_with_the_first_byte_of_their_frame(pair: Pair) -> None:
    writer, reader, _, _ = pair
    r, w = os.pipe()
    writer.send({"type": "plain"})
    writer.send({"type": "launch"}, b"p" * 1000, fds=[w] * 253)
    writer.send({"type": "plain"})
    assert reader.receive().fds == ()
    got = reader.receive()
    assert len(got.fds) == 253 and len(got.payload) == 1000
    assert not os.get_inheritable(got.fds[0])
    os.write(got.fds[7], b"x")
    assert os.read(r, 1) == b"x"
    for fd in (r, w, *got.fds):
        os.close(fd)
    assert reader.receive().fds == ()


@pytest.mark.parametrize("text", ["é\u2028\U0001f600", "\x00\x1f\"\\/", "a" * 100_000])
def test_strings_are_json_of_any_reader(pair: Pair, text: str) -> None:
    _, writer, ours, _ = pair
    writer.send({"type": "x", "text": text})
    raw = bytearray()
    while len(raw) < 36 or len(raw) < 36 + struct.unpack("<I", raw[8:12])[0]:
        raw += ours.recv(1 << 20)
    assert json.loads(raw[36:])["text"] == text


def test_a_lone_surrogate_does_not_break_the_json(pair: Pair) -> None:
    writer, reader, _, _ = pair
    writer.send({"type": "x", "text": "a\udc80b"})
    assert reader.receive().header["text"] == "a?b"
