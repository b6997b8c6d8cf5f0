"""Exceptions: Python's own, those of operations that fail on data after writes and draws, and blocks around them."""

from ..grammar import Feature

FAILURE_FEATURES: tuple[Feature, ...] = (
    Feature(
        "handlers",
        setup="""
class Problem(Exception):
    def __init__(self, what, code=1):
        super().__init__(what)
        self.code = code


class Deeper(Problem):
    pass


def risky(n, t):
    if n > 3:
        raise Problem('too many', code=n)
    if n == 2:
        raise Deeper(f'two {n}')
    return t * n


def cleaned(n, log):
    try:
        if n % 2:
            return 'odd'
        if n > 2:
            raise KeyError(n)
        return 'even'
    except KeyError as error:
        log.append(error.args)
        raise Problem('key') from error
    else:
        log.append('else')
    finally:
        log.append('finally')
        if n == 5:
            return 'overridden'
""",
        expressions="""
tensor: risky(<k>, <tensor>)
str: cleaned(<k>, log)
zoo: Problem(<str>)
zoo: Deeper(<str>, code=<int>)
""",
        statements="""
try:
    <body>
    <=tensor> = risky(<int>, <tensor>)
    <body>
except Deeper as error:
    log.append(error.code)
    <body>
except Problem as error:
    log.append((error.args, error.code))
else:
    log.append('else')
finally:
    log.append('finally')

try:
    <body>
    log.append(cleaned(<int>, log))
except Exception as error:
    log.append((repr(error), repr(error.__cause__)))
    <body>

try:
    try:
        <body>
        log.append(1 // <int>)
    except ZeroDivisionError as error:
        <body>
        raise Problem('nested') from error
    finally:
        <body>
except Problem as error:
    log.append(repr(error.__cause__))

try:
    <body>
    log.append(<table>[<key>])
except KeyError as error:
    log.append(error.args)
    <body>

try:
    log.append(<ints>[<int>])
    <body>
except (IndexError, TypeError) as error:
    log.append(str(error))

try:
    raise Problem(<str>, <int>)
except Problem as error:
    <body>

for <+int> in range(3):
    try:
        <body>
        if <bool>:
            continue
        log.append(int(<str>))
    except ValueError as error:
        log.append(str(error))
    finally:
        log.append('swept')

try:
    <body>
    raise ExceptionGroup('several', [ValueError(<int>), Problem(<str>)])
except* ValueError as error:
    log.append(len(error.exceptions))
except* Problem as error:
    log.append('problem')

try:
    risky(<int>, <tensor>)
except Problem as error:
    error.add_note(<str>)
    log.append(error.__notes__)
""",
        changes="""
risky = lambda n, t: t
Problem.__str__ = lambda self: 'changed'
""",
    ),
    Feature(
        "failing_operations",
        setup="""
STATE = {'n': 0, 'kept': None}
LOG = []


def counted_up(value):
    STATE['n'] += 1
    LOG.append(STATE['n'])
    return value
""",
        expressions="""
tensor: counted_up(<tensor>)
int: STATE['n']
""",
        statements="""
try:
    <body>
    <$tensor>.add_(1)
    log.append(<tensor>[torch.tensor([<int>, <int>])])
    <body>
except IndexError as error:
    log.append(str(error))
    <body>

try:
    <body>
    counted_up(<tensor>)
    log.append(torch.index_select(<tensor>, 0, torch.tensor([<int>])))
except (IndexError, RuntimeError) as error:
    log.append(type(error).__name__)
    <body>

try:
    <body>
    <=tensor> = <tensor> + torch.ones(<k>, 2)
except RuntimeError as error:
    log.append(str(error)[:80])
    <body>

try:
    <$tensor>.mul_(2)
    <=tensor> = <tensor>.view(<int>, 5)
    <body>
except RuntimeError as error:
    log.append(str(error)[:80])

try:
    <body>
    (<tensor> > 0).mul_(3)
    <body>
except RuntimeError as error:
    log.append(str(error)[:60])
finally:
    counted_up(0)

try:
    <body>
    <$tensor>[[0]] = torch.ones(7)
except (RuntimeError, IndexError) as error:
    log.append(str(error)[:60])

try:
    <+tensor> = <tensor> @ <tensor>
    <body>
except RuntimeError as error:
    log.append(str(error)[:60])
    <body>

try:
    <+tensor> = torch.rand(2, 3)
    <body>
    log.append(F.one_hot(torch.tensor([<int>]), 2))
    log.append(torch.rand(1) > 2)
except RuntimeError as error:
    log.append(str(error)[:60])

STATE['kept'] = <tensor>
try:
    log.append(F.embedding(torch.tensor([<int>]), <tensor>))
except (IndexError, RuntimeError) as error:
    log.append(str(error)[:50])
    <body>

try:
    log.append(<tensor>.squeeze(<k>))
    <body>
except IndexError as error:
    log.append(str(error))

try:
    log.append(torch.tensor([1, 2]) // <int>)
except RuntimeError as error:
    log.append(str(error))

log.append(<tensor>.gather(0, torch.tensor([[<int> % 3]])))

try:
    log.append(bool(<tensor>))
except RuntimeError as error:
    log.append(str(error))

try:
    log.append(<tensor>.item())
    <body>
except (RuntimeError, ValueError) as error:
    log.append(str(error)[:50])

try:
    log.append(torch.cat([<tensor>, torch.ones(1, <k>)]))
except RuntimeError as error:
    log.append(str(error)[:70])
    <body>

torch._assert(<tensor>.sum() < 50, 'large')
""",
        changes="""
STATE['n'] = 5
STATE['kept'] = None
LOG = ['new']
""",
    ),
    Feature(
        "context_managers",
        setup="""
import contextlib


class Guarded:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append('enter')
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(('exit', kind.__name__ if kind else None, str(error)[:40]))
        return self.swallow


@contextlib.contextmanager
def managed(log, swallow=False):
    log.append('open')
    try:
        yield len(log)
    except (ValueError, IndexError) as error:
        log.append(('seen', str(error)[:40]))
        if not swallow:
            raise
    finally:
        log.append('shut')


@contextlib.contextmanager
def printing(word):
    print('<', word)
    try:
        yield word
    finally:
        print(word, '>')


@managed([])
def inside_block(t):
    return t + 1
""",
        expressions="""
tensor: inside_block(<tensor>)
""",
        statements="""
with Guarded(log, <bool>) as <+zoo>:
    <body>

with Guarded(log, True):
    <body>
    raise ValueError(<str>)

with managed(log) as <+int>:
    <body>

with managed(log, swallow=True) as <+int>:
    <body>
    log.append(<tensor>[torch.tensor(<int>)])
    <body>

with printing(<str>) as <+str>, Guarded(log):
    <body>

with contextlib.suppress(KeyError, IndexError):
    <body>
    log.append(<table>[<key>])
    <body>

with contextlib.ExitStack() as <+stack>:
    <$stack>.enter_context(Guarded(log))
    <$stack>.callback(log.append, <int>)
    <body>

with contextlib.nullcontext(<int>) as <+int>:
    <body>

with torch.no_grad():
    <body>

with torch.enable_grad(), managed(log):
    <body>

with contextlib.redirect_stdout(None) if <bool> else contextlib.nullcontext():
    <body>

for <+int> in range(2):
    with managed(log, swallow=<bool>):
        if <bool>:
            break
        <body>

with Guarded(log) as <+zoo>:
    for <+int> in range(2):
        <body>

try:
    with Guarded(log), managed(log):
        <body>
        raise ValueError(<int>)
except ValueError as error:
    <body>
""",
        changes="""
Guarded.__exit__ = lambda self, *details: True
""",
    ),
)
