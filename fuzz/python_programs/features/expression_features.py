"""Expressions: truth and short circuits, builtin functions, questions about types, views, tensors inside containers."""

from ..grammar import Feature

EXPRESSION_FEATURES: tuple[Feature, ...] = (
    Feature(
        "truth_values",
        setup="""
ASKED = []


class Answer:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        ASKED.append(self.value)
        return bool(self.value)


def asked(value):
    ASKED.append('asked')
    return value


yes, no = Answer(1), Answer(0)
""",
        expressions="""
zoo: yes and <zoo>
zoo: no or <zoo>
zoo: not no
zoo: <ints> or <str> or <int>
zoo: <table> and <ints> and 'all'
bool: bool(yes) is True
bool: all([yes, asked(<int>), no])
bool: any(asked(v) for v in <ints>)
bool: not (<bool> and no)
bool: 0 < asked(<int>) < 3 < asked(5)
int: len(ASKED)
int: (1 if yes else 2) + (3 if no else 4)
int: asked(<int>) or asked(2)
tensor: (yes and x) * (no or 2)
""",
        statements="""
if yes and not no or <bool>:
    <body>

while no or len(log) < 2:
    log.append('filled')
    <body>

assert yes, 'no'

log.append([v for v in (yes, no, <int>) if v] == [yes])

log.append(list(filter(None, [yes, no, <zoo>])) == [])

if not <tensors> or <tensors>[0].numel():
    <body>
""",
        changes="""
yes.value = 0
no.value = 'now'
Answer.__bool__ = lambda self: True
del Answer.__bool__
ASKED.clear()
""",
    ),
    Feature(
        "builtin_functions",
        setup="""
def pairs(*values):
    return list(zip(values, values[1:]))
""",
        expressions="""
int: abs(-<int>) + ord('a') % 5
int: sum(map(int, '123'), <int>)
int: len(list(filter(lambda v: v > 1, <ints>)))
int: max(map(len, ['a', <str>]))
int: min(*<ints>, <int>, 3)
int: next(iter(<ints>), <int>)
int: round(<float> % 5) + int(<bool>)
float: pow(<int>, 2, None) / 2
float: float('1e2') + float(<bool>)
float: sum([0.1] * <k>)
bool: callable(<func>) and not callable(<int>)
bool: isinstance(<zoo>, (int, str, type(None)))
bool: issubclass(bool, int | str)
bool: isinstance(<tensor>, torch.Tensor | int)
str: ascii(<str>) + repr(<int>) + chr(98)
str: bin(<k>)[2:].zfill(3)
str: str(type(<zoo>).__name__)
str: str(b'x', 'ascii')
zoo: pairs(*<ints>)
zoo: list(zip(*pairs(1, 2, <int>)))
zoo: dict(enumerate(<str>))
zoo: list(map(lambda *a: a, <ints>, <str>))
zoo: sorted(set(<str>))
zoo: [*reversed(range(<k>))]
zoo: divmod(<int>, 3)
zoo: slice(<k>)
zoo: vars(type('Space', (), {'a': <int>})())
tensor: max(<tensor>, <tensor>, key=lambda t: t.numel())
tensor: sum(<tensors>) if <tensors> else x
tensor: getattr(<tensor>, 'clone')()
tensor: next(iter(<tensors>), x)
""",
        statements="""
try:
    log.append(max(<ints>))
    <body>
except ValueError as error:
    log.append(str(error))

try:
    log.append(next(iter(())))
except StopIteration as error:
    log.append(error.args)

try:
    log.append(len(<int>))
except TypeError as error:
    log.append(str(error))

try:
    log.append(sum([<int>, <str>]))
except TypeError as error:
    log.append(str(error))

log.append(list(zip(range(3), iter(<ints>), <str>)))

log.append([i for i, v in enumerate(<ints>, start=<int>)])

log.append(getattr(<zoo>, 'nothing', 'default'))

log.append(list(map(str, sorted(<table>))))
""",
        changes="""
sum = lambda *a, **k: 5
abs = lambda v: v
sorted = list
""",
    ),
    Feature(
        "questions_of_types",
        setup="""
from collections.abc import Callable, Hashable, Iterable, Sized


class Animal:
    noise = 'none'

    def speak(self):
        return f'{type(self).__name__} says {self.noise}'


class Dog(Animal):
    noise = 'woof'


class Louder:
    noise = 'LOUD'


animal = Dog()
kinds = {int: 'number', str: 'text', torch.Tensor: 'tensor'}
""",
        expressions="""
zoo: kinds.get(type(<zoo>), 'other')
zoo: type(animal)().speak()
zoo: type('Cat', (Animal,), {'noise': <str>})().speak()
zoo: [c.__name__ for c in type(animal).__mro__]
zoo: next((name for kind, name in kinds.items() if isinstance(<zoo>, kind)), 'none')
zoo: type(<zoo>) in (int, float, str)
str: animal.speak()
str: Animal.speak(animal)
str: animal.__class__.__qualname__
str: Dog.__base__.__name__
bool: type(animal) is Dog
bool: isinstance(<zoo>, Hashable)
bool: isinstance(<zoo>, Iterable)
bool: isinstance(<ints>, Sized) and isinstance(<func>, Callable)
bool: type(<int>) == type(<float>)
bool: issubclass(Dog, (Louder, Animal))
bool: type(<tensor>) is type(x)
bool: hasattr(<zoo>, '__len__')
""",
        statements="""
for kind in (int, str, list, torch.Tensor):
    if isinstance(<zoo>, kind):
        log.append(kind.__name__)
        <body>

try:
    log.append(isinstance(<int>, 'int'))
except TypeError as error:
    log.append(str(error))

kinds[type(<zoo>)] = <str>
""",
        changes="""
animal = Animal()
animal.__class__ = type('Wolf', (Dog,), {})
Dog.noise = 'arf'
Dog.__bases__ = (Louder, Animal)
kinds.pop(int, None)
animal.noise = 'own'
""",
    ),
    Feature(
        "views_of_mappings",
        setup="""
from types import MappingProxyType
stored = {'a': 1, 'b': 2, 'c': 3}
keys_of, values_of, items_of = stored.keys(), stored.values(), stored.items()
read_only = MappingProxyType(stored)
""",
        expressions="""
int: len(keys_of)
int: sum(values_of)
int: read_only[<key>] if <key> in read_only else -1
int: max(items_of, key=lambda p: p[1], default=('', 0))[1]
bool: <w> in keys_of
bool: <int> in values_of
bool: (<key>, <int>) in items_of
bool: keys_of == {'a', 'b', 'c'}
bool: keys_of.isdisjoint('xyz')
bool: keys_of <= {*'abcd'}
zoo: list(reversed(items_of))
zoo: sorted(keys_of | {'z'})
zoo: sorted(keys_of - {<w>})
zoo: sorted(items_of & {('a', 1)})
zoo: dict(read_only, d=<int>)
zoo: read_only | {'q': <int>}
str: repr(keys_of)
str: repr(values_of)
str: repr(items_of)
str: repr(read_only)
""",
        statements="""
stored[<key>] = <int>

stored['d'] = <int>
log.append(list(keys_of))
del stored['d']

<+it> = iter(items_of)
log.append(next(<$it>, None))
<body>
try:
    stored['late'] = 1
    log.append(next(<$it>))
except (RuntimeError, StopIteration) as error:
    log.append(str(error))
stored.pop('late', None)

try:
    read_only['a'] = <int>
except TypeError as error:
    log.append(str(error))

for <+str>, <+int> in items_of:
    <body>

for <+int> in [*values_of]:
    <body>
""",
        changes="""
stored.clear()
stored.update(x=5, a=0)
stored['b'] = 20
read_only = MappingProxyType({'z': 1})
keys_of = {'p': 1}.keys()
""",
    ),
    Feature(
        "tensors_in_containers",
        setup="""
from collections import OrderedDict, defaultdict, namedtuple
Group = namedtuple('Group', 'inputs outputs')
cache_of = {'x': x0, 'pair': (x0, x1), 'nested': {'deep': [x1]}}
batches = Group([x0], {'y': x1})
by_shape = defaultdict(list)
""",
        expressions="""
tensor: cache_of['x']
tensor: cache_of['pair'][<k> % 2]
tensor: cache_of['nested']['deep'][-1]
tensor: batches.outputs['y']
tensor: torch.stack([*batches.inputs, *cache_of['nested']['deep']]).sum(0)
tensor: sum(t.sum() for t in cache_of['pair']) * x
tensors: list(cache_of['pair'])
tensors: [t for ts in (batches.inputs, <tensors>) for t in ts]
int: len(by_shape)
int: sum(map(len, by_shape.values()))
bool: cache_of['x'] is cache_of['pair'][0]
bool: all(torch.equal(a, b) for a, b in zip(<tensors>, <tensors>))
zoo: {k: tuple(v.shape) for k, v in zip('ab', <tensors>)}
zoo: batches._replace(inputs=<tensors>)
""",
        statements="""
by_shape[tuple(<tensor>.shape)].append(<tensor>)

cache_of['x'] = <tensor>

cache_of['nested']['deep'].append(<tensor>)

cache_of['pair'] = (*cache_of['pair'], <tensor>)

batches.inputs[0] = batches.inputs[0] + 1

for <+str>, <+tensor> in batches.outputs.items():
    batches.outputs[<$str>] = <$tensor> * 2
    <body>

first_of, *others_of = [<tensor>, *<tensors>]
log.append((first_of, len(others_of)))

for t in <tensors>:
    t.add_(<int>)

log.append(sorted(<tensors>, key=lambda t: float(t.sum()))[:1])

log.append({'a': <tensor>, 'b': [<tensor>, (<tensor>,)]})
""",
        changes="""
cache_of['x'] = x1 * 2
cache_of['nested'] = {'deep': [x0, x1]}
batches = Group([x1, x0], {'y': x0, 'z': x1})
by_shape.clear()
batches.inputs.append(x1)
""",
    ),
    Feature(
        "shapes_and_sizes",
        setup="SIZES = [2, 3]",
        expressions="""
int: <tensor>.shape[0] * 2
int: <tensor>.size(-1)
int: len(<tensor>.shape)
int: <tensor>.stride(0) if <tensor>.dim() else 1
int: x.shape.numel()
int: (x.shape + (4,))[-1]
zoo: x.shape
zoo: tuple(<tensor>.size())
zoo: list(<tensor>.shape)[::-1]
zoo: torch.Size(SIZES)
zoo: [*x.shape]
bool: x.shape == (2, 3)
bool: x.shape == torch.Size(SIZES)
bool: x.shape[0] < x.shape[1]
bool: isinstance(x.shape, tuple)
tensor: torch.zeros(x.shape)
tensor: torch.zeros(*SIZES)
tensor: torch.ones(x.shape[1], x.shape[0]).t()
tensor: x.reshape(-1, x.shape[0]).t()
tensor: x.expand(2, *x.shape).sum(0)
tensor: x.new_full((x.size(0), 1), <float>)
tensor: torch.arange(x.numel()).view(x.shape).float()
tensor: x.repeat(<k>, 1)[:2] if <k> else x
tensor: x.permute(*range(x.dim())[::-1]).t()
tensor: x[:, : x.shape[1] - <k> % 2]
tensor: x.flatten().unflatten(0, (x.shape[0], -1))
""",
        statements="""
rows, columns = x.shape
log.append(rows * columns)

*_, last_size = <tensor>.shape or (0,)
log.append(last_size)

try:
    log.append(x.shape[<int>])
    <body>
except IndexError as error:
    log.append(str(error))

try:
    log.append(x.shape.nothing)
except AttributeError as error:
    log.append(str(error))

for size in x.shape:
    log.append(size)

if x.shape[0] == <int>:
    <body>

log.append(f'{x.shape[0]}x{x.shape[-1]}')

match x.shape:
    case [2, columns]:
        log.append(columns)
    case torch.Size():
        <body>
""",
        changes="""
SIZES = [3, 2]
SIZES.append(1)
SIZES[0] = 1
""",
    ),
)
