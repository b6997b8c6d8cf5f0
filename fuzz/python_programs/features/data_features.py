"""Sequences, mappings and sets: slices, views, ordering, bytes, and what changes them in place."""

from ..grammar import Feature

DATA_FEATURES: tuple[Feature, ...] = (
    Feature(
        "slices",
        setup="digits = [0, 1, 2, 3, 4, 5, 6, 7]",
        variables={"digits": "ints"},
        expressions="""
ints: <ints>[::-2]
ints: <ints>[-<k>:]
ints: <ints>[<k>::-1]
ints: <ints>[<int>:<int>:2]
ints: list(range(<int>, -<k>, -2))[1:]
ints: [*range(<k>, 9)[::-3]]
ints: digits[slice(<int>, None, -1)]
str: <str>[::-1]
str: <str>[-<k>:<k>]
bool: slice(<int>, 3) == slice(1, 3)
int: len(range(<int>, 9, 2)[1:])
zoo: slice(<int>, <int>, None).indices(5)
zoo: (1, 2, 3, 4)[<k>:]
tensor: <tensor>[:, slice(None, None, 2)].sum() + x
tensor: <tensor>[..., None][..., 0]
""",
        statements="""
digits[<k>:<k>] = <ints>

digits[::2] = [v + 1 for v in digits[::2]]

try:
    digits[::2] = [<int>]
    <body>
except ValueError as error:
    log.append(str(error))

del digits[::3]

del digits[-<k>:]

digits[:] = sorted(digits, reverse=<bool>)

digits[<int>:<int>] = (v for v in <ints>)

digits[len(digits):] = [<int>]

<+ints> = digits.copy()
<$ints>[1:1] = 'ab'
log.append(<$ints>)
""",
        changes="""
digits = list(range(6))
digits.clear()
digits[::-1] = digits[:]
digits.append(True)
""",
    ),
    Feature(
        "unpacking",
        setup="""
def gather(*parts, **named):
    return list(parts) + sorted(named)


def pairs_of_three():
    yield from ((1, 2), (3, 4), (5, 6))
""",
        expressions="""
zoo: gather(*<ints>, *<str>, **<table>)
zoo: gather(*<table>, **{**<table>, 'z': <int>})
zoo: [*<ints>, *(<int>, <int>), *<table>]
zoo: (*<str>, *<ints>)
zoo: {*<ints>, *(1, 2)}
zoo: {**<table>, **dict(zip('xy', <ints>))}
int: len(gather(*map(str, <ints>), *{1, 2}))
""",
        statements="""
for <+int>, *<+ints> in ((1, 2, 3), [<int>], [4, <int>]):
    <body>

(<+int>, *<+ints>), *_, <+int> = [[<int>, <int>], 3, <int>]

[<+str>, *_] = 'word'

try:
    first, second, third = <ints>
    log.append(third)
    <body>
except ValueError as error:
    log.append(str(error))

try:
    first, *rest, last = <ints>[:1]
except ValueError as error:
    log.append(str(error))

for (<+int>, <+int>) in pairs_of_three():
    <body>

<+int>, <+int> = <+int>, _ = <int>, <int>

log.append([a + b for a, b in pairs_of_three()])

<+ints> = [1, 2]
<$ints>[0], <$ints>[1] = <$ints>[1], <$ints>[0]
""",
    ),
    Feature(
        "dictionary_algebra",
        setup="""
settings = {'a': 1, 'b': [2], 3: 'three', None: 0, (1, 2): 'pair', 1.0: 'one'}
defaults_of = dict.fromkeys(['p', 'q'], 0)
""",
        expressions="""
int: len(settings)
zoo: list(settings)
zoo: list(settings.values())[::-1]
zoo: settings | <table>
zoo: <table> | {<key>: <int>} | defaults_of
zoo: settings.get(<int>, 'nothing')
zoo: dict(reversed(<table>.items()))
bool: True in settings
bool: settings.keys() >= {'a'}
bool: <table> == dict(<table>)
bool: <table>.keys() == <table>.keys()
bool: <table>.items() <= {**<table>, 'z': 0}.items()
bool: list(<table>) == sorted(<table>)
str: repr(<table>.keys() & {'a', 'z'})
str: repr(sorted(<table>.keys() ^ defaults_of.keys()))
str: str(sorted(<table>.items(), key=lambda p: (-p[1], p[0])))
int: settings[1]
table: {v: i for i, v in enumerate(<table>)}
table: dict(<table>, c=<int>)
table: dict([('a', <int>), ('b', 2)])
table: {k: v for k, v in sorted(<table>.items())[:2]}
int: max(<table>.values(), default=<k>)
str: max(<table>, key=<table>.get, default='none')
""",
        statements="""
settings[<key>] = <zoo>

settings.update({<key>: <int>})

settings.setdefault(<key>, []) if isinstance(settings.get(<key>), list) else None

log.append(settings.popitem())

log.append(<table>.popitem() if <table> else 'empty')

for <+str>, <+int> in sorted(<table>.items()):
    <body>

for <+str> in reversed(<table>):
    log.append(<$str>)

try:
    for <+str> in <$table>:
        <$table>[<$str> + 'x'] = <int>
        <body>
except RuntimeError as error:
    log.append(str(error))

try:
    log.append({[]: 1})
except TypeError as error:
    log.append(str(error))

<+table> = <table>
<+view> = <$table>.items()
<$table>['late'] = <int>
log.append((len(<$view>), list(<$view>)[-1], ('late', 1) in <$view>))

del settings[next(iter(settings))]

settings.update(zip('ab', <ints>), c=<int>)

log.append(list(dict(a=1, **{'b': <int>}).items()))

log.append([*settings.items()])
""",
        changes="""
settings.pop('a', None)
settings['a'] = 5
settings = {'b': 1, 1: 'x', 'a': 2}
defaults_of['p'] += 1
settings[True] = 'true'
""",
    ),
    Feature(
        "set_algebra",
        setup="""
marks = {1, 'one', (1,), None}
fixed_marks = frozenset({1, 2, 3})
""",
        expressions="""
int: len(marks)
bool: <int> in marks
bool: fixed_marks <= {*<ints>, 1, 2, 3}
bool: fixed_marks.isdisjoint(<ints>)
bool: {<int>} < fixed_marks
bool: fixed_marks == {1, 2, 3}
str: repr(sorted(fixed_marks - {<int>}))
str: repr(sorted(fixed_marks ^ set(<ints>)))
str: repr(sorted(fixed_marks.union(<ints>, range(<k>))))
str: repr(sorted(set(<ints>).intersection(fixed_marks, <ints>)))
str: type(fixed_marks | {1}).__name__
str: type({1} | fixed_marks).__name__
ints: sorted({*<ints>} & fixed_marks)
ints: sorted(set(<ints>) - fixed_marks, reverse=<bool>)
int: {fixed_marks: 4}[frozenset((3, 2, 1))]
int: hash(fixed_marks) - hash(frozenset([3, 1, 2]))
""",
        statements="""
marks.add(<zoo>) if isinstance(<zoo>, (int, str)) else None

marks.update(<ints>, <str>)

marks.difference_update(<ints>)

marks.intersection_update({1, 'one', None, *<ints>})

try:
    marks.remove(<int>)
    <body>
except KeyError as error:
    log.append(error.args)

try:
    fixed_marks.add(1)
except AttributeError as error:
    log.append(str(error))

<+marks> = {1, 2, 3}
<+marks_too> = <$marks>
<$marks> |= {<int>}
log.append((<$marks> is <$marks_too>, sorted(<$marks_too>)))

log.append(sorted({v % 3 for v in <ints>} | {<int> for _ in range(2)}))

try:
    log.append({1} + {2})
except TypeError as error:
    log.append(str(error))
""",
        changes="""
marks.clear()
marks = {2, 3, 'two'}
fixed_marks = frozenset({0, 2})
marks.add(4.0)
""",
    ),
    Feature(
        "sorting",
        setup="""
import operator
people = [('ann', 3), ('bob', 1), ('cid', 3), ('dee', 2)]


class Weighed:
    def __init__(self, weight, name):
        self.weight, self.name = weight, name

    def __lt__(self, other):
        WEIGHINGS.append((self.name, other.name))
        return self.weight < other.weight


WEIGHINGS = []
""",
        expressions="""
zoo: sorted(people, key=lambda p: p[1])
zoo: sorted(people, key=lambda p: p[1], reverse=<bool>)
zoo: sorted(people, key=operator.itemgetter(1, 0))
zoo: min(people, key=lambda p: (p[1], -len(p[0])))
zoo: max(people, key=operator.itemgetter(1))
ints: sorted(<ints>, key=lambda v: v % 2, reverse=True)
ints: sorted(<ints>, key=str)
ints: sorted(<ints> + [True, 2.0], key=float)
str: ''.join(sorted(<str>, key=str.lower, reverse=True))
str: [p.name for p in sorted([Weighed(<int>, 'p'), Weighed(<int>, 'q'), Weighed(1, 'r')])][0]
int: min(<ints>, default=<k>, key=lambda v: -v)
int: len(WEIGHINGS)
int: max(<int>, <int>, <k>, key=lambda v: v % 3)
zoo: sorted(<table>.items(), key=lambda p: p[::-1])
tensors: sorted(<tensors>, key=lambda t: t.dim())
""",
        statements="""
people.sort(key=lambda p: -p[1])

people.sort(reverse=<bool>)

people.append((<str>, <int>))

try:
    log.append(sorted([<int>, <str>]))
    <body>
except TypeError as error:
    log.append(str(error))

try:
    log.append(sorted([<int>, None], key=lambda v: v))
except TypeError as error:
    log.append(str(error))

<+ints> = [3, 1, 2]
<$ints>.sort(key=lambda v: (log.append(v), v)[1])

log.append(list(reversed(sorted(<ints>))))
""",
        changes="""
people.reverse()
people = [('zoe', 0), ('yan', 0)]
WEIGHINGS.clear()
Weighed.__lt__ = lambda self, other: self.name < other.name
""",
    ),
    Feature(
        "byte_strings",
        setup="""
raw = b'abc\\x00\\xff'
buffer = bytearray(b'hello')
window = memoryview(bytearray(range(6)))
""",
        expressions="""
int: raw[<k>]
int: len(raw)
int: buffer[0]
int: window[<k>]
int: raw.find(b'c')
int: raw.count(b'a')
int: int.from_bytes(raw[:2], 'big')
str: repr(raw)
str: raw.hex()
str: repr(raw[::-1])
str: repr(bytes(<ints>[:2]) if all(0 <= v < 256 for v in <ints>[:2]) else b'')
str: repr(b'%d-%s' % (<int>, b'z'))
str: repr(b','.join([b'a', raw[:1]]))
str: repr(raw.split(b'b'))
str: repr(buffer)
str: buffer.decode('latin-1')
str: repr(<str>.encode('utf-16-le'))
str: repr(raw.replace(b'a', b'__').upper())
str: repr(bytes.fromhex('0aff').ljust(4, b'.'))
bool: raw.startswith((b'a', b'x'))
bool: 97 in raw
bool: b'bc' in raw
bool: raw == bytearray(raw)
bool: raw < b'b'
ints: list(raw)
ints: list(window[1:4])
ints: list(bytes(<k>))
zoo: raw
""",
        statements="""
buffer[0] = <k> + 65

buffer.extend(b'!' * <k>)

buffer[1:3] = b'EE'

del buffer[:1]

window[0] = <k>

for <+int> in raw[:3]:
    <body>

try:
    raw[0] = 1
except TypeError as error:
    log.append(str(error))

try:
    log.append(bytes([<int> * 100]))
except ValueError as error:
    log.append(str(error))

try:
    log.append(raw + 'text')
except TypeError as error:
    log.append(str(error))

try:
    log.append(raw.decode())
    <body>
except UnicodeDecodeError as error:
    log.append((error.start, error.reason, str(error)))

log.append(window.tolist())
""",
        changes="""
raw = b'xyz' * 2
buffer = bytearray(b'other')
buffer.clear()
window[1] = 9
raw = bytearray(raw)
""",
    ),
    Feature(
        "deques",
        setup="""
from collections import deque
line = deque([1, 2, 3], maxlen=3)
free = deque('ab')
""",
        expressions="""
int: len(line)
int: line[-1] if line else 0
int: line.maxlen
ints: [v for v in line]
ints: list(reversed(line))
int: line.count(<int>)
int: line.index(<int>) if <int> in line else -1
str: repr(line)
str: repr(deque(<ints>, maxlen=<k>))
str: repr(free)
bool: line == deque([1, 2, 3])
bool: line < deque([2])
str: repr(line + deque([<int>]))
str: repr(free * 2)
zoo: line
zoo: line.copy()
""",
        statements="""
line.append(<int>)

line.appendleft(<int>)

line.extend(<ints>)

line.extendleft(<ints>)

line.rotate(-<k>)

line.reverse()

free.insert(<k>, <str>)

try:
    line.insert(0, <int>)
    <body>
except IndexError as error:
    log.append(str(error))

try:
    log.append(line.popleft())
    line.remove(<int>)
except (IndexError, ValueError) as error:
    log.append(str(error))

try:
    log.append(line[1:])
except TypeError as error:
    log.append(str(error))

try:
    for <+int> in line:
        line.append(<$int>)
        <body>
except RuntimeError as error:
    log.append(str(error))

if line:
    line[0] = <int>
    del line[-1]

free.clear()
""",
        changes="""
line = deque([5, 6], maxlen=4)
line.append(8)
free = deque('xyz', maxlen=2)
line.maxlen
""",
    ),
    Feature(
        "counters",
        setup="""
from collections import ChainMap, Counter, OrderedDict, defaultdict
tally = Counter(a=2, b=1)
layers = ChainMap({'a': 1}, {'a': 2, 'b': 3})
turns = OrderedDict([('x', 1), ('y', 2), ('z', 3)])
nested_lists = defaultdict(lambda: defaultdict(int))
""",
        expressions="""
int: tally[<key>]
int: tally.total()
int: layers.get(<key>, <k>)
int: len(layers.maps)
int: nested_lists[<key>][<str>]
int: turns[next(iter(turns))] if turns else 0
zoo: tally + Counter(<w>)
zoo: tally - Counter(a=<k>)
zoo: tally & Counter(a=1, c=2)
zoo: tally | Counter(<ints>)
zoo: +tally
zoo: -tally
zoo: tally.most_common(<k>)
zoo: sorted(tally.elements())
zoo: layers.new_child({'c': <int>})
zoo: layers.parents
zoo: dict(layers)
zoo: list(turns.items())
bool: tally == Counter('aab')
bool: tally <= Counter(a=3, b=3)
bool: turns == OrderedDict(z=3, y=2, x=1)
bool: turns == dict(x=1, y=2, z=3)
str: repr(tally)
str: repr(turns)
str: repr(layers)
str: repr(nested_lists)
""",
        statements="""
tally.update(<w>)

tally.update(a=<int>)

tally.subtract(<w>)

tally[<key>] -= <int>

del tally['missing']

layers[<key>] = <int>

try:
    del layers['b']
except KeyError as error:
    log.append(str(error))

nested_lists[<key>][<key>] += <int>

if turns:
    turns.move_to_end(next(iter(turns)), last=<bool>)

try:
    turns.move_to_end('nothing')
except KeyError as error:
    log.append(error.args)

log.append(turns.popitem(last=<bool>) if turns else None)

turns['w'] = <int>

for <+str> in tally:
    <body>

log.append(list(reversed(turns)))
""",
        changes="""
tally = Counter([3, 3, 'a'])
tally.clear()
layers.maps.append({'c': 9})
turns = OrderedDict(b=1, a=2)
nested_lists.default_factory = list
turns.clear()
""",
    ),
    Feature(
        "identities",
        setup="""
first_tensor = x0 + 1
bag_of_tensors = [first_tensor, x1, first_tensor]
by_name = {'t': first_tensor, 'same': first_tensor}
""",
        variables={"first_tensor": "tensor"},
        expressions="""
bool: <tensor> is first_tensor
bool: bag_of_tensors[0] is bag_of_tensors[-1]
bool: any(t is <tensor> for t in bag_of_tensors)
bool: first_tensor in [first_tensor]
bool: by_name['t'] is by_name['same']
bool: <ints> is <ints>
bool: <table> is <table>
bool: None is not <zoo>
int: [i for i, t in enumerate(bag_of_tensors) if t is first_tensor][-1]
int: len({id(t) for t in bag_of_tensors})
int: len({t: 0 for t in bag_of_tensors})
int: len(set(bag_of_tensors))
""",
        statements="""
try:
    log.append(<tensor> in bag_of_tensors)
    <body>
except RuntimeError as error:
    log.append(str(error))

try:
    log.append(bag_of_tensors.index(<tensor>))
except (RuntimeError, ValueError) as error:
    log.append(type(error).__name__)

try:
    log.append(bag_of_tensors == [first_tensor, x1, first_tensor])
except RuntimeError as error:
    log.append(str(error)[:40])

try:
    bag_of_tensors.remove(<tensor>)
except (RuntimeError, ValueError) as error:
    log.append(type(error).__name__)

by_name[<key>] = <tensor>

bag_of_tensors[0] = <tensor>

first_tensor.mark = <int>
log.append(getattr(bag_of_tensors[-1], 'mark', None))

<+tensor> = first_tensor
<$tensor>.add_(1)
log.append(<$tensor> is first_tensor)

<+tensor> = first_tensor
<$tensor> = <$tensor> + 1
log.append(<$tensor> is first_tensor)

log.append((<tensor> == <tensor>).all() if <bool> else None)

try:
    if <tensor> == <tensor>:
        <body>
except RuntimeError as error:
    log.append(str(error)[:50])
""",
        changes="""
bag_of_tensors = [x0, x0, x1]
by_name['same'] = x1
first_tensor.mark = 'new'
first_tensor = x0
bag_of_tensors.append(x0)
del by_name['t'], by_name['same']; by_name['t'] = by_name['same'] = x1
""",
    ),
    Feature(
        "names",
        setup="""
LEVEL = 1


def bump_level(by):
    global LEVEL
    LEVEL += by
    return LEVEL


def made_and_dropped():
    global FRESH
    FRESH = LEVEL * 2
    found = FRESH
    del FRESH
    return found


def chain_of_cells():
    total = 0
    def inner():
        nonlocal total
        def innermost(by):
            nonlocal total
            total += by
            return total
        return innermost
    return inner(), lambda: total
""",
        expressions="""
int: bump_level(<int>)
int: made_and_dropped()
int: LEVEL
int: chain_of_cells()[0](<int>)
bool: 'FRESH' in globals()
""",
        statements="""
<+int> = <int>
log.append(<$int>)
del <$int>
try:
    log.append(<$int>)
except UnboundLocalError as error:
    log.append(type(error).__name__)
<$int> = 0

try:
    log.append(NEVER_MADE)
    <body>
except NameError as error:
    log.append(str(error))

add_to, ask = chain_of_cells()
add_to(<int>)
<body>
log.append((add_to(<int>), ask()))

class <+space>:
    size = <int>
    doubled = [size_ * 2 for size_ in range(size % 4)]
    def method(self):
        return __class__.size
    if size > 2:
        extra = 'large'
    else:
        extra = 'small'
log.append((<$space>.size, <$space>.extra, <$space>().method()))

log.append([(lambda: i)() for i in range(<k>)])

log.append([f() for f in [lambda: i for i in range(<k>)]])

if (lambda: (deep := <int>))() > 2:
    <body>
""",
        changes="""
LEVEL = 20
LEVEL = 0.5
FRESH = 'outside'
""",
    ),
)
