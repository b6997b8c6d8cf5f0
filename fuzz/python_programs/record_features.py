"""Records: dataclasses, named tuples, enumerations."""

from .grammar import Feature

RECORD_FEATURES: tuple[Feature, ...] = (
    Feature(
        "dataclasses",
        setup="""
import dataclasses
from dataclasses import dataclass, replace
from typing import NamedTuple
from collections import namedtuple


@dataclass(order=True)
class Point:
    a: int
    t: object = dataclasses.field(default=None, compare=False, repr=False)
    items: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.items.append(self.a)

    def scaled(self, t):
        return t * self.a + len(self.items)


@dataclass(frozen=True, slots=True)
class Fixed:
    a: int
    name: str = 'fixed'


class Pair(NamedTuple):
    left: object
    right: int = 1

    def total(self):
        return self.left + self.right


Row = namedtuple('Row', 'tensor count', defaults=[4])
point = Point(2, x1)
fixed = Fixed(3)
pair = Pair(x0, 2)
""",
        variables={"point": "point", "pair": "pair"},
        expressions="""
point: Point(<int>)
point: replace(<point>, a=<int>)
point: Point(<int>, t=<tensor>, items=<ints>)
pair: Pair(<tensor>, <int>)
pair: <pair>._replace(right=<int>)
tensor: <point>.scaled(<tensor>)
tensor: <pair>.left
tensor: <pair>.total()
tensor: Row(<tensor>).tensor
tensor: <pair>[0]
int: <point>.a
int: <pair>.right
int: len(<point>.items)
int: Row(<tensor>, <int>).count
int: fixed.a
bool: <point> == <point>
bool: <point> < <point>
bool: Fixed(<int>) == fixed
bool: hash(Fixed(<int>)) == hash(fixed)
str: repr(<point>)
str: repr(replace(fixed, name=<str>))
zoo: <point>
zoo: <pair>
zoo: fixed
zoo: Row(<int>)
str: str(list(dataclasses.asdict(fixed).items()))
str: repr(Pair._fields)
""",
        statements="""
<=point> = <point>

<=pair> = <pair>

<$point>.a += 1

<$point>.items.append(<int>)

<$point>.t = <tensor>

<+tensor>, <+int> = <pair>

try:
    fixed.a = <int>
    <body>
except dataclasses.FrozenInstanceError as error:
    log.append(str(error))

log.append([f.name for f in dataclasses.fields(<$point>)])

try:
    log.append(Point(<int>, nothing=<int>))
except TypeError as error:
    log.append(str(error))

log.append(dataclasses.astuple(fixed))

match <$point>:
    case Point(a=<+int>, items=[_, *<+ints>]):
        <body>

log.append([p.a for p in sorted([<point>, <point>, <point>])])
""",
        changes="""
point.a = 6
point = Point(1, x0, [5])
fixed = Fixed(8, 'new')
pair = Pair(x1, 3)
object.__setattr__(fixed, 'a', 12)
Point.scaled = lambda self, t: t
""",
    ),
    Feature(
        "enums",
        setup="""
import enum


class Color(enum.Enum):
    RED = 1
    GREEN = 'green'
    BLUE = (1, 2)
    ALIAS = 1

    @property
    def low(self):
        return self.name.lower()

    def apply(self, t):
        return t + len(self.name)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()


chosen = Color.RED
level = Level.HIGH
""",
        expressions="""
zoo: Color.GREEN
zoo: chosen
zoo: Bits.A | Bits.B
tensor: chosen.apply(<tensor>)
tensor: <tensor> + Level.HIGH
int: level + <int>
int: len(Color)
int: level.value
str: chosen.low
str: chosen.name
str: f'{chosen} {level}'
str: repr(level)
bool: chosen is Color.RED
bool: Bits.A in (Bits.A | Bits.B)
bool: level > <int>
bool: Color(1) is Color.ALIAS
int: {Color.RED: 1, Color.BLUE: 2}.get(chosen, 0)
""",
        statements="""
log.append([c.name for c in Color])

if chosen is Color.BLUE:
    <body>
else:
    <body>

try:
    log.append(Color(<int>))
except ValueError as error:
    log.append(str(error))

log.append(Color['RED'])

match chosen:
    case Color.RED:
        <body>
    case Color.GREEN:
        <body>
""",
        changes="""
chosen = Color.BLUE
chosen = Color.GREEN
level = Level.LOW
level = 2
""",
    ),
)
