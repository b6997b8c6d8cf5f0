"""Containers that ask the program: keys that count, elements that change what holds them, classes of containers."""

from ..grammar import Feature

ASKING_FEATURES: tuple[Feature, ...] = (
    Feature(
        "asked_keys",
        setup="""
class AskedKey:
    refuses = False

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        if self.refuses:
            raise LookupError('refused')
        return self.number % 2

    def __eq__(self, other):
        return isinstance(other, AskedKey) and self.number == other.number


old_key = AskedKey(1)
asked_table = {old_key: 2}
""",
        variables={"askedkey": "old_key", "askedtable": "asked_table"},
        expressions="""
askedkey: AskedKey(<int>)
askedtable: {<askedkey>: <int>, <askedkey>: <int>}
askedtable: dict.fromkeys([<askedkey>, <askedkey>], <int>)
askedtable: {**<askedtable>, <askedkey>: <int>}
askedset: {<askedkey>, <askedkey>}
askedset: set(<askedtable>)
askedset: frozenset(<askedset>) | {<askedkey>}
int: len(<askedtable>)
int: len(<askedset>)
int: <askedtable>.get(<askedkey>, <k>)
int: <askedtable>.setdefault(<askedkey>, <int>)
int: sum(<askedtable>.values())
bool: <askedkey> in <askedset>
bool: <askedtable> == <askedtable>
""",
        statements="""
<=askedtable> = <askedtable>
<$askedtable>[<askedkey>] = <int>
log.append(len(<$askedtable>))

<=askedkey> = <askedkey>
<=askedtable> = {<$askedkey>: <int>}
<$askedkey>.refuses = <bool>
try:
    log.append(<$askedtable>[<$askedkey>])
except LookupError as refusal:
    log.append(repr(refusal))

<=askedkey> = <askedkey>
<$askedkey>.refuses = <bool>
<body>
log.append(<$askedkey>.refuses)

log.append(<askedtable>.pop(<askedkey>, <int>))
""",
        changes="""
m.asked_table[m.AskedKey(3)] = 5
m.old_key.refuses = not m.old_key.refuses
""",
    ),
    Feature(
        "changing_elements",
        setup="""
class Changing:
    def __init__(self, owner, value, answer):
        self.owner, self.value, self.answer = owner, value, answer

    def __eq__(self, other):
        if len(self.owner) < 5:
            self.owner.append(self.value)
        return self.answer

    def __lt__(self, other):
        self.owner.clear()
        return bool(self.answer)

    __hash__ = None


def changing(kind, value, answer):
    owner = kind([value])
    owner.insert(0, Changing(owner, value, answer))
    return owner


from collections import deque
""",
        expressions="""
holder: changing(list, <int>, <bool>)
holder: changing(deque, <int>, <bool>)
holder: changing(list, <int>, NotImplemented)
bool: <int> in <holder>
bool: list(<holder>) == <ints>
int: <holder>.count(<int>)
int: len(<holder>)
""",
        statements="""
<=holder> = <holder>
try:
    log.append((<$holder> == <holder>, <$holder>.index(<int>)))
except (RuntimeError, ValueError, IndexError) as failure:
    log.append(repr(failure))
log.append(len(<$holder>))

<=holder> = <holder>
try:
    <$holder>.remove(<int>)
except (RuntimeError, ValueError, IndexError) as failure:
    log.append(type(failure).__name__)
log.append(len(<$holder>))
""",
    ),
    Feature(
        "container_classes",
        setup="""
from collections import defaultdict


table_calls = []


class LoggedTable(dict):
    def keys(self):
        table_calls.append('keys')
        return super().keys()

    def __missing__(self, key):
        return len(self)


class LoggedItems(list):
    def __iter__(self):
        table_calls.append('iter')
        return super().__iter__()


class OwnFactory(defaultdict):
    def __init__(self):
        self.default_factory = self.made

    def made(self):
        return [len(self)]


class MeasuredFloat(float):
    def __init__(self, value, unit=None):
        self.unit = unit


class Labelled(frozenset):
    pass


logged_table = LoggedTable(a=1)
logged_items = LoggedItems([1, 2, 3])
""",
        variables={"loggedtable": "logged_table", "loggeditems": "logged_items"},
        expressions="""
loggedtable: LoggedTable(b=<int>)
loggeditems: LoggedItems(<ints>)
tableview: <loggedtable>.values()
tableview: dict.items(<loggedtable>)
tableview: dict.keys(<loggedtable>).mapping
itemview: iter(<loggeditems>)
itemview: reversed(<loggeditems>)
int: <loggedtable>[<key>]
int: len(OwnFactory()[<key>])
float: MeasuredFloat(<float>, unit=<int>) + 1
bool: Labelled(<ints>).copy() is Labelled
str: repr(Labelled([<int>]).copy())
""",
        statements="""
<=loggedtable> = <loggedtable>
<+tableview> = <$loggedtable>.values()
<+itemview> = iter(dict.items(<$loggedtable>))
<body>
<$loggedtable>[<key>] = <int>
log.append(list(<$tableview>))

<=loggeditems> = <loggeditems>
<+itemview> = <itemview>
next(<$itemview>, None)
<body>
<$loggeditems>.append(<int>)
log.append(list(<$itemview>))

log.append(list(<tableview>))

log.append(table_calls[-2:])
""",
        changes="""
m.logged_items.append(4)
m.logged_table['c'] = 7
""",
    ),
    Feature(
        "checked_exceptions",
        setup="""
class CheckedGroup(ExceptionGroup):
    pass


def words(function):
    try:
        return repr(function())
    except BaseException as error:
        return f'{type(error).__name__}: {error} {type(error.__context__).__name__}'


def throwing(error):
    try:
        yield 1
    finally:
        raise error
""",
        expressions="""
inner: ValueError(<int>)
inner: KeyError(<w>)
inner: KeyboardInterrupt()
inner: <int>
str: words(lambda: ExceptionGroup(<w>, [<inner>, <inner>]))
str: words(lambda: CheckedGroup(<w>, (<inner>,)))
str: words(lambda: BaseExceptionGroup(<w>, [<inner>]).message)
str: words(lambda: setattr(ValueError(<int>), '__cause__', <inner>))
str: words(lambda: ValueError(<int>).with_traceback(<inner>))
""",
        statements="""
try:
    <+stepping> = throwing(ValueError(<int>))
    next(<$stepping>)
    try:
        raise KeyError(<w>)
    except KeyError:
        <$stepping>.throw(TypeError(<w>))
except (ValueError, TypeError) as thrown:
    log.append((repr(thrown), repr(thrown.__context__), repr(thrown.__context__ and thrown.__context__.__context__)))

try:
    raise ValueError(<int>)
except ValueError as kept:
    kept.__context__ = kept if <bool> else None
    try:
        raise TypeError(<w>)
    except TypeError as later:
        log.append(repr(later.__context__))
""",
    ),
    Feature(
        "named_by_python",
        setup="""
import copy

subclasses_made = []


def specially_named(base, number):
    class Special(base):
        part = number

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__()
            subclasses_made.append(cls.__name__)

        def __class_getitem__(cls, item):
            return cls.part, item

        @property
        def __name__(self):
            return self.part

    class Derived(Special):
        pass

    return Derived


def copies(value):
    held = (value, [value])
    held[1].append(held)
    copied = copy.deepcopy(held)
    return copied is held, copied[1][1] is copied, copied[0] is value, copy.deepcopy((value, 1)) is held
""",
        expressions="""
special: specially_named(object, <int>)
special: specially_named(dict, <int>)
str: repr(<special>[<int>])
int: <special>.part
int: <special>().__name__
bool: all(copies(<int>))
str: repr(copies(<w>))
str: repr(copies((<int>, <w>)))
""",
        statements="""
<=special> = <special>
<body>
log.append((<$special>.__name__, <$special>().__name__, <$special>[<k>], len(subclasses_made)))
""",
    ),
)
