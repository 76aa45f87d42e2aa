"""Trees and arrays: every plain value comes back as itself, and nothing hostile gets in."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

from infradev_probe import tensors, trees
from infradev_probe.tensors import Leaf
from infradev_probe.trees import BadTree, Unencodable


def through_json(value: Any) -> Any:
    tree, payload = tensors.encode(value)
    return tensors.decode(json.loads(json.dumps(tree, allow_nan=False)), payload, tensors.to_numpy)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return isinstance(b, float) and (struct.pack("<d", a) == struct.pack("<d", b) or a != a and b != b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


PLAIN: list[Any] = [
    None, True, False, 0, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**64, 10**300, 0.0, -0.0, 1.5, 1e-320, math.nan, math.inf,
    -math.inf, "", "é\u2028", "\x00", "$array", b"", b"\x00\xff", [], (), {}, (1, (2, [3])), {"$array": 1}, {"a": {"$": 2}},
    {1: "int", None: 2, (1, 2): 3, b"k": 4, 1.5: 5, True + 5: 6}, {"a": [1, {"b": (None,)}]},
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:40])
def test_a_plain_value_comes_back_as_itself(value: Any) -> None:
    assert same(value, through_json(value))


NUMPY = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64"]
EXTENDED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name) if name in EXTENDED else name)


@pytest.mark.parametrize("name", NUMPY + EXTENDED)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)], ids=str)
def test_an_array_comes_back_bit_for_bit(name: str, shape: tuple[int, ...]) -> None:
    dtype = dtype_of(name)
    raw = np.random.default_rng(0).integers(0, 2 if name == "bool" else 256, (*shape, dtype.itemsize), dtype=np.uint8)
    array = np.frombuffer(raw.tobytes(), dtype=dtype).reshape(shape)
    assert same({"x": [array, array]}, through_json({"x": [array, array]}))


def test_random_trees_come_back_as_themselves() -> None:
    chooser = random.Random(7)

    def grow(depth: int) -> Any:
        kind = chooser.randrange(8 if depth else 5)
        if kind == 5:
            return [grow(depth - 1) for _ in range(chooser.randrange(4))]
        if kind == 6:
            return tuple(grow(depth - 1) for _ in range(chooser.randrange(4)))
        if kind == 7:
            return {chooser.choice(["a", "$b", "c", 4, None, (1,)]): grow(depth - 1) for _ in range(chooser.randrange(4))}
        if kind == 4:
            return np.arange(chooser.randrange(5), dtype=chooser.choice(NUMPY[1:]))
        return chooser.choice(PLAIN)

    for _ in range(500):
        value = grow(4)
        assert same(value, through_json(value)), value


def test_views_and_big_endian_arrays_are_read_by_value() -> None:
    base = np.arange(24.0).reshape(4, 6)
    got = through_json([base.T, base[::2, 1:3], base.astype(">f8"), np.asfortranarray(base)])
    for a, b in zip(got, [base.T, base[::2, 1:3], base, base]):
        assert np.array_equal(a, b) and a.dtype == np.float64 and a.flags.writeable


def test_numpy_scalars_become_plain_numbers() -> None:
    value = [np.float32(2.5), np.int64(-3), np.bool_(True), np.float64(1.5), ml_dtypes.bfloat16(0.5)]
    assert same([2.5, -3, True, 1.5, 0.5], through_json(value))


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 1j, lambda: 1, "\udc80", np.array([object()]), np.array(["a"]), np.zeros(2, "complex128"), 10**20_000],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_by_place_and_type(value: Any) -> None:
    with pytest.raises(Unencodable, match=r"value\['a'\]\[1\]"):
        tensors.encode({"a": [0, value]})


def test_a_tree_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Unencodable, match="deeper"):
        tensors.encode(loop)


BAD_TREES: list[Any] = [
    {"$array": "a0"}, {"$array": "b"}, {"$array": 1}, {"$array": []}, {"$tuple": {}}, {"$bytes": "é"}, {"$bytes": "a"}, {"$bytes": 1},
    {"$float": "1"}, {"$float": 1.0}, {"$int": "1e5"}, {"$int": "0x1"}, {"$int": "١"}, {"$int": "9" * 5000}, {"$int": 5},
    {"$dict": [[1]]}, {"$dict": [[[1], 2]]}, {"$dict": [["a", 1], ["a", 2]]}, {"$dict": {}}, {"$dict": [[{"a": 1}, 1]]},
    {"$else": 1}, {"$tuple": [], "a": 1}, {"a": 1, "$tuple": []}, math.nan, {1: 2}, (1,), {"$": 1},
]  # fmt: skip


@pytest.mark.parametrize("tree", BAD_TREES, ids=lambda tree: repr(tree)[:40])
def test_a_tree_off_the_format_is_refused(tree: Any) -> None:
    with pytest.raises(BadTree):
        trees.decode(tree, {})


def test_each_array_is_named_exactly_once() -> None:
    with pytest.raises(BadTree, match="already used"):
        trees.decode([{"$array": "a"}, {"$array": "a"}], {"a": 1})
    with pytest.raises(BadTree, match="named nowhere"):
        trees.decode([], {"a": 1})


def test_a_deep_tree_is_refused() -> None:
    tree: Any = 1
    for _ in range(100):
        tree = [tree]
    with pytest.raises(BadTree, match="deeper"):
        trees.decode(tree, {})


def safe(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


BAD_PAYLOADS: dict[str, bytes] = {
    "short": b"\x01\x02",
    "length past the end": safe({}, length=100),
    "length of 2**63": safe({}, length=2**63),
    "no JSON": safe(b"{"),
    "no UTF-8": safe(b'{"\xff":1}'),
    "no object": safe([]),
    "deep": safe(b"[" * 200_000),
    "double key": safe(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "unknown dtype": safe({"a": entry("F128")}, bytes(4)),
    "dtype no string": safe({"a": entry(["F32"])}, bytes(4)),
    "more keys": safe({"a": entry(extra=1)}, bytes(4)),
    "too few keys": safe({"a": {"dtype": "F32"}}, bytes(4)),
    "shape too large": safe({"a": entry(shape=[2])}, bytes(4)),
    "shape overflows": safe({"a": entry(shape=[2**40, 2**40])}, bytes(4)),
    "negative shape": safe({"a": entry(shape=[-1, -1])}, bytes(4)),
    "bool shape": safe({"a": entry(shape=[True])}, bytes(4)),
    "float shape": safe({"a": entry(shape=[1.0])}, bytes(4)),
    "many dimensions": safe({"a": entry(shape=[1] * 33)}, bytes(4)),
    "offsets past the end": safe({"a": entry(offsets=[0, 4])}, bytes(3)),
    "offsets backwards": safe({"a": entry(offsets=[4, 0])}, bytes(4)),
    "three offsets": safe({"a": entry(offsets=[0, 4, 4])}, bytes(4)),
    "overlap": safe({"a": entry(), "b": entry()}, bytes(4)),
    "gap": safe({"a": entry(offsets=[4, 8])}, bytes(8)),
    "rest": safe({"a": entry()}, bytes(5)),
}


@pytest.mark.parametrize("way", BAD_PAYLOADS)
def test_a_payload_off_the_format_is_refused(way: str) -> None:
    with pytest.raises(BadTree):
        tensors.unpack(BAD_PAYLOADS[way])


def test_random_damage_is_refused_or_read_but_never_crashes() -> None:
    chooser = random.Random(3)
    _, payload = tensors.encode([np.arange(6.0), np.arange(3, dtype="int8")])
    for _ in range(2000):
        raw = bytearray(payload)
        for _ in range(chooser.randrange(1, 4)):
            raw[chooser.randrange(len(raw))] = chooser.randrange(256)
        try:
            tensors.unpack(raw[: chooser.randrange(len(raw) + 1)] if chooser.random() < 0.3 else raw)
        except BadTree:
            continue


@pytest.mark.parametrize("name", NUMPY[:-1])
def test_the_safetensors_library_reads_what_is_packed(name: str) -> None:
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6).reshape(2, 3).astype(name), "b": np.zeros((0, 2), "float64"), "c": np.ones((), "int8")}
    read = library.load(tensors.pack({key: tensors.from_numpy(value) for key, value in arrays.items()}))
    assert read.keys() == arrays.keys() and all(same(arrays[key], read[key]) for key in arrays)


@pytest.mark.parametrize("name", NUMPY[:-1])
def test_what_the_safetensors_library_writes_is_read_and_packed_the_same(name: str) -> None:
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6).reshape(2, 3).astype(name), "b": np.ones(3, "int8")}
    raw = library.save(arrays)
    leaves = tensors.unpack(raw)
    assert all(same(arrays[key], tensors.to_numpy(leaf)) for key, leaf in leaves.items())
    assert tensors.pack(leaves) == raw


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "bool", "int64"])
def test_torch_and_numpy_mean_the_same_bytes(name: str) -> None:
    torch = pytest.importorskip("torch")
    values = [0.0, 1.0, -2.5, 0.15625, 448.0] if name not in ("bool", "int64") else [0, 1, 1, 0, 1]
    tensor = torch.tensor(values).to(getattr(torch, name))
    leaf = tensors.from_torch(tensor)
    array = tensors.to_numpy(leaf)
    assert array.dtype.name == name
    assert array.astype("float64").tolist() == tensor.to(torch.float64).tolist()
    back = tensors.to_torch(tensors.from_numpy(array))
    assert back.dtype == tensor.dtype and torch.equal(back.to(torch.float64), tensor.to(torch.float64))


def test_torch_views_parameters_and_conjugates_are_read_by_value() -> None:
    torch = pytest.importorskip("torch")
    base = torch.arange(12.0).reshape(3, 4)
    for tensor in (base.t(), base[:, 1], torch.nn.Parameter(base), torch.tensor([1 + 2j]).conj(), torch.tensor(3.5), base[:0]):
        array = tensors.to_numpy(tensors.from_torch(tensor))
        assert np.array_equal(array, tensor.detach().resolve_conj().numpy()) and array.shape == tuple(tensor.shape)


def test_torch_tensors_without_plain_bytes_are_refused() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.eye(2).to_sparse(), torch.empty(2, device="meta"), torch.zeros(2, dtype=torch.complex128)):
        with pytest.raises(Unencodable):
            tensors.encode(tensor)


def test_a_leaf_is_copied_from_its_payload() -> None:
    payload = bytearray(tensors.pack({"a": Leaf("F32", (2,), np.float32([1, 2]).tobytes())}))
    array = tensors.to_numpy(tensors.unpack(payload)["a"])
    payload[-4:] = b"\xff\xff\xff\xff"
    assert array.tolist() == [1, 2]
