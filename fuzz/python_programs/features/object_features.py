"""Attributes of objects and inheritance: properties, descriptors, slots, `super()`, abstract classes."""

from ..grammar import Feature

OBJECT_FEATURES: tuple[Feature, ...] = (
    Feature(
        "properties",
        setup="""
class Thermometer:
    limit = 50

    def __init__(self, celsius):
        self.celsius = celsius
        self.reads = 0

    @property
    def celsius(self):
        self.reads = getattr(self, 'reads', 0) + 1
        return self._celsius

    @celsius.setter
    def celsius(self, value):
        if not isinstance(value, torch.Tensor) and value > self.limit:
            raise ValueError(f'{value} is too hot')
        self._celsius = value

    @celsius.deleter
    def celsius(self):
        self._celsius = 0

    fahrenheit = property(lambda self: self.celsius * 1.8 + 32, doc='derived')

    @property
    def broken(self):
        return self.nothing


class Quiet(Thermometer):
    @property
    def celsius(self):
        return super().celsius

    @celsius.setter
    def celsius(self, value):
        Thermometer.celsius.fset(self, min(value, 5))


thermometer = Thermometer(10)
quiet = Quiet(20)
""",
        expressions="""
float: thermometer.fahrenheit
int: thermometer.reads
float: quiet.celsius
tensor: x * quiet.fahrenheit
bool: hasattr(thermometer, 'broken')
bool: hasattr(Thermometer, 'celsius')
zoo: Thermometer.celsius.fget(thermometer)
zoo: thermometer
""",
        statements="""
thermometer.celsius = <int>

thermometer.celsius += <int>

quiet.celsius = <int>

del thermometer.celsius

try:
    thermometer.celsius = <int> * 30
    <body>
except ValueError as error:
    log.append(str(error))

try:
    thermometer.fahrenheit = <int>
except AttributeError as error:
    log.append(str(error))

try:
    log.append(thermometer.broken)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    del quiet.celsius
except AttributeError as error:
    log.append(str(error))
""",
        changes="""
thermometer.limit = 5
Thermometer.limit = 1000
thermometer._celsius = 1
quiet = Thermometer(3)
Thermometer.fahrenheit = property(lambda self: -1.0)
Thermometer.broken = 5
""",
    ),
    Feature(
        "attribute_hooks",
        setup="""
class Recorder:
    def __init__(self):
        self.__dict__['values'] = {}
        self.__dict__['events'] = []

    def __getattr__(self, name):
        if name not in self.values:
            raise AttributeError(f'no {name} here')
        self.events.append('get ' + name)
        return self.values[name]

    def __setattr__(self, name, value):
        self.events.append('set ' + name)
        self.values[name] = value

    def __delattr__(self, name):
        self.events.append('del ' + name)
        del self.values[name]

    def __dir__(self):
        return sorted(self.values)


class Caching:
    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        value = self.__dict__[name] = len(name)
        return value


class Strict:
    allowed = ('a', 'b')

    def __setattr__(self, name, value):
        if name not in self.allowed:
            raise TypeError(f'{type(self).__name__} has no {name}')
        super().__setattr__(name, value)

    def __getattribute__(self, name):
        if name == 'twice_a':
            return super().__getattribute__('a') * 2
        return super().__getattribute__(name)


recorder = Recorder()
caching = Caching()
strict = Strict()
strict.a = 3
""",
        expressions="""
int: len(recorder.events)
int: getattr(recorder, 'level', <int>)
int: caching.anything
int: strict.a
int: strict.twice_a
bool: hasattr(recorder, <w>)
bool: hasattr(caching, '_hidden')
bool: 'anything' in vars(caching)
zoo: dir(recorder)
zoo: recorder.values
""",
        statements="""
recorder.level = <int>

recorder.weight = <tensor>
log.append(recorder.weight)

try:
    log.append(recorder.missing)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    del recorder.level
except KeyError as error:
    log.append(error.args)

try:
    strict.c = <int>
    <body>
except TypeError as error:
    log.append(str(error))

strict.b = <int>
log.append(strict.b)

setattr(strict, 'a', <int>)

try:
    log.append(strict.nothing)
except AttributeError as error:
    log.append(str(error))

log.append(recorder.events[-2:])
""",
        changes="""
recorder.events.clear()
recorder.values['level'] = 'text'
caching.__dict__.clear()
Strict.allowed = ('a', 'b', 'c')
strict.a = 0
Caching.anything = 100
del Recorder.__setattr__
""",
    ),
    Feature(
        "descriptors",
        setup="""
class Typed:
    def __init__(self, kind, default=None):
        self.kind, self.default = kind, default

    def __set_name__(self, owner, name):
        self.name = name
        owner.declared = [*getattr(owner, 'declared', []), name]

    def __get__(self, holder, owner):
        if holder is None:
            return self
        return holder.__dict__.get(self.name, self.default)

    def __set__(self, holder, value):
        if not isinstance(value, self.kind):
            raise TypeError(f'{self.name} wants {self.kind.__name__}')
        holder.__dict__[self.name] = value

    def __delete__(self, holder):
        holder.__dict__.pop(self.name, None)


class NonData:
    def __get__(self, holder, owner):
        return 'from the class' if holder is None else f'of {type(holder).__name__}'


class Record:
    count = Typed(int, 0)
    label = Typed(str, 'none')
    shown = NonData()

    @staticmethod
    def helper(t):
        return t + 1

    @classmethod
    def named(cls, label):
        record = cls()
        record.label = label
        return record


class SubRecord(Record):
    weight = Typed(float, 0.5)


record = Record()
sub_record = SubRecord()
""",
        expressions="""
int: record.count
int: len(Record.declared)
int: SubRecord.__dict__['weight'].default != 0
str: record.label
str: record.shown
str: Record.shown
str: Record.named(<str>).label
float: sub_record.weight
tensor: Record.helper(<tensor>)
tensor: sub_record.helper(<tensor>)
zoo: SubRecord.named(<str>)
zoo: SubRecord.declared
bool: Record.count.kind is int
""",
        statements="""
record.count = <int>

sub_record.count += <int>

record.__dict__['shown'] = <str>

try:
    record.count = <str>
    <body>
except TypeError as error:
    log.append(str(error))

del record.label

sub_record.weight = <float>

log.append(vars(record))
""",
        changes="""
record = Record()
Record.count = 5
Record.shown = 'plain'
record.__dict__['count'] = 77
NonData.__set__ = lambda self, holder, value: None
sub_record.__class__ = Record
""",
    ),
    Feature(
        "slotted_objects",
        setup="""
class Flat:
    __slots__ = ('x', 'y', '__weakref__')
    default = 4

    def __init__(self, x, y=None):
        self.x = x
        if y is not None:
            self.y = y

    def __eq__(self, other):
        return isinstance(other, Flat) and self.x == other.x

    __hash__ = None


class Deep(Flat):
    __slots__ = ('z',)


class Open(Flat):
    pass


flat = Flat(1)
deep = Deep(2, 3)
open_one = Open(x1)
""",
        expressions="""
int: flat.x
int: deep.x
int: getattr(flat, 'y', <int>)
int: flat.default
bool: hasattr(deep, 'z')
bool: hasattr(deep, '__dict__')
bool: flat == Flat(<int>)
bool: flat != deep
tensor: open_one.x
zoo: deep
zoo: vars(open_one)
""",
        statements="""
flat.y = <int>

deep.z = <tensor>
log.append(deep.z)

open_one.extra = <int>

open_one.x = <tensor>

try:
    flat.other = <int>
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    del deep.z
    log.append(deep.z)
except AttributeError as error:
    log.append(str(error))

try:
    log.append({flat: 1})
except TypeError as error:
    log.append(str(error))

try:
    flat.default = <int>
except AttributeError as error:
    log.append(str(error))
""",
        changes="""
flat = Flat(9, 8)
deep.z = 5
Flat.default = 11
open_one = Open(x0)
flat = open_one
del deep.y
""",
    ),
    Feature(
        "ways_of_super",
        setup="""
class Root:
    tag = 'root'

    def __init__(self, **rest):
        self.made = ['root']
        self.rest = rest

    def run(self, t):
        return t + 1

    @classmethod
    def build(cls, **rest):
        return cls(**rest)

    @staticmethod
    def fixed(t):
        return t * 2

    @property
    def size(self):
        return 1


class West(Root):
    tag = 'west'

    def __init__(self, west=0, **rest):
        super().__init__(**rest)
        self.west = west
        self.made.append('west')

    def run(self, t):
        return super().run(t) * 3 + self.west

    @classmethod
    def build(cls, **rest):
        built = super().build(**rest)
        built.made.append('built')
        return built


class East(Root):
    def __init__(self, east=0, **rest):
        super(East, self).__init__(**rest)
        self.made.append('east')

    def run(self, t):
        inner = lambda: super(East, self).run(t)
        return inner() - 1

    @property
    def size(self):
        return super().size + 10


class South(West, East):
    def run(self, t):
        parts = [super(South, self).run(t), super(West, self).run(t), Root.run(self, t)]
        return sum(parts)

    @staticmethod
    def fixed(t):
        return super(South, South).fixed(t) + 5

    def tags(self):
        return [super().tag, self.tag, __class__.tag]


south = South.build(west=1, other=2)
""",
        expressions="""
tensor: south.run(<tensor>)
tensor: South.fixed(<tensor>)
tensor: East(east=1).run(<tensor>)
tensor: super(West, south).run(<tensor>)
int: south.size
zoo: south.made
zoo: south.tags()
zoo: South.build(west=<int>, z=1).rest
zoo: [c.__name__ for c in South.mro()]
bool: issubclass(South, East)
bool: isinstance(super(South, south), West)
""",
        statements="""
south.west = <int>

<+south> = West.build(west=<int>)
log.append(<$south>.made)

try:
    log.append(super(South, south).nothing)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    super(South, <int>)
except TypeError as error:
    log.append(str(error))

try:
    South(west=1, west_too=2, east=<int>).run(<tensor>)
except TypeError as error:
    log.append(str(error))
""",
        changes="""
south = South(west=4)
Root.run = lambda self, t: t - 50
East.size = 3
del West.run
Root.tag = 'new root'
South.__bases__ = (East, West)
""",
    ),
    Feature(
        "abstract_classes",
        setup="""
import abc
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Protocol, runtime_checkable


class Layer(abc.ABC):
    @abc.abstractmethod
    def forward(self, t):
        return t + 100

    @property
    @abc.abstractmethod
    def width(self):
        ...

    def __call__(self, t):
        return self.forward(t) * self.width


class Real(Layer):
    width = 2

    def forward(self, t):
        return super().forward(t) - 99


class Unfinished(Layer):
    def forward(self, t):
        return t


class Window(Sequence):
    def __init__(self, *values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


class Environment(Mapping):
    def __init__(self, **values):
        self.values_of = values

    def __getitem__(self, key):
        return self.values_of[key]

    def __iter__(self):
        return iter(self.values_of)

    def __len__(self):
        return len(self.values_of)


@runtime_checkable
class HasWidth(Protocol):
    width: int


real = Real()
seen_window = Window(3, 1, 2)
environment = Environment(a=1, b=2)
""",
        expressions="""
tensor: real(<tensor>)
tensor: Layer.forward(real, <tensor>)
int: real.width
int: seen_window.index(1)
int: seen_window.count(<int>)
int: environment['a']
int: environment.get(<w>, <int>)
ints: list(reversed(seen_window))
ints: sorted(seen_window)
bool: <int> in seen_window
bool: <w> in environment
bool: isinstance(real, HasWidth)
bool: isinstance(<zoo>, Layer)
bool: isinstance(<ints>, Sequence)
bool: isinstance(<table>, Mapping)
bool: environment == {'a': 1, 'b': 2}
zoo: dict(environment)
zoo: list(environment.items())
zoo: {**environment}
func: real
""",
        statements="""
try:
    Unfinished()
    <body>
except TypeError as error:
    log.append(str(error))

try:
    log.append(seen_window.index(<int> + 50))
except ValueError as error:
    log.append(type(error).__name__)

try:
    log.append(environment['none'])
except KeyError as error:
    log.append(error.args)

for <+int> in seen_window:
    <body>

log.append(sorted(Unfinished.__abstractmethods__))

match seen_window:
    case [first, *others]:
        log.append((first, others))

match environment:
    case {'a': found_a, **others}:
        log.append((found_a, others))
""",
        changes="""
Real.width = 4
Real.forward = lambda self, t: t
Layer.register(int)
seen_window = Window()
environment.values_of['c'] = 3
Unfinished.width = 1
""",
    ),
)
