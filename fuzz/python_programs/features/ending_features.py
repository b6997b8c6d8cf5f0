"""How things end: exceptions that are chained and grouped, `finally`, finalisers, and operations that warn."""

from ..grammar import Feature

ENDING_FEATURES: tuple[Feature, ...] = (
    Feature(
        "exception_chains",
        setup="""
class AppError(Exception):
    def __init__(self, message, *, code=0):
        super().__init__(message, code)
        self.code = code

    def __str__(self):
        return f'{self.args[0]} [{self.code}]'


class Missing(AppError, LookupError):
    pass


def fail_with_cause(n):
    try:
        return [1, 2][n]
    except IndexError as error:
        raise AppError('outer', code=n) from error


def fail_without_cause(n):
    try:
        {}[n]
    except KeyError:
        raise Missing('hidden') from None


def chain_of(error):
    names = []
    while error is not None:
        names.append((type(error).__name__, str(error), error.__suppress_context__))
        error = error.__cause__ or error.__context__
    return names
""",
        expressions="""
int: fail_with_cause(<k> % 2)
zoo: AppError(<str>, code=<int>)
zoo: chain_of(ValueError(<int>))
bool: issubclass(Missing, (KeyError, LookupError))
""",
        statements="""
try:
    <body>
    log.append(fail_with_cause(<int> + 2))
except AppError as error:
    log.append(chain_of(error))
    <body>

try:
    fail_without_cause(<int>)
except LookupError as error:
    log.append((chain_of(error), error.__context__ is not None, error.code))

try:
    try:
        raise ValueError('first')
    except ValueError:
        <body>
        raise KeyError('second')
except KeyError as error:
    log.append(chain_of(error))

try:
    try:
        raise ValueError('in try')
    finally:
        <body>
        raise TypeError('in finally')
except TypeError as error:
    log.append(chain_of(error))

try:
    raise Missing('noted', code=<int>)
except (AppError, OSError) as error:
    error.add_note('one')
    error.add_note(<str>)
    log.append((error.__notes__, error.args, repr(error)))
    <body>

try:
    raise AppError from ValueError(<int>)
except TypeError as error:
    log.append(str(error))

try:
    raise ValueError(1) from 'text'
except TypeError as error:
    log.append(str(error))

try:
    raise <int>
except TypeError as error:
    log.append(str(error))

kept_error = None
try:
    1 // 0
except ZeroDivisionError as error:
    kept_error = error
<body>
log.append((str(kept_error), kept_error.__traceback__ is not None))
kept_error = None

try:
    <body>
    raise SystemExit(<int>)
except SystemExit as error:
    log.append(error.code)

try:
    try:
        <body>
        raise OSError(2, 'no such', 'file')
    except FileNotFoundError as error:
        log.append((error.errno, error.filename))
        raise
except OSError as error:
    log.append(type(error).__name__)

handler:
raise AppError('while handling', code=<int>)

handler:
log.append(chain_of(error)[:3])

handler:
error.add_note('seen')
""",
        changes="""
AppError.__str__ = lambda self: 'changed'
fail_with_cause = lambda n: n
Missing.code = 99
""",
    ),
    Feature(
        "exception_groups",
        setup="""
def tree_of_errors(n):
    return ExceptionGroup('tree', [ValueError(n), ExceptionGroup('inner', [TypeError(n), KeyError(n)])])


class OwnGroup(ExceptionGroup):
    def derive(self, members):
        return OwnGroup(self.message, members)


def grouped(n):
    if n % 3 == 0:
        raise tree_of_errors(n)
    if n % 3 == 1:
        raise ValueError(n)
    return n
""",
        expressions="""
zoo: tree_of_errors(<int>).split(ValueError)[1]
zoo: tree_of_errors(<int>).subgroup(lambda e: isinstance(e, KeyError))
zoo: OwnGroup('own', [ValueError(<int>)])
int: len(tree_of_errors(<int>).exceptions)
str: repr(tree_of_errors(<int>))
""",
        statements="""
try:
    <body>
    log.append(grouped(<int>))
except* ValueError as group:
    log.append(repr(group))
    <body>
except* (TypeError, KeyError) as group:
    log.append((group.message, len(group.exceptions)))
else:
    log.append('none')
finally:
    log.append('done')

try:
    try:
        raise tree_of_errors(<int>)
    except* TypeError as group:
        <body>
except ExceptionGroup as group:
    log.append(repr(group))

try:
    try:
        log.append(grouped(<int>))
    except* ValueError as group:
        try:
            raise KeyError('nested')
        except KeyError as error:
            log.append(repr(error.__context__))
        <body>
        raise OSError(5)
    except* KeyError:
        log.append('key')
except* OSError as group:
    log.append(repr(group))
except* TypeError as group:
    log.append('type')

try:
    raise OwnGroup('mine', [ValueError(<int>), TypeError('t')])
except* ValueError as group:
    log.append(type(group).__name__)
except* TypeError:
    <body>

for <+int> in range(3):
    try:
        log.append(grouped(<$int>))
    except* ValueError:
        log.append('value')
    except* Exception as group:
        log.append(len(group.exceptions))

try:
    ExceptionGroup('empty', [])
except ValueError as error:
    log.append(str(error))
""",
        changes="""
grouped = lambda n: n
OwnGroup.derive = ExceptionGroup.derive
""",
    ),
    Feature(
        "finally_flow",
        setup="""
def overriding(n, log):
    for i in range(3):
        try:
            if i == n:
                return 'returned'
            if i > n:
                raise ValueError(i)
        except ValueError:
            log.append('except')
            break
        else:
            log.append('else')
            continue
        finally:
            log.append(('finally', i))
    else:
        return 'completed'
    return 'after'


def swallowing(n):
    try:
        raise KeyError(n)
    finally:
        return 'swallowed'


def nested_finally(n, log):
    try:
        try:
            return log.append('inner') or 1 // n
        finally:
            log.append('first')
    except ZeroDivisionError:
        return -1
    finally:
        log.append('second')


def looping(log):
    while True:
        try:
            try:
                break
            finally:
                log.append('broke')
        finally:
            log.append('outer')
    return len(log)
""",
        expressions="""
str: overriding(<k>, log)
str: swallowing(<int>)
int: nested_finally(<int>, log)
int: looping(log)
""",
        statements="""
for <+int> in range(3):
    try:
        <body>
        if <$int> == 1:
            continue
        if <bool>:
            break
    finally:
        log.append(('left', <$int>))
else:
    log.append('all')

try:
    <body>
finally:
    log.append('always')

try:
    try:
        <body>
        raise ValueError('a')
    finally:
        <body>
except ValueError:
    <body>

while True:
    try:
        <body>
        if len(log) > 3:
            break
        log.append('more')
    except ValueError:
        break
    finally:
        log.append('round')
""",
    ),
    Feature(
        "finalisers",
        setup="""
import weakref
ENDS = []


class Ending:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        ENDS.append(self.name)


class Plain:
    pass


def make_and_leave(name):
    ending = Ending(name)
    return ending.name


stock = [Ending('s1'), Ending('s2'), 3]
cabinet = {'top': Ending('top'), 'low': Plain()}
low_reference = weakref.ref(cabinet['low'])
owner = Plain()
owner.part = Ending('part')
weakref.finalize(cabinet['low'], ENDS.append, 'low')
""",
        expressions="""
int: len(ENDS)
int: len(stock)
bool: low_reference() is None
str: make_and_leave(<w>)
""",
        statements="""
if stock:
    stock.pop()
log.append(list(ENDS))

stock.clear()
<body>
log.append(len(ENDS))

cabinet.pop('top', None)
log.append(len(ENDS))

cabinet['low'] = <int>
log.append(low_reference() is None)

owner.part = <int>
<body>
log.append(list(ENDS))

ending_name = Ending('local')
<body>
ending_name = None
log.append(len(ENDS))

del stock[:1]

fresh = [Ending('fresh'), <int>]
fresh.clear()
log.append(len(ENDS))

fresh = [Ending('first'), Ending('second')]
fresh[0] = <int>
<body>
log.append(list(ENDS))

fresh = (Ending('inside'), [Ending('deeper')])
<body>
fresh = None
log.append(len(ENDS))

Ending('at once')
log.append(ENDS[-1:])

stock.append(Ending(<str>))

ENDS.append(<int>)
""",
        changes="""
ENDS.clear()
stock = [Ending('new'), [Ending('inside')]]
cabinet['top'] = Ending('another')
owner.part = Ending('again')
""",
    ),
    Feature(
        "warnings_of_operations",
        setup="""
import enum
import warnings
import numpy
big_number = numpy.float64(1e308)
no_number = numpy.float64(0.0)
small_whole = numpy.int8(100)


class Hue(enum.Enum):
    RED = 1


def deprecated(t):
    warnings.warn('old', DeprecationWarning, stacklevel=2)
    return t
""",
        expressions="""
bool: not NotImplemented
float: float(big_number * <int>)
float: float(numpy.float64(<int>) / no_number)
int: int(small_whole + small_whole)
tensor: deprecated(<tensor>)
tensor: F.softmax(<tensor>)
str: str(numpy.sqrt(-numpy.float64(<k>)))
""",
        statements="""
try:
    log.append(<int> in Hue)
except TypeError as error:
    log.append(str(error)[:40])

with warnings.catch_warnings():
    warnings.simplefilter('error')
    try:
        log.append(big_number * 10)
        <body>
    except RuntimeWarning as error:
        log.append(str(error))

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    log.append(numpy.float64(1) / no_number)
    <body>

with numpy.errstate(all='ignore'):
    log.append(big_number * <int>)

if NotImplemented:
    <body>
""",
        changes="""
big_number = numpy.float64(2.0)
no_number = numpy.float64(4.0)
small_whole = numpy.int8(-128)
numpy.seterr(over='warn')
""",
    ),
    Feature(
        "frames_further_out",
        setup="""
import inspect
import logging
import sys
import warnings
MESSAGES = []


class Listening(logging.Handler):
    def emit(self, record):
        MESSAGES.append((record.funcName, record.getMessage()))


news = logging.Logger('news')
news.addHandler(Listening())


def who_asks():
    return sys._getframe(1).f_code.co_name


def where_from(depth):
    frame = inspect.currentframe()
    for _ in range(depth):
        frame = frame.f_back
    return frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno


def asking(t):
    kept = t + 1
    return who_asks(), where_from(1), kept


def names_around():
    return sorted(sys._getframe(1).f_locals)


def telling(text):
    news.error(text, stacklevel=2)
    return text


def told(t):
    telling('told')
    return t * 2
""",
        expressions="""
int: len(MESSAGES)
str: str(asking(<tensor>)[:2])
str: (lambda: who_asks())()
tensor: asking(<tensor>)[2]
tensor: told(<tensor>)
""",
        statements="""
def around(inner_number):
    return names_around(), inner_number
log.append(around(<int>))

log.append(list(MESSAGES))
<body>
""",
        changes="""
MESSAGES.clear()
news.setLevel(logging.CRITICAL)
""",
    ),
)
