"""Objects of every kind, and the questions that Python can ask any of them."""

from collections.abc import Sequence

from .grammar import Feature

_SETUP = """
import array as array_module
import collections
import collections.abc
import contextvars
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import io
import itertools
import numbers
import operator
import pathlib
import re
import threading
import types
import typing
import weakref
import numpy


class Shade(enum.Enum):
    DARK = 1


class Empty:
    pass


class Sizable:
    __slots__ = ('a',)

    def __len__(self):
        return 3


class Asking(type):
    number = 4

    def __instancecheck__(cls, value):
        return type(value) in (int, list, Sizable)

    def __subclasscheck__(cls, kind):
        return kind in (int, list)

    def __len__(cls):
        return 7


class Asked(metaclass=Asking):
    pass


class Callable_:
    attribute = 5

    def __call__(self, *args):
        return len(args)

    def method(self):
        return self

    @property
    def value(self):
        return 7


def plain_function(a, b=2):
    return a


def generating():
    yield 1


async def waiting():
    pass
"""

ZOO: tuple[str, ...] = (
    "torch.ones(2, 3)",
    "torch.tensor(2)",
    "torch.nn.Parameter(torch.ones(2))",
    "torch.zeros(0)",
    "torch.tensor([True])",
    "torch.Size([2, 3])",
    "torch.float32",
    "torch.device('cpu')",
    "torch.strided",
    "torch.Generator()",
    "torch.finfo(torch.float32)",
    "torch.nn.Linear(1, 1)",
    "torch.nn.ReLU()",
    "torch.relu",
    "torch.nn.functional.relu",
    "torch.Tensor.add",
    "torch.ones(2).add",
    "torch.Tensor",
    "torch.nn.Module",
    "torch",
    "torch.ops.aten.add",
    "torch.autograd.Function",
    "torch.no_grad()",
    "numpy.arange(3)",
    "numpy.float64(1.5)",
    "numpy.int64(3)",
    "numpy.dtype('int32')",
    "numpy.sin",
    "numpy.array(4)",
    "plain_function",
    "generating",
    "generating()",
    "(lambda: 3)",
    "len",
    "[].append",
    "str.upper",
    "'abc'.upper",
    "print",
    "int",
    "type",
    "object",
    "object()",
    "Empty",
    "Empty()",
    "Sizable",
    "Sizable()",
    "Callable_()",
    "Callable_().method",
    "Callable_.method",
    "Callable_.value",
    "Callable_.__dict__",
    "functools.partial(plain_function, 1)",
    "functools.partial(print)",
    "functools.lru_cache(plain_function)",
    "operator.itemgetter(0)",
    "operator.add",
    "Shade.DARK",
    "Shade",
    "None",
    "...",
    "NotImplemented",
    "True",
    "0",
    "-7",
    "2.5",
    "float('nan')",
    "1 + 2j",
    "''",
    "'word'",
    "b'bytes'",
    "bytearray(b'ab')",
    "memoryview(b'abc')",
    "()",
    "(1, 'two')",
    "[1, 2]",
    "[]",
    "{'a': 1}",
    "{}",
    "{1, 2}",
    "frozenset('a')",
    "range(2, 8, 3)",
    "slice(1, None, 2)",
    "{'a': 1}.keys()",
    "{'a': 1}.items()",
    "{'a': 1}.values()",
    "iter([1, 2])",
    "iter({})",
    "enumerate('ab')",
    "zip('ab', 'cd')",
    "map(len, ['a'])",
    "filter(None, [0, 1])",
    "reversed([1, 2])",
    "itertools.repeat(3, 2)",
    "itertools.chain([1], [2])",
    "collections.deque([1])",
    "collections.OrderedDict(a=1)",
    "collections.defaultdict(int)",
    "collections.Counter('aab')",
    "collections.ChainMap({})",
    "collections.namedtuple('Pt', 'a b')(1, 2)",
    "types.SimpleNamespace(a=1)",
    "types.MappingProxyType({'a': 1})",
    "types.MethodType(plain_function, 3)",
    "types",
    "typing.List[int]",
    "list[int]",
    "int | None",
    "typing.TypeVar('T')",
    "ValueError('bad')",
    "ValueError",
    "KeyError('k')",
    "StopIteration(3)",
    "re.compile('a+')",
    "re.match('a', 'ab')",
    "pathlib.PurePosixPath('a/b')",
    "datetime.timedelta(days=2)",
    "datetime.date(2020, 1, 2)",
    "decimal.Decimal('1.5')",
    "fractions.Fraction(1, 3)",
    "threading.Lock()",
    "threading.local()",
    "io.StringIO('text')",
    "weakref.ref(Empty)",
    "contextvars.ContextVar('v', default=1)",
    "inspect.signature(plain_function)",
    "array_module.array('i', [1, 2])",
    "property(len)",
    "staticmethod(len)",
    "classmethod(len)",
    "super(Callable_, Callable_())",
    "plain_function.__code__",
)
"""Expressions of objects; every program has three of them as globals."""

NAMES = (
    "'__len__' '__call__' '__iter__' '__next__' '__getitem__' '__setitem__' '__contains__' '__hash__' '__eq__' "
    "'__dict__' '__name__' '__class__' '__doc__' '__module__' '__add__' '__float__' '__int__' '__bool__' '__index__' "
    "'__enter__' '__get__' '__set__' '__self__' '__wrapped__' '__slots__' '__array__' '__qualname__' 'shape' 'a' "
    "'append' 'items' 'real' 'dtype' 'forward' 'fget' 'func' 'value' 'copy' 'size' 'args' 'nothing' '__mro__' "
    "'__init__' '__new__' '__lt__' '__reversed__' '__missing__' '__annotations__' '__defaults__' '__code__' "
    "'__bases__' 'mro' '__subclasses__' '__instancecheck__' '__prepare__' 'number'"
).split(" ")

CLASSES = (
    "int str float bool tuple list dict set type object torch.Tensor torch.nn.Module Exception types.FunctionType "
    "collections.abc.Callable collections.abc.Iterable collections.abc.Sequence collections.abc.Mapping "
    "collections.abc.Hashable collections.abc.Sized collections.abc.Iterator numbers.Number numbers.Integral "
    "torch.nn.Parameter numpy.ndarray types.MethodType types.GeneratorType types.BuiltinFunctionType torch.Size "
    "Asked Asked Asked Sizable"
).split(" ")

_QUESTIONS = """
log.append(hasattr(<zoo>, <attribute>))

log.append(hasattr(<zoo>, <attribute>))

log.append(isinstance(<zoo>, <class>))

log.append(isinstance(<zoo>, (<class>, <class>)))

names = (<attribute>, <attribute>, <attribute>, <attribute>)
log.append([name for name in names if hasattr(<$zoo>, name)])

log.append(list(map(lambda one: isinstance(one, <class>), [<zoo>, <zoo>, <int>, <ints>, <tensor>])))

log.append(list(map(lambda one: issubclass(type(one), <class>), [<zoo>, <int>, <ints>])))

log.append(callable(<zoo>))

log.append(type(<zoo>).__name__)

log.append(type(<zoo>) is <class>)

log.append(<$zoo> is <$zoo>)

log.append(id(<$zoo>) == id(<$zoo>))

try:
    log.append(type(getattr(<zoo>, <attribute>)).__name__)
except AttributeError as error:
    log.append(str(error))

log.append(type(getattr(<zoo>, <attribute>, 7)).__name__)

try:
    log.append(len(<zoo>))
except TypeError as error:
    log.append(str(error))

try:
    log.append(bool(<zoo>))
except Exception as error:
    log.append(str(error)[:50])

try:
    log.append([type(v).__name__ for v in <zoo>][:4])
except TypeError as error:
    log.append(str(error))

try:
    <+hash> = hash(<$zoo>)
    log.append('hashable')
except TypeError as error:
    log.append(str(error))

log.append(repr(<zoo>))

log.append(str(<zoo>))

log.append(f'{<$zoo>}')

log.append(f'{<$zoo>!r}')

try:
    log.append(format(<zoo>, '>12'))
except (TypeError, ValueError) as error:
    log.append(str(error))

try:
    log.append(<zoo>[<int>])
except Exception as error:
    log.append(type(error).__name__)

try:
    log.append(<zoo> == <zoo>)
except Exception as error:
    log.append(str(error)[:60])

try:
    log.append(type(<zoo> + <zoo>).__name__)
except Exception as error:
    log.append((type(error).__name__, str(error)[:60]))

try:
    log.append(<zoo> < <zoo>)
except Exception as error:
    log.append(str(error)[:60])

try:
    log.append(<int> in <zoo>)
except Exception as error:
    log.append(str(error)[:60])

try:
    log.append(type(<zoo>()).__name__)
except Exception as error:
    log.append((type(error).__name__, str(error)[:80]))

try:
    <$zoo>.fresh = <int>
    log.append(<$zoo>.fresh)
    del <$zoo>.fresh
except Exception as error:
    log.append((type(error).__name__, str(error)[:60]))

try:
    log.append(next(iter(<zoo>)))
except Exception as error:
    log.append(type(error).__name__)

try:
    log.append(int(<zoo>))
except Exception as error:
    log.append((type(error).__name__, str(error)[:60]))

try:
    with <zoo> as <+entered>:
        log.append('entered')
except Exception as error:
    log.append((type(error).__name__, str(error)[:60]))

if <zoo> is None:
    <body>

log.append([<zoo>, {'k': <zoo>}])

log.append(issubclass(type(<zoo>), <class>))

log.append(type(<zoo>).__mro__[-1] is object)

log.append('__len__' in dir(<zoo>))

try:
    log.append(sorted(vars(<zoo>))[:3])
except TypeError as error:
    log.append(str(error))

match <zoo>:
    case {}:
        log.append('mapping')
    case []:
        log.append('empty')
    case str() | bytes():
        log.append('text')
"""


def zoo_feature(objects: Sequence[str]) -> Feature:
    """Return the feature with these objects as globals `zoo0`, `zoo1` and so on."""
    lines = [f"zoo{number} = {text}" for number, text in enumerate(objects)]
    return Feature(
        "zoo",
        setup="\n".join([_SETUP, *lines]),
        expressions="\n".join(
            [*(f"zoo: zoo{number}" for number in range(len(objects))), *(f"zoo: {text}" for text in objects)]
            + [f"attribute: {name}" for name in NAMES]
            + [f"class: {name}" for name in CLASSES]
        ),
        statements=_QUESTIONS,
        variables={f"zoo{number}": "zoo" for number in range(len(objects))},
        changes="\n".join(f"zoo{number} = {text}" for number, text in enumerate(reversed(objects))),
    )
