"""Records: dataclasses, named tuples, enumerations."""

from ..grammar import Feature

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
    Feature(
        "dataclass_variants",
        setup="""
import dataclasses
from dataclasses import KW_ONLY, InitVar, dataclass, field


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0
    tags: tuple = field(default=(), compare=False)

    def bumped(self):
        return dataclasses.replace(self, minor=self.minor + 1)


@dataclass(slots=True, eq=False)
class Cell:
    value: object
    _: KW_ONLY
    scale: float = 1.0
    notes: list = field(default_factory=list, repr=False)


@dataclass
class Derived:
    base: InitVar[int]
    doubled: int = field(init=False)
    table: dict = field(default_factory=dict)

    def __post_init__(self, base):
        self.doubled = base * 2
        self.table['base'] = base


@dataclass(frozen=True)
class Child(Version):
    extra: str = 'x'


version = Version(1, 2)
cell = Cell(x1, scale=2.0)
derived = Derived(3)
""",
        expressions="""
zoo: version.bumped()
zoo: Version(<int>, <int>)
zoo: Child(<int>, extra=<str>)
zoo: dataclasses.astuple(version)
zoo: dataclasses.asdict(Derived(<int>))
zoo: Derived(<int>)
zoo: [f.name for f in dataclasses.fields(cell)]
bool: Version(<int>) < version
bool: Version(<int>, 2) == version
bool: version == Child(1, 2)
bool: cell == Cell(cell.value, scale=cell.scale)
bool: hash(Version(1, 2)) == hash(version)
bool: dataclasses.is_dataclass(<zoo>)
bool: version >= Version(0, <int>)
str: repr(version)
str: repr(Child(<int>))
str: repr(derived)
int: derived.doubled
int: {version: 1, Version(<int>): 2}[version]
tensor: cell.value * cell.scale
tensor: dataclasses.replace(cell, value=<tensor>).value
""",
        statements="""
cell.value = <tensor>

cell.notes.append(<int>)

derived.doubled += <int>

try:
    version.major = <int>
    <body>
except dataclasses.FrozenInstanceError as error:
    log.append(str(error))

try:
    cell.other = <int>
except AttributeError as error:
    log.append(str(error))

try:
    log.append(Version(1) < <int>)
except TypeError as error:
    log.append(str(error))

try:
    log.append(Cell(1, 2))
except TypeError as error:
    log.append(str(error))

log.append(sorted([Version(<int>), version, Version(1, <int>)])[0])

match <zoo>:
    case Version(major, minor=0):
        log.append(major)
    case Cell(value):
        <body>

@dataclass
class Local:
    a: int = <k>
    b: list = field(default_factory=lambda: [1])
log.append((Local(), Local(b=[<int>]) == Local()))
""",
        changes="""
version = Version(1, 3, ('new',))
cell = Cell(x0)
object.__setattr__(version, 'minor', 9)
derived.table.clear()
Version.bumped = lambda self: self
cell.scale = 0.5
""",
    ),
    Feature(
        "named_tuples",
        setup="""
from collections import namedtuple
from typing import NamedTuple


class Shape(NamedTuple):
    rows: int
    columns: int = 3
    tensor: object = None

    @property
    def area(self):
        return self.rows * self.columns

    def grown(self, by):
        return self._replace(rows=self.rows + by)


Triple = namedtuple('Triple', ['a', 'b', 'c'], defaults=(2, 3))


class Tagged(Triple):
    __slots__ = ()

    def __new__(cls, a, tag='t'):
        return super().__new__(cls, a, tag)

    def __add__(self, other):
        return Tagged(self.a + other.a)


shape = Shape(2, tensor=x1)
three = Triple(1)
""",
        expressions="""
int: shape.area
int: shape[<k> % 2]
int: three.index(<k>) if <k> in three else -1
int: len(Shape._fields) + three.count(2)
zoo: shape.grown(<int>)
zoo: three._replace(b=<zoo>)
zoo: Triple._make([<int>, <int>, <int>])
zoo: Tagged(<int>) + Tagged(2)
zoo: three + (4,)
zoo: three[::-1]
zoo: Shape._field_defaults
zoo: list(shape._asdict())
str: repr(Triple(<int>, c=<str>))
str: repr(Tagged(<int>))
bool: three == (1, 2, 3)
bool: three < Triple(<int>)
bool: isinstance(three, tuple)
bool: hash(three) == hash((1, 2, 3))
tensor: shape.tensor
""",
        statements="""
<+int>, *<+ints> = three

a_part, (b_part, c_part) = <int>, three[1:]
log.append((a_part, b_part, c_part))

try:
    three.a = <int>
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    log.append(Triple())
except TypeError as error:
    log.append(str(error))

try:
    log.append(three._replace(z=1))
except (ValueError, TypeError) as error:
    log.append(str(error))

match shape:
    case Shape(2, columns):
        <body>
    case (rows, *_):
        log.append(rows)

for <+int> in three:
    <body>
""",
        changes="""
shape = Shape(4, 5, x0)
three = Triple(7, 8, 9)
Shape.grown = lambda self, by: self
three = (1, 2, 3)
""",
    ),
    Feature(
        "flags",
        setup="""
import enum


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    ALL = READ | WRITE


class Mode(enum.IntFlag):
    FAST = 1
    SAFE = 4


class Kind(str, enum.Enum):
    SMALL = 's'
    LARGE = 'l'

    @classmethod
    def _missing_(cls, value):
        return cls.SMALL

    def __str__(self):
        return self.value


class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    MARS = (0.6, 3.4)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def weight(self):
        return self.mass / self.radius


access = Access.READ
mode = Mode.FAST
kind = Kind.LARGE
""",
        expressions="""
zoo: access | Access.WRITE
zoo: ~access
zoo: access & Access.ALL
zoo: access ^ Access.ALL
zoo: mode | <int>
zoo: list(Access)
zoo: Kind('nothing')
zoo: Kind[<w>] if <w> in Kind.__members__ else Kind.SMALL
zoo: sorted(Planet, key=lambda p: p.weight)
bool: Access.READ in access
bool: bool(access & Access.WRITE)
bool: access is Access(1)
bool: kind == 'l'
bool: kind in ('s', Kind.LARGE)
bool: mode == 1
bool: isinstance(kind, str)
int: mode + <int>
int: Mode.SAFE.value | mode
int: len(Kind)
int: {Kind.SMALL: 1, 'l': 2}[kind]
float: Planet.MARS.weight
float: Planet((0.6, 3.4)).mass
str: kind.upper()
str: f'{kind}:{kind.name}'
str: str(kind) + kind
str: repr(access)
str: repr(mode)
str: '%s' % (Planet.EARTH.name,)
""",
        statements="""
<+bits> = access
<$bits> |= Access.WRITE
log.append(<$bits>)

try:
    log.append(Planet(<int>))
    <body>
except ValueError as error:
    log.append(str(error))

try:
    Kind.SMALL = <int>
except AttributeError as error:
    log.append(str(error))

try:
    log.append(Kind['NONE'])
except KeyError as error:
    log.append(error.args)

match kind:
    case Kind.SMALL:
        <body>
    case Kind.LARGE | Kind.SMALL:
        <body>

for member in Planet:
    log.append((member.name, member.radius))

log.append({m.name: m.value for m in Mode})
""",
        changes="""
access = Access.WRITE
access = Access(0)
mode = Mode.SAFE
mode = 2
kind = Kind.SMALL
kind = 'l'
Planet.EARTH.mass = 1.0
""",
    ),
)
