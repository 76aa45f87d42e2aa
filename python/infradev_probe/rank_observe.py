"""Observe mode: call an observer with the judge's inputs, send back what it returned or how it failed.

A failure is sorted by what a judge of failures must know: ``missing`` (the name, module, attribute or argument that the
observer reached for is not there: true of base for every feature), ``hollow`` (a hollow body answered),
``unencodable`` (the observer's own return value), ``other``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, cast

from . import tensors
from .failures import describe, frames_of, qualified, trace_of
from .frames import Channel, FrameError
from .observers import is_observer, rank
from .trees import Unencodable

if TYPE_CHECKING:
    from .reach import Reach

_ARGUMENTS = re.compile(
    r"unexpected keyword argument|required (positional|keyword-only) argument|positional arguments? but|"
    r"multiple values for|takes no (keyword )?arguments|takes (exactly|at most|at least) \w+ (keyword )?argument"
)
_exit, _pid = os._exit, os.getpid


class NoObserver(LookupError):
    """The judge asked for an observer that the probes don't have: an author's error."""


def run(job: list[Any]) -> None:
    """Serve the channel of ``job`` ([channel, args], emptied) until ``finish``, then end the process."""
    from .rank_setup import followed, outside

    args: dict[str, Any] = job.pop()
    channel: Channel = job.pop()
    send, receive = channel.send, channel.receive
    del channel
    rank._set(number=args["rank"], size=args["size"], files=args.get("files"), kind=args["device"])
    strangers = outside(args.get("top_level", []), args["import_roots"])
    send({"type": "hello", "rank": args["rank"], "pid": os.getpid(), "outside": strangers})
    if args["probes"] not in sys.path:  # for what observer files share
        sys.path.append(args["probes"])
    make = _array_maker()
    reach, own = followed(args), _pid()
    while True:
        frame = receive()
        header = frame.header
        if frame.type == "finish":
            break
        if frame.type == "observe":
            call = header["call"]
            try:
                inputs = tensors.decode(header["inputs"], frame.payload, make)
                tree, payload = _observe(args["probes"], header["observer"], inputs)
                _end_child(own, 0)
                try:
                    send({"type": "returned", "call": call, "value": tree, **_reached(reach)}, payload)
                except FrameError as error:  # over the limits: nothing of it has left
                    raise Unencodable(str(error)) from None
            except BaseException as error:  # SystemExit too: it is the observer's outcome, not the rank's end
                _end_child(own, 1)
                body = told(error, args["root"], args["probes"])
                send({"type": "raised", "call": call, **body, **_reached(reach)})
        elif frame.type == "meter":
            send({"type": "metered", "what": header.get("what"), "unsupported": True})
        else:
            raise RuntimeError(f"unknown message {frame.type!r}")
    sys.stdout.flush()
    sys.stderr.flush()
    send({"type": "bye"})
    _exit(0)


def _end_child(own: int, status: int) -> None:
    """A child that an observer forked and that came out of it has no word on the rank's channel."""
    if _pid() != own:
        _exit(status)


def _reached(reach: Reach | None) -> dict[str, Any]:
    return {"reached": reach.take()} if reach else {}


def _array_maker() -> Callable[[tensors.Leaf], Any]:
    if "torch" in sys.modules:
        return lambda leaf: tensors.to_torch(leaf, rank.device)
    return tensors.to_numpy


def _observe(probes: str, name: str, inputs: Any) -> tuple[Any, bytes]:
    return tensors.encode(find(probes, name)(**inputs))


def find(probes: str, name: str) -> Callable[..., Any]:
    """The observer ``file.function``; the file's ``observe_`` may be left out."""
    stem, _, function = name.partition(".")
    for candidate in (stem, f"observe_{stem}"):
        path = os.path.join(probes, f"{candidate}.py")
        if candidate.isidentifier() and os.path.isfile(path):
            break
    else:
        raise NoObserver(f"there is no {stem}.py or observe_{stem}.py among the probes")
    value: Any = getattr(_load(candidate, path), function, None)
    if not is_observer(value):
        raise NoObserver(f"{candidate}.py has no function {function!r} under @observer")
    return cast("Callable[..., Any]", value)


def _load(name: str, path: str) -> types.ModuleType:
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def told(error: BaseException, root: str, probes: str) -> dict[str, Any]:
    """The body of ``raised``."""
    return {
        **describe(error, root),
        "mro": [qualified(kind) for kind in type(error).__mro__ if kind is not object],
        "traceback": trace_of(error),
        "kind": kind_of(error, root, probes),
    }


def kind_of(error: BaseException, root: str, probes: str) -> str:
    """missing, hollow, unencodable or other."""
    if isinstance(error, Unencodable):
        return "unencodable"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NotImplementedError) and str(cause).startswith("hollow:"):
            return "hollow"
        cause = cause.__cause__
    if isinstance(error, (ImportError, NameError)):
        return "missing"
    # who reached for it: the deepest frame of the repository or the probes (a library's own frames lie below, as
    # those of torch.nn.Module.__getattr__ do)
    ours = [file for file, _, _ in frames_of(error.__traceback__) if _inside(file, root) or _inside(file, probes)]
    by_observer = bool(ours) and _inside(ours[-1], probes)
    if isinstance(error, AttributeError):
        if by_observer or isinstance(getattr(error, "obj", None), types.ModuleType):
            return "missing"
    elif isinstance(error, TypeError) and by_observer and _ARGUMENTS.search(str(error)):
        return "missing"
    return "other"


def _inside(file: str, folder: str) -> bool:
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)
