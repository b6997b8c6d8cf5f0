"""Classes: attributes of every kind, operators, protocols, inheritance, metaclasses."""

from ..grammar import Feature

CLASS_FEATURES: tuple[Feature, ...] = (
    Feature(
        "plain_class",
        setup="""
class Thing:
    scale = 2
    shared = []

    def __init__(self, gain, name='thing'):
        self.gain = gain
        self.name = name
        self.seen = 0
        self.kept = None

    @property
    def twice(self):
        return self.gain * 2

    @twice.setter
    def twice(self, value):
        self.gain = value / 2

    @twice.deleter
    def twice(self):
        self.gain = 0

    @classmethod
    def made(cls, gain):
        cls.shared.append(gain)
        return cls(gain, name='made')

    @staticmethod
    def plain(t):
        return t - 1

    def apply(self, t):
        self.seen += 1
        self.kept = t * self.gain
        return self.kept + self.scale

    def __repr__(self):
        return f'Thing({self.gain}, {self.seen})'


item = Thing(3)
other = Thing(1.5, name='other')
""",
        variables={"item": "item", "other": "item"},
        expressions="""
item: item
item: Thing(<int>)
item: Thing.made(<float>)
tensor: <item>.apply(<tensor>)
tensor: <item>.plain(<tensor>)
tensor: Thing.apply(<item>, <tensor>)
float: <item>.gain
float: <item>.twice
int: <item>.seen
int: Thing.scale
int: len(Thing.shared)
func: <item>.apply
str: repr(<item>)
bool: <item> is item
bool: hasattr(<item>, <w>)
bool: <item> == <item>
zoo: item
int: len(vars(<item>))
""",
        statements="""
<=item> = <item>

<$item>.gain = <int>

<$item>.twice = <int>

del <$item>.twice

<$item>.seen += 1

<$item>.kept = <tensor>

log.append(<$item>.kept)

setattr(<$item>, 'extra', <int>)
log.append(getattr(<$item>, 'extra', None))

Thing.scale += 1

<$item>.scale = <int>

log.append(sorted(vars(<$item>)))

try:
    <body>
    log.append(<$item>.missing)
except AttributeError as error:
    log.append(str(error))
    <body>

try:
    del <$item>.scale
except AttributeError as error:
    log.append(str(error))

log.append(getattr(<$item>, <w>, 'none'))
""",
        changes="""
item.gain = 7
item = Thing(2)
other.scale = 9
Thing.scale = 5
Thing.apply = lambda self, t: t * 3
Thing.plain = staticmethod(lambda t: t + 100)
Thing.__getattr__ = lambda self, name: 13
item.apply = lambda t: t + 7
Thing.twice = property(lambda self: 21)
item.__class__ = type('Sub', (Thing,), {'scale': 11})
Thing.__eq__ = lambda self, other: True
del other.name
other.__dict__['seen'] = 40
""",
    ),
    Feature(
        "operators",
        setup="""
class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        if isinstance(other, Number):
            return Number(self.value + other.value)
        if isinstance(other, (int, float)):
            return Number(self.value + other)
        return NotImplemented

    def __radd__(self, other):
        return Number(other + self.value) if isinstance(other, int) else NotImplemented

    def __mul__(self, other):
        return other * self.value if isinstance(other, torch.Tensor) else Number(self.value * 2)

    def __rmul__(self, other):
        return other * (self.value + 1)

    def __iadd__(self, other):
        self.value += 1
        return self

    def __neg__(self):
        return Number(-self.value)

    def __matmul__(self, other):
        return ('at', self.value)

    def __eq__(self, other):
        return isinstance(other, Number) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __lt__(self, other):
        return self.value < other.value

    def __len__(self):
        return abs(int(self.value))

    def __bool__(self):
        return self.value > 1

    def __index__(self):
        return 1

    def __getitem__(self, key):
        if isinstance(key, int) and key > 2:
            raise IndexError(key)
        return (self.value, key)

    def __setitem__(self, key, value):
        self.value = key if isinstance(key, int) else self.value

    def __delitem__(self, key):
        self.value = 0

    def __contains__(self, what):
        return what == self.value

    def __call__(self, t, *rest):
        return t + self.value + len(rest)

    def __format__(self, spec):
        return f'<{self.value}|{spec}>'

    def __enter__(self):
        self.value += 1
        return self

    def __exit__(self, kind, error, trace):
        self.value -= 1
        return kind is KeyError


number = Number(2)
""",
        variables={"number": "number"},
        expressions="""
number: Number(<int>)
number: <number> + <number>
number: <number> + <int>
number: <int> + <number>
number: -<number>
tensor: <number> * <tensor>
tensor: <tensor> * <number>
tensor: <number>(<tensor>)
tensor: <number>(<tensor>, *<ints>)
bool: <number> == <number>
bool: <number> < <number>
bool: bool(<number>)
bool: <int> in <number>
int: len(<number>)
int: [3, 4][<number>]
int: hash(<number>) == hash(<number>)
str: f'{<number>:x}'
str: repr(list(<number>))
func: <number>
zoo: <number>
""",
        statements="""
<=number> = <number>

<+number> = <number>
<$number> += <int>

<$number>[<int>] = <int>

del <$number>[0]

log.append(<$number>[<int>:<k>])

log.append([n.value for n in sorted([<number>, <number>])])

log.append({<number>: 1}.get(<number>))

with <$number> as <+number>:
    <body>

with <$number>:
    <body>
    raise KeyError(<str>)

if <number>:
    <body>

try:
    log.append(<number> + <str>)
except TypeError as error:
    log.append(str(error))

log.append(<number> @ <zoo>)

for <+zoo> in <number>:
    <body>
""",
        changes="""
number.value = 4
Number.__bool__ = lambda self: False
Number.__len__ = lambda self: 0
Number.__add__ = lambda self, other: Number(99)
del Number.__radd__
Number.__call__ = lambda self, t, *rest: t - 1
number.__len__ = lambda: 17
Number.__contains__ = None
""",
    ),
    Feature(
        "attribute_access",
        setup="""
class Proxy:
    def __init__(self, target):
        object.__setattr__(self, 'target', target)
        object.__setattr__(self, 'reads', [])

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        self.reads.append(name)
        return getattr(self.target, name)

    def __setattr__(self, name, value):
        self.reads.append('set ' + name)
        setattr(self.target, name, value)

    def __delattr__(self, name):
        self.reads.append('del ' + name)


class Box:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Always:
    def __getattribute__(self, name):
        if name == 'number':
            return 5
        return object.__getattribute__(self, name)


class Positive:
    def __set_name__(self, owner, name):
        self.place = '_' + name

    def __get__(self, holder, owner=None):
        if holder is None:
            return self
        return getattr(holder, self.place, -1) + 1

    def __set__(self, holder, value):
        if value < 0:
            raise ValueError(f'{self.place} is negative')
        setattr(holder, self.place, value)


class Lazy:
    def __init__(self, function):
        self.function = function

    def __get__(self, holder, owner):
        value = holder.__dict__[self.function.__name__] = self.function(holder)
        return value


class Described:
    level = Positive()
    made = 0

    @Lazy
    def lazy(self):
        Described.made += 1
        return x0 + Described.made


box = Box(number=4, tensor=x1)
proxy = Proxy(box)
always = Always()
described = Described()
""",
        expressions="""
int: box.number
int: proxy.number
int: always.number
int: described.level
int: len(proxy.reads)
tensor: proxy.tensor
tensor: described.lazy
tensor: Described().lazy
int: Described.made
bool: hasattr(proxy, <w>)
bool: hasattr(always, 'number')
int: getattr(box, 'other', <int>)
zoo: proxy
zoo: box
zoo: described
zoo: Described.level
""",
        statements="""
box.number = <int>

proxy.number = <int>

proxy.fresh = <tensor>

del proxy.number

described.level = <int>

try:
    described.level = <int>
    <body>
except ValueError as error:
    log.append(str(error))

log.append(vars(described))

log.append(list(proxy.reads)[-3:])

described.__dict__.pop('lazy', None)

try:
    log.append(proxy.missing)
except AttributeError as error:
    log.append(str(error))
""",
        changes="""
box.number = 8
box.tensor = x0 * 2
described = Described()
Described.level = 3
always.number = 6
del Described.level
Proxy.__getattr__ = lambda self, name: 77
proxy.reads.clear()
Always.__getattribute__ = lambda self, name: 1
""",
    ),
    Feature(
        "inheritance",
        setup="""
class Base:
    registry = {}
    kind = 'base'

    def __init_subclass__(cls, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registry[cls.__name__] = tag

    def __init__(self, factor=1):
        self.factor = factor
        self.history = []

    def forward(self, t):
        self.history.append('base')
        return t * self.factor

    def describe(self):
        return [type(self).__name__, self.kind]


class Left(Base, tag='l'):
    kind = 'left'

    def forward(self, t):
        self.history.append('left')
        return super().forward(t) + 1


class Right(Base, tag='r'):
    def forward(self, t):
        self.history.append('right')
        return super().forward(t) * 2

    def describe(self):
        return [*super().describe(), 'right']


class Both(Left, Right):
    __slots__ = ('slot',)

    def __init__(self, factor):
        super().__init__(factor=factor)
        self.slot = factor

    def forward(self, t):
        return super(Left, self).forward(t) - super().forward(t)


class Slotted:
    __slots__ = ('a', '_b')

    def __init__(self, a):
        self.a = a


both = Both(2)
right = Right(3)
slotted = Slotted(1)
""",
        variables={"both": "based", "right": "based"},
        expressions="""
based: Left(<int>)
based: Both(<int>)
based: both
tensor: <based>.forward(<tensor>)
tensor: Base.forward(<based>, <tensor>)
tensor: super(Both, both).forward(<tensor>)
int: <based>.factor
int: len(<based>.history)
str: <based>.kind
str: repr(<based>.describe())
bool: isinstance(<based>, Left)
bool: issubclass(type(<based>), Right)
zoo: <based>
zoo: slotted
zoo: type(<based>).__mro__
int: slotted.a
int: len(Base.registry)
func: <based>.forward
""",
        statements="""
<=based> = <based>

<$based>.factor = <int>

<$based>.history.append(<str>)

both.slot = <int>

slotted.a = <int>

try:
    log.append(slotted._b)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    slotted.c = <int>
except AttributeError as error:
    log.append(str(error))

class <+cls>(Left, tag=<w>):
    kind = <str>
    bonus = <int>
    def forward(self, t):
        return super().forward(t) + self.bonus
<+based> = <$cls>(<int>)

log.append(sorted(Base.registry))

<+cls> = type('Made', (Right,), {'extra': <int>})
log.append(<$cls>(2).extra)
""",
        changes="""
both.factor = 5
Right.forward = lambda self, t: t - 9
Left.describe = lambda self: ['new']
Base.kind = 'changed'
del Left.kind
both = Both(4)
Left.__bases__ = (Right,) if False else Left.__bases__
right.__class__ = Left
slotted._b = 6
Base.forward = lambda self, t: t
""",
    ),
    Feature(
        "metaclasses",
        setup="""
class Meta(type):
    made = 0

    def __new__(mcs, name, bases, space, **options):
        space['options'] = sorted(options)
        return super().__new__(mcs, name, bases, space)

    def __init__(cls, name, bases, space, **options):
        super().__init__(name, bases, space)

    def __call__(cls, *args, **kwargs):
        Meta.made += 1
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, value):
        return type(value) in (int, torch.Tensor) or type.__instancecheck__(cls, value)

    def __len__(cls):
        return 4

    def __contains__(cls, value):
        return value == 2

    def __getattr__(cls, name):
        if name.startswith('_'):
            raise AttributeError(name)
        return name * 2

    @property
    def label(cls):
        return 'label of ' + cls.__name__


class WithMeta(metaclass=Meta, flavour=1):
    def __init__(self, value=0):
        self.value = value

    def __class_getitem__(cls, key):
        return (cls.__name__, key)


class Single:
    instance = None

    def __new__(cls, value):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            cls.instance.count = 0
        cls.instance.count += 1
        return cls.instance

    def __init__(self, value):
        self.value = value
""",
        expressions="""
int: WithMeta(<int>).value
int: Meta.made
int: len(WithMeta)
int: Single(<int>).count
bool: isinstance(<zoo>, WithMeta)
bool: isinstance(<tensor>, WithMeta)
bool: <int> in WithMeta
str: WithMeta.label
str: WithMeta.anything
str: repr(WithMeta[<int>])
bool: Single(<tensor>) is Single(<int>)
zoo: WithMeta
zoo: WithMeta(<int>)
""",
        statements="""
log.append(WithMeta.options)

log.append(isinstance(<zoo>, (str, WithMeta)))

log.append(hasattr(WithMeta, <w>))

log.append(hasattr(WithMeta, '__len__'))

log.append(hasattr(WithMeta(), '__len__'))

<+zoo> = Single(<tensor>)
log.append(<$zoo>.value)
""",
        changes="""
Meta.made = 10
Single.instance = None
Meta.__len__ = lambda cls: 6
Meta.__instancecheck__ = lambda cls, value: False
WithMeta.anything = 'own'
""",
    ),
    Feature(
        "protocols",
        setup="""
import abc
import functools


class Sized(abc.ABC):
    @abc.abstractmethod
    def size(self):
        ...

    @classmethod
    def __subclasshook__(cls, other):
        return hasattr(other, 'size') or NotImplemented


class Bag(Sized):
    def __init__(self, values):
        self.values = list(values)

    def size(self):
        return len(self.values)

    def __iter__(self):
        for value in self.values:
            print('bag', value)
            yield value

    def __reversed__(self):
        return iter([0, *self.values])

    def __missing__(self, key):
        return key


class Old:
    def __getitem__(self, index):
        if index >= 3:
            raise IndexError(index)
        return index * 10


class Steps:
    def __init__(self, stop):
        self.stop = stop
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.stop:
            raise StopIteration
        self.at += 1
        return self.at


class Defaults(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


class Listed(list):
    def append(self, value):
        super().append(value)
        super().append(value)


@functools.total_ordering
class Ranked:
    def __init__(self, rank):
        self.rank = rank

    def __eq__(self, other):
        return self.rank == other.rank

    def __lt__(self, other):
        return self.rank < other.rank


bag = Bag([1, 2])
defaults = Defaults(a=1)
listed = Listed([1])
STEPS = Steps(9)
""",
        variables={"defaults": "table"},
        expressions="""
ints: list(bag)
ints: list(reversed(bag))
ints: list(Old())
ints: list(Steps(<int>))
int: next(STEPS, <int>)
int: bag.size()
int: defaults[<w>]
int: max(Old(), key=lambda v: -v)
bool: isinstance(<zoo>, Sized)
bool: isinstance(<tensor>, Sized)
bool: Ranked(<int>) >= Ranked(<int>)
bool: 20 in Old()
zoo: bag
zoo: listed
zoo: Old()
zoo: defaults
""",
        statements="""
for <+int> in bag:
    <body>

for <+int> in Steps(<int>):
    <body>

for <+int> in STEPS:
    if <bool>:
        break
    <body>

listed.append(<int>)

bag.values.append(<int>)

log.append(list(listed))

log.append(dict(defaults))

<+int>, *<+ints> = Old()

try:
    Sized()
except TypeError as error:
    log.append(str(error)[:40])

log.append(max(Ranked(<int>), Ranked(<int>)).rank)

log.append(list(zip(Old(), bag)))
""",
        changes="""
bag = Bag([5])
STEPS = Steps(4)
STEPS.at = 0
Old.__len__ = lambda self: 2
Bag.__len__ = lambda self: 7
Bag.__contains__ = lambda self, v: True
listed.clear()
Steps.__length_hint__ = lambda self: 3
""",
    ),
)
