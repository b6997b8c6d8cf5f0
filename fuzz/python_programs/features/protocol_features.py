"""What classes answer: operators in all forms, comparisons, calls, subclasses of containers, class creation."""

from ..grammar import Feature

PROTOCOL_FEATURES: tuple[Feature, ...] = (
    Feature(
        "reflected_operators",
        setup="""
class Unit:
    def __init__(self, amount):
        self.amount = amount

    def __add__(self, other):
        log_of.append('add')
        return Unit(self.amount + other.amount) if isinstance(other, Unit) else NotImplemented

    def __radd__(self, other):
        log_of.append('radd')
        return Unit(other + self.amount)

    def __sub__(self, other):
        return NotImplemented

    def __rsub__(self, other):
        return ('rsub', other)

    def __mul__(self, other):
        return other * self.amount if isinstance(other, torch.Tensor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.amount / other

    def __rpow__(self, base):
        return base ** self.amount

    def __divmod__(self, other):
        return ('divmod', other)

    def __rshift__(self, other):
        return (self, other)[1]

    def __pos__(self):
        return Unit(abs(self.amount))

    def __invert__(self):
        return Unit(-self.amount)

    def __round__(self, digits=None):
        return ('round', digits)

    def __repr__(self):
        return f'Unit({self.amount})'


class Special(Unit):
    def __radd__(self, other):
        log_of.append('special')
        return Special(100)


log_of = []
unit = Unit(2)
special = Special(3)
""",
        expressions="""
zoo: unit + special
zoo: special + unit
zoo: <int> + unit
zoo: sum([unit, special], <int>)
zoo: 5 - unit
zoo: unit - unit if <bool> and not True else unit
zoo: divmod(unit, <int>)
zoo: round(unit, <k>)
zoo: round(unit)
zoo: +unit
zoo: ~special
zoo: unit >> <zoo>
tensor: unit * <tensor>
tensor: <tensor> * special
float: unit / 4
float: 1.5 ** unit
int: unit.amount
int: len(log_of)
""",
        statements="""
try:
    log.append(unit + 'text')
    <body>
except TypeError as error:
    log.append(str(error))

try:
    log.append(unit - unit)
except TypeError as error:
    log.append(str(error))

try:
    log.append(unit * <int>)
except TypeError as error:
    log.append(str(error))

try:
    log.append(unit // <int>)
except TypeError as error:
    log.append(str(error))

<+unit> = unit
<$unit> += special
log.append((<$unit>, <$unit> is unit))

log.append(log_of[-3:])
""",
        changes="""
unit.amount = 5
special = Special(1)
Unit.__add__ = lambda self, other: 'new'
del Special.__radd__
Unit.__sub__ = None
log_of.clear()
""",
    ),
    Feature(
        "in_place_operators",
        setup="""
class Stack:
    def __init__(self, *values):
        self.values = list(values)

    def __iadd__(self, other):
        self.values.append(other)
        return self

    def __isub__(self, other):
        return Stack(*self.values[:-1])

    def __imul__(self, other):
        return NotImplemented

    def __mul__(self, other):
        return Stack(*self.values * other)

    def __ior__(self, other):
        self.values.extend(other)
        return self

    def __imatmul__(self, other):
        return 'matmul'

    def __getitem__(self, index):
        return self.values[index]

    def __setitem__(self, index, value):
        self.values[index] = value


stack_of = Stack(1, 2)
holder_of = {'stack': stack_of, 'n': 1, 'list': [1]}
""",
        expressions="""
int: len(stack_of.values)
zoo: stack_of.values
zoo: holder_of['list']
""",
        statements="""
<+pile> = stack_of
<$pile> += <int>
log.append(<$pile> is stack_of)

<+pile> = stack_of
<$pile> -= 1
log.append((<$pile> is stack_of, <$pile>.values))

<+pile> = Stack(<int>)
<$pile> *= <k>
log.append(<$pile>.values)

<+pile> = Stack()
<$pile> |= <ints>
<$pile> @= 1
log.append(<$pile>)

stack_of[0] += <int>

holder_of['n'] += <int>

holder_of['stack'] += <zoo>

holder_of['list'] += <ints>

holder_of['list'] *= 2

log_of_pairs = ([1], [2])
try:
    log_of_pairs[0] += [<int>]
    <body>
except TypeError as error:
    log.append((str(error), log_of_pairs))

<+tensor> = <tensor>.clone()
<$tensor>[0] += <int>
<$tensor>[..., 0] *= 2
<$tensor> /= 2

<+str> = <str>
<$str> += <w>
<$str> *= <k>
log.append(<$str>)
""",
        changes="""
stack_of = Stack(5)
holder_of['n'] = 2.5
Stack.__iadd__ = lambda self, other: other
del Stack.__ior__
holder_of['stack'].values.clear() if isinstance(holder_of['stack'], Stack) else None
""",
    ),
    Feature(
        "comparisons",
        setup="""
import functools


@functools.total_ordering
class Grade:
    def __init__(self, mark):
        self.mark = mark

    def __eq__(self, other):
        if not isinstance(other, Grade):
            return NotImplemented
        return self.mark == other.mark

    def __lt__(self, other):
        if not isinstance(other, Grade):
            return NotImplemented
        return self.mark < other.mark

    def __hash__(self):
        return 1


class Odd:
    def __eq__(self, other):
        return 'equal'

    def __ne__(self, other):
        return []

    def __gt__(self, other):
        return x0

    def __contains__(self, item):
        return 'yes'


grade = Grade(2)
odd_one = Odd()
""",
        expressions="""
bool: grade <= Grade(<int>)
bool: Grade(<int>) > grade
bool: grade == <int>
bool: grade != Grade(<int>)
bool: Grade(0) < grade < Grade(<int>)
bool: grade in [Grade(<int>), Grade(2)]
bool: <int> in odd_one
bool: not odd_one != odd_one
bool: <int> < <int> <= <int> != 4
int: {Grade(2): 1, grade: 2}[Grade(2)]
int: [Grade(1), grade].index(Grade(2))
int: max(grade, Grade(<int>)).mark
zoo: odd_one == <int>
zoo: odd_one != <int>
tensor: odd_one > 1
""",
        statements="""
try:
    log.append(grade < <int>)
    <body>
except TypeError as error:
    log.append(str(error))

log.append([g.mark for g in sorted([grade, Grade(<int>), Grade(1)])])

try:
    log.append(<str> < <int>)
except TypeError as error:
    log.append(str(error))

try:
    log.append([1, <str>] < [1, <int>])
except TypeError as error:
    log.append(str(error))

log.append([1, <int>] < [1, 2, 3])

log.append((<tensor>.dim(), <str>) >= (2, 'a'))

if grade > Grade(<int>) or odd_one == 1:
    <body>
""",
        changes="""
grade = Grade(4)
grade.mark = -1
Grade.__lt__ = lambda self, other: True
Odd.__contains__ = lambda self, item: []
Grade.__hash__ = lambda self: self.mark
""",
    ),
    Feature(
        "callable_objects",
        setup="""
class Adder:
    calls = 0

    def __init__(self, by):
        self.by = by

    def __call__(self, t, *rest, times=1):
        Adder.calls += 1
        return t + self.by * times + sum(rest)

    def __get__(self, holder, owner):
        return self if holder is None else (lambda t: self(t) * 10)

    def bound(self, t):
        return t - self.by


class Uses:
    method = Adder(2)
    alias = Adder.bound

    def plain(self, t):
        return self.method(t)


adder = Adder(1)
uses = Uses()
bound_method = adder.bound
table_of_calls = {'add': adder, 'bound': bound_method, 'relu': torch.relu}
""",
        expressions="""
tensor: adder(<tensor>)
tensor: adder(<tensor>, <int>, times=<int>)
tensor: uses.method(<tensor>)
tensor: uses.plain(<tensor>)
tensor: Uses.alias(adder, <tensor>)
tensor: bound_method(<tensor>)
tensor: table_of_calls['add'](<tensor>)
tensor: [f(<tensor>) for f in table_of_calls.values()][-1]
tensor: Adder.__call__(adder, <tensor>)
func: adder
func: bound_method
func: table_of_calls['relu']
int: Adder.calls
bool: callable(adder)
bool: adder.bound == bound_method
bool: adder.bound is bound_method
bool: bound_method.__self__ is adder
str: bound_method.__func__.__qualname__
""",
        statements="""
adder.by = <int>

try:
    log.append(adder())
    <body>
except TypeError as error:
    log.append(str(error))

try:
    log.append((<int>)(<int>))
except TypeError as error:
    log.append(str(error))

table_of_calls[<key>] = <func>

log.append(list(map(adder, <ints>)))
""",
        changes="""
adder = Adder(6)
adder.__call__ = lambda t: t
Adder.__call__ = lambda self, t, *rest, times=1: t * 2
bound_method = Adder(9).bound
Uses.method = lambda self, t: t
table_of_calls['add'] = torch.abs
""",
    ),
    Feature(
        "container_subclasses",
        setup="""
from collections import OrderedDict, UserDict, UserList


class Loud(list):
    def __init__(self, *values):
        super().__init__(values)
        self.reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)

    def total(self):
        return sum(self)


class Folded(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __missing__(self, key):
        return 'no ' + key

    def update(self, *args, **named):
        for key, value in dict(*args, **named).items():
            self[key] = value


class Word(str):
    def __new__(cls, text):
        word = super().__new__(cls, text * 2)
        word.origin = text
        return word

    def __len__(self):
        return 42


class Whole(int):
    def __add__(self, other):
        return Whole(int(self) + int(other) + 1)


class Couple(tuple):
    @property
    def first(self):
        return self[0]


class Wrapped(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, [value])


loud = Loud(1, 2, 3)
folded = Folded(a=1)
word_of = Word('ab')
natural = Whole(4)
pair_of = Couple([x0, 2])
wrapped = Wrapped(a=1)
""",
        variables={"loud": "ints"},
        expressions="""
int: loud[<k> % 2] if len(loud) > 1 else 0
int: loud.total()
int: loud.reads
int: len(word_of)
int: natural + <int>
int: natural * 2
zoo: folded[<w>]
zoo: folded
zoo: word_of
zoo: natural
zoo: pair_of
zoo: wrapped['a']
zoo: type(loud[1:])
zoo: sorted(loud + [<int>])
str: word_of + 'c'
str: word_of.origin
str: f'{word_of}{natural:03d}'
str: repr(folded)
bool: folded == {'a': 1}
bool: word_of == 'abab'
bool: isinstance(natural + 1, Whole)
bool: 'a' in wrapped
tensor: pair_of.first
tensor: pair_of[0] * natural
""",
        statements="""
loud.append(<int>)

loud[0] = <int>

loud.reads = 0

folded['KEY'] = <int>

folded.update(B=<int>)

folded.setdefault('C', <int>)

wrapped[<key>] = <int>

for <+int> in loud:
    <body>

log.append((list(folded), folded.get('zz')))

log.append([type(v).__name__ for v in (natural + 1, natural - 1, -natural, word_of[:1], pair_of[:1], loud * 1)])

try:
    log.append(folded.pop('nothing'))
except KeyError as error:
    log.append(error.args)
""",
        changes="""
loud = Loud(9, 8)
folded['New'] = 5
word_of = Word('z')
word_of.origin = 'changed'
natural = Whole(7)
Loud.__len__ = lambda self: 0
Folded.__missing__ = lambda self, key: 0
pair_of = Couple((x1, 5))
wrapped.data.clear(); wrapped['a'] = 2
""",
    ),
    Feature(
        "class_creation",
        setup="""
import types
from typing import Generic, TypeVar
T = TypeVar('T')
CREATED = []


class Ordered(type):
    @classmethod
    def __prepare__(mcs, name, bases, **options):
        return {'made_by': mcs.__name__}

    def __new__(mcs, name, bases, space, **options):
        created = super().__new__(mcs, name, bases, dict(space))
        created.fields = [key for key in space if not key.startswith('_')]
        CREATED.append((name, sorted(options)))
        return created

    def __init__(cls, name, bases, space, **options):
        super().__init__(name, bases, space)

    def __iter__(cls):
        return iter(cls.fields)

    def __getitem__(cls, key):
        return (cls.__name__, key)

    def __eq__(cls, other):
        return isinstance(other, type) and cls.__name__ == other.__name__

    def __hash__(cls):
        return 3


class Form(metaclass=Ordered, strict=True):
    first = 1
    second = x1

    def show(self):
        return self.fields


class Registered:
    members = []

    def __init_subclass__(cls, /, label='none', **rest):
        super().__init_subclass__(**rest)
        cls.label = label
        Registered.members.append(cls)

    def __class_getitem__(cls, item):
        return f'{cls.__name__}<{item}>'


class Carton(Generic[T]):
    def __init__(self, content):
        self.content = content


def constructed(cls, *args):
    return cls(*args)
""",
        expressions="""
zoo: list(Form)
zoo: Form[<int>]
zoo: Form().show()
zoo: constructed(Carton, <zoo>)
zoo: Carton[int](<int>).content
zoo: [c.label for c in Registered.members]
str: Registered[<int>]
str: type(Form).__name__
str: Form.made_by
int: len(CREATED)
bool: Form == type('Form', (), {})
bool: Form in {Form: 1}
bool: isinstance(Form, Ordered)
bool: issubclass(Form, object)
tensor: Form.second
""",
        statements="""
class <+cls>(Registered, label=<str>):
    weight = <int>
    def scaled(self, t):
        return t * self.weight
log.append((<$cls>.label, <$cls>().scaled(<int>)))

class <+cls>(metaclass=Ordered, size=<int>):
    alpha = <int>
    beta = [alpha]
log.append((<$cls>.fields, <$cls>.beta))

<+cls> = types.new_class('Made', (Form,), {'loose': 1}, lambda space: space.update(third=<int>))
log.append((<$cls>.third, list(<$cls>)))

try:
    type('Broken', (int, str), {})
    <body>
except TypeError as error:
    log.append(str(error))

try:
    class <+cls>(Registered, label=1, unknown=2):
        pass
except TypeError as error:
    log.append(str(error))

class <+cls>(Carton[int]):
    def get(self):
        return self.content
log.append(<$cls>(<int>).get())
""",
        changes="""
CREATED.clear()
Form.first = 10
Form.fields = ['other']
Registered.members.clear()
Ordered.__iter__ = lambda cls: iter('xy')
Registered.__class_getitem__ = classmethod(lambda cls, item: 'changed')
""",
    ),
)
