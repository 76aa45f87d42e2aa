"""Typed trees: plain Python values as JSON that comes back as the same values, arrays set aside as named leaves.

``{"$array": name}`` an array · ``{"$tuple": [...]}`` · ``{"$bytes": base64}`` · ``{"$float": "nan"|"inf"|"-inf"}`` ·
``{"$int": decimal}`` beyond 2**53 · ``{"$dict": [[key, value], ...]}`` where a key is no string or starts with ``$``.
All else is plain JSON. Nothing here runs code that a message names; decoding takes bytes from anyone.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, Callable, Mapping

#: Bounds on both ways: nesting, values in one tree, characters of an integer.
DEPTH_LIMIT, NODE_LIMIT, DIGIT_LIMIT = 64, 1_000_000, 4_000
_EXACT = 2**53
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Unencodable(TypeError):
    """A value that is neither plain nor an array; the message names its place and type."""


class BadTree(ValueError):
    """A tree that does not follow the format."""


def encode(value: Any, leaf: Callable[[Any, str], Any]) -> tuple[Any, dict[str, Any]]:
    """(tree, leaves by name). ``leaf(value, place)`` returns what to store for an array, or None if it is none."""
    leaves: dict[str, Any] = {}
    count = 0

    def walk(item: Any, place: str, depth: int) -> Any:
        nonlocal count
        count += 1
        if depth > DEPTH_LIMIT or count > NODE_LIMIT:
            raise Unencodable(f"{place}: deeper than {DEPTH_LIMIT} levels, or more than {NODE_LIMIT} values")
        if item is None or isinstance(item, bool):
            return item
        if isinstance(item, str):
            text = str(item)
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise Unencodable(f"{place}: a string with lone surrogates") from None
            return text
        if isinstance(item, int):
            number = int(item)
            if abs(number) <= _EXACT:
                return number
            if number.bit_length() > DIGIT_LIMIT * 3:
                raise Unencodable(f"{place}: an integer of more than {DIGIT_LIMIT} digits")
            return {"$int": str(number)}
        stored = leaf(item, place)
        if stored is not None:
            if isinstance(stored, (bool, int, float)):  # a numpy scalar
                return walk(stored, place, depth)
            name = f"a{len(leaves)}"
            leaves[name] = stored
            return {"$array": name}
        if isinstance(item, float):
            number_ = float(item)
            if math.isfinite(number_):
                return number_
            return {"$float": "nan" if number_ != number_ else "inf" if number_ > 0 else "-inf"}
        if isinstance(item, (bytes, bytearray)):
            return {"$bytes": base64.b64encode(bytes(item)).decode("ascii")}
        if isinstance(item, tuple):
            return {"$tuple": [walk(part, f"{place}[{i}]", depth + 1) for i, part in enumerate(item)]}
        if isinstance(item, list):
            return [walk(part, f"{place}[{i}]", depth + 1) for i, part in enumerate(item)]
        if isinstance(item, dict):
            plain = all(isinstance(key, str) and not key.startswith("$") for key in item)
            if plain:
                return {walk(k, place, depth + 1): walk(v, f"{place}[{k!r}]", depth + 1) for k, v in item.items()}
            return {
                "$dict": [
                    [walk(k, f"{place} key", depth + 1), walk(v, f"{place}[{k!r:.80}]", depth + 1)] for k, v in item.items()
                ]
            }
        kind = type(item)
        raise Unencodable(
            f"{place} is a {kind.__module__}.{kind.__qualname__}; an observer takes and returns None, bool, int, float, str, "
            "bytes, list, tuple, dict and arrays"
        )

    return walk(value, "value", 0), leaves


def decode(tree: Any, arrays: Mapping[str, Any]) -> Any:
    """The value of a tree. Each of ``arrays`` must be named exactly once; anything off raises :class:`BadTree`."""
    left = set(arrays)
    count = 0

    def tagged(tag: str, body: Any, depth: int) -> Any:
        if tag == "$array":
            if not isinstance(body, str) or body not in left:
                raise BadTree(f"$array {body!r:.80} names no array, or one already used")
            left.discard(body)
            return arrays[body]
        if tag == "$tuple" and isinstance(body, list):
            return tuple(walk(part, depth + 1) for part in body)
        if tag == "$bytes" and isinstance(body, str):
            try:
                return base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError):
                raise BadTree("$bytes is not base64") from None
        if tag == "$float" and isinstance(body, str) and body in _FLOATS:
            return _FLOATS[body]
        if tag == "$int" and isinstance(body, str) and len(body) <= DIGIT_LIMIT:
            if (body[1:] if body.startswith("-") else body).isdecimal() and body.isascii():
                return int(body)
        if tag == "$dict" and isinstance(body, list):
            pairs = {}
            for pair in body:
                if not isinstance(pair, list) or len(pair) != 2:
                    raise BadTree("$dict holds something else than pairs")
                key = walk(pair[0], depth + 1)
                try:
                    if key in pairs:
                        raise BadTree(f"$dict has the key {key!r:.80} twice")
                    pairs[key] = walk(pair[1], depth + 1)
                except TypeError:
                    raise BadTree("$dict has a key that can't be one") from None
            return pairs
        raise BadTree(f"{tag!r:.80} with {type(body).__name__} is not part of the format")

    def walk(item: Any, depth: int) -> Any:
        nonlocal count
        count += 1
        if depth > DEPTH_LIMIT or count > NODE_LIMIT:
            raise BadTree(f"deeper than {DEPTH_LIMIT} levels, or more than {NODE_LIMIT} values")
        if item is None or isinstance(item, (bool, int, str)):
            return item
        if isinstance(item, float):
            if not math.isfinite(item):
                raise BadTree("a bare number that is not finite")
            return item
        if isinstance(item, list):
            return [walk(part, depth + 1) for part in item]
        if isinstance(item, dict):
            for key in item:
                if isinstance(key, str) and key.startswith("$"):
                    if len(item) != 1:
                        raise BadTree(f"{key!r:.80} beside other keys")
                    return tagged(key, item[key], depth)
                if not isinstance(key, str):
                    raise BadTree("a key that is no string")
            return {key: walk(part, depth + 1) for key, part in item.items()}
        raise BadTree(f"a {type(item).__name__} is not JSON")

    value = walk(tree, 0)
    if left:
        raise BadTree(f"{len(left)} arrays of the payload are named nowhere")
    return value
