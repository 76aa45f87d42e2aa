"""Arrays on the way: the safetensors format by hand, numpy arrays and torch tensors to and from it.

Format: https://huggingface.co/docs/safetensors/index#format — 8 bytes little-endian header length, a JSON header
``{name: {"dtype", "shape", "data_offsets"}}``, then the data without gaps. By hand because the task's environment need
not have the package, and because ``safetensors.numpy`` refuses BF16 and FP8. numpy (with ml_dtypes for those) serves the
judge; torch the ranks, or numpy there too. Neither is imported unless it is used.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
import sys
from typing import Any, Callable, NamedTuple

from . import trees
from .trees import BadTree, Unencodable

#: safetensors dtype -> (bytes per element, numpy name, ml_dtypes name, torch name)
_DTYPES: dict[str, tuple[int, str | None, str | None, str]] = {
    "BOOL": (1, "?", None, "bool"),
    "U8": (1, "<u1", None, "uint8"),
    "I8": (1, "<i1", None, "int8"),
    "F8_E5M2": (1, None, "float8_e5m2", "float8_e5m2"),
    "F8_E4M3": (1, None, "float8_e4m3fn", "float8_e4m3fn"),
    "F8_E8M0": (1, None, "float8_e8m0fnu", "float8_e8m0fnu"),
    "I16": (2, "<i2", None, "int16"),
    "U16": (2, "<u2", None, "uint16"),
    "F16": (2, "<f2", None, "float16"),
    "BF16": (2, None, "bfloat16", "bfloat16"),
    "I32": (4, "<i4", None, "int32"),
    "U32": (4, "<u4", None, "uint32"),
    "F32": (4, "<f4", None, "float32"),
    "I64": (8, "<i8", None, "int64"),
    "U64": (8, "<u8", None, "uint64"),
    "F64": (8, "<f8", None, "float64"),
    "C64": (8, "<c8", None, "complex64"),
}
_BY_NAME = {torch_name: dtype for dtype, (_, _, _, torch_name) in _DTYPES.items()}
HEADER_LIMIT = 16 * 1024 * 1024
TENSOR_LIMIT = 65_536
_RANK_LIMIT = 32


class Leaf(NamedTuple):
    """One array at rest: safetensors dtype, shape, little-endian row-major bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: Any


def pack(leaves: dict[str, Leaf]) -> bytes:
    """The safetensors file of named leaves; no bytes at all for none."""
    if not leaves:
        return b""
    header: dict[str, Any] = {}
    offset = 0
    # widest elements first, as the library writes them, so that each array is aligned
    order = sorted(leaves, key=lambda name: -_DTYPES[leaves[name].dtype][0])
    for name in order:
        leaf = leaves[name]
        end = offset + len(leaf.data)
        header[name] = {"dtype": leaf.dtype, "shape": list(leaf.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(leaves[name].data for name in order)])


def unpack(payload: Any) -> dict[str, Leaf]:
    """The leaves of a safetensors file from anyone; whatever is off in it raises :class:`BadTree`."""
    view = memoryview(payload).cast("B") if len(payload) else memoryview(b"")
    if not len(view):
        return {}
    if len(view) < 8:
        raise BadTree("a payload shorter than its header length")
    (length,) = struct.unpack("<Q", view[:8])
    if length > HEADER_LIMIT or 8 + length > len(view):
        raise BadTree(f"a tensor header of {length} bytes in a payload of {len(view)}")
    try:
        header = json.loads(bytes(view[8 : 8 + length]).decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise BadTree(f"the tensor header is not JSON: {error}") from None
    if not isinstance(header, dict) or len(header) > TENSOR_LIMIT:
        raise BadTree("the tensor header is not an object of bounded size")
    header.pop("__metadata__", None)
    data, spans, leaves = view[8 + length :], [], {}
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry)
        if end > len(data) or math.prod(shape) * _DTYPES[dtype][0] != end - begin:
            raise BadTree(f"tensor {name!r:.80}: its offsets do not fit its shape or the payload")
        spans.append((begin, end))
        leaves[name] = Leaf(dtype, shape, data[begin:end])
    spans.sort()
    edge = 0
    for begin, end in spans:
        if begin != edge:
            raise BadTree("the tensors overlap or leave gaps")
        edge = end
    if edge != len(data):
        raise BadTree("the payload is longer than its tensors")
    return leaves


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key comes twice")
    return result


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise BadTree(f"tensor {name!r:.80}: not dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    numbers = [shape, offsets] if isinstance(shape, list) and isinstance(offsets, list) else None
    if not isinstance(dtype, str) or dtype not in _DTYPES or numbers is None:
        raise BadTree(f"tensor {name!r:.80}: unknown dtype {dtype!r:.40} or no lists")
    if len(shape) > _RANK_LIMIT or len(offsets) != 2 or not all(type(n) is int and 0 <= n < 2**48 for n in shape + offsets):
        raise BadTree(f"tensor {name!r:.80}: sizes that can't be")
    return dtype, tuple(shape), offsets[0], offsets[1]


# -- numpy -----------------------------------------------------------------------------------------------------------


def numpy_dtype(dtype: str) -> Any:
    """The numpy dtype of a safetensors name; BF16 and FP8 are ml_dtypes'."""
    import numpy

    _, plain, extended, _ = _DTYPES[dtype]
    if plain is not None:
        return numpy.dtype(plain)
    import ml_dtypes

    return numpy.dtype(getattr(ml_dtypes, str(extended)))


def to_numpy(leaf: Leaf) -> Any:
    """A numpy array of its own, writable."""
    import numpy

    return numpy.frombuffer(bytearray(leaf.data), dtype=numpy_dtype(leaf.dtype)).reshape(leaf.shape)


def from_numpy(array: Any, place: str = "value") -> Leaf:
    """The leaf of a numpy array; object, string and other dtypes without a counterpart raise."""
    import numpy

    dtype = _BY_NAME.get(array.dtype.name)
    if dtype is None:
        raise Unencodable(f"{place} is an array of dtype {array.dtype}, which has no safetensors counterpart")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return Leaf(dtype, tuple(array.shape), numpy.ascontiguousarray(array).tobytes())


def _numpy_leaf(value: Any, place: str) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return from_numpy(value, place)
    if isinstance(value, numpy.generic):
        if value.dtype.kind in "biuf":
            return value.item()
        if value.dtype.name in _BY_NAME and value.dtype.kind != "c":
            return float(value)
    return None


# -- torch -----------------------------------------------------------------------------------------------------------


def to_torch(leaf: Leaf, device: Any = None) -> Any:
    """A torch tensor of its own memory, on ``device``."""
    torch: Any = sys.modules["torch"]
    dtype = getattr(torch, _DTYPES[leaf.dtype][3], None)
    if dtype is None:
        raise BadTree(f"this torch has no dtype for {leaf.dtype}")
    if not len(leaf.data):
        return torch.empty(leaf.shape, dtype=dtype, device=device)
    tensor = torch.frombuffer(bytearray(leaf.data), dtype=dtype).reshape(leaf.shape)
    return tensor if device is None else tensor.to(device)


def from_torch(tensor: Any, place: str = "value") -> Leaf:
    """The leaf of a plain dense tensor, from whatever device it is on."""
    torch: Any = sys.modules["torch"]
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise Unencodable(f"{place} is a {type(tensor).__name__}: return its local or full plain tensor")
    dtype = _BY_NAME.get(str(tensor.dtype).partition(".")[2])
    if dtype is None or tensor.layout != torch.strided or tensor.is_meta:
        raise Unencodable(f"{place} is a {tensor.layout} tensor of {tensor.dtype} on {tensor.device}: not dense and plain")
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    size = plain.numel() * plain.element_size()
    return Leaf(dtype, tuple(plain.shape), ctypes.string_at(plain.data_ptr(), size) if size else b"")


def _any_leaf(value: Any, place: str) -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return from_torch(value, place)
    return _numpy_leaf(value, place)


# -- trees and payloads together ---------------------------------------------------------------------------------------


def encode(value: Any) -> tuple[Any, bytes]:
    """(tree, payload) of a value with torch tensors and numpy arrays in it."""
    tree, leaves = trees.encode(value, _any_leaf)
    return tree, pack(leaves)


def decode(tree: Any, payload: Any, make: Callable[[Leaf], Any]) -> Any:
    """The value of a tree and its payload; ``make`` turns leaves into arrays (:func:`to_numpy`, :func:`to_torch`)."""
    return trees.decode(tree, {name: make(leaf) for name, leaf in unpack(payload).items()})
