"""Results that are no tensors, and equal or nearly what a program asks for: another class, order, precision, zone."""

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import pathlib
import types
import uuid
from collections.abc import Callable

import torch

from support.planted_kinds.planted_scene import PlantedScene, floats, instead, planted, scene


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


Point = collections.namedtuple("Point", "x y")
Place = collections.namedtuple("Place", "x y")
UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=1))
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=UTC)


def gives(right: Callable[[], object], wrong: Callable[[], object]) -> PlantedScene:
    """A program that gives a plain object beside a tensor, and a compiler that gives another."""
    programs = [lambda x, made=made: (x + 1, made()) for made in (right, wrong)]
    return scene(programs[0], instead(programs[1]), floats(2), seen=shown)


def shown(result: tuple[object, object]) -> tuple[str, str]:
    return type(result[1]).__name__, repr(result[1])


def one(right: object, wrong: object) -> PlantedScene:
    return gives(lambda: right, lambda: wrong)


PAIRS = {
    "a flag is a number": (True, 1),
    "a number of an enumeration is a plain one": (Level.LOW, 1),
    "another member of an enumeration": (Colour.RED, Colour.BLUE),
    "a fraction is a float": (fractions.Fraction(1, 2), 0.5),
    "a decimal loses its zeros": (decimal.Decimal("1.50"), decimal.Decimal("1.5")),
    "bytes may be written": (b"ab", bytearray(b"ab")),
    "a set is frozen": ({1, 2}, frozenset({1, 2})),
    "a range is a list": (range(3), [0, 1, 2]),
    "a range ends elsewhere": (range(0, 5, 2), range(0, 6, 2)),
    "a point is a place": (Point(1, 2), Place(1, 2)),
    "a point is a tuple": (Point(1, 2), (1, 2)),
    "a size is a tuple": (torch.Size([1, 2]), (1, 2)),
    "another dtype is named": (torch.float32, torch.float64),
    "a time is one of another zone": (NOON, NOON.astimezone(EAST)),
    "a time has no zone": (NOON, NOON.replace(tzinfo=None)),
    "a day is a time": (datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1)),
    "a length of time is off by a second": (datetime.timedelta(1), datetime.timedelta(1, 1)),
    "another kind of path": (pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("a")),
    "another identifier": (uuid.UUID(int=1), uuid.UUID(int=2)),
    "another address": (ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2")),
    "a text is bytes": ("a", b"a"),
    "a letter is written in two signs": ("\u00e9", "e\u0301"),
    "a number of no imaginary part is complex": (2.0, 2 + 0j),
    "nothing is false": (None, False),
    "what is left out is nothing": (..., None),
    "a slice has a step": (slice(0, 4), slice(0, 4, 1)),
    "an array of another type": (array.array("i", [1]), array.array("l", [1])),
    "a queue is shorter": (collections.deque([1], 3), collections.deque([1], 2)),
    "a count of nothing is missing": (collections.Counter(a=0), collections.Counter()),
    "keys in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "an ordered dictionary is a plain one": (collections.OrderedDict(a=1), {"a": 1}),
    "a default is made by another": (collections.defaultdict(int, a=1), collections.defaultdict(list, a=1)),
    "layers of a chain are in another order": (
        collections.ChainMap({"a": 1}, {"a": 2}),
        collections.ChainMap({"a": 2}, {"a": 1}),
    ),
    "an attribute of a namespace is off": (types.SimpleNamespace(a=1), types.SimpleNamespace(a=2)),
    "a partial call has another argument": (functools.partial(int, "1"), functools.partial(int, "2")),
}
for name, (right, wrong) in PAIRS.items():
    making = functools.partial(one, right, wrong)
    making.__name__ = name.replace(" ", "_")  # type: ignore[attr-defined]  # what a kind is called
    planted("plain results")(making)
