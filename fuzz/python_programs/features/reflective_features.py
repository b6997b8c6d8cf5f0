"""What programs ask of Python itself: who is asked first, namespaces, callers' variables, steps of a history."""

from ..grammar import Feature

REFLECTIVE_FEATURES: tuple[Feature, ...] = (
    Feature(
        "operands_in_place",
        setup="""
class HeldValue:
    def __init__(self, value):
        self.value = value

    def __iadd__(self, other):
        self.value += 1
        return self

    def __add__(self, other):
        return NotImplemented

    def __imul__(self, other):
        return NotImplemented

    def __mul__(self, other):
        return HeldValue((self.value, 'times'))


class LaterValue(HeldValue):
    def __radd__(self, other):
        return HeldValue((self.value, 'added'))

    def __rmul__(self, other):
        return HeldValue((self.value, 'multiplied'))


class ListedOperand(list):
    def __radd__(self, other):
        return ListedOperand([*other, 'added'])


class MappedOperand(dict):
    def __ror__(self, other):
        return MappedOperand({'joined': len(other)})


class GroupedOperand(set):
    def __ror__(self, other):
        return GroupedOperand({len(other)})

    __rand__ = __rsub__ = __rxor__ = __ror__


one_held = HeldValue(1)
""",
        variables={"held": "one_held"},
        expressions="""
held: HeldValue(<int>)
held: LaterValue(<int>)
zoo: <held>.value
str: type(<held>).__name__
""",
        statements="""
<$held> += <held>
log.append(repr(<$held>.value))

<$held> *= <held>
log.append(repr(<$held>.value))

operand = [<int>]
operand += ListedOperand([<int>])
log.append(operand)

operand = {<str>: <int>}
operand |= MappedOperand({<str>: <int>})
log.append((type(operand).__name__, sorted(operand.items(), key=repr)))

operand = {<int>, <int>}
operand &= GroupedOperand([<int>])
log.append((type(operand).__name__, sorted(operand)))

operand = {<int>, <int>}
operand |= {<int>}
operand -= GroupedOperand([<int>])
log.append(sorted(operand))
""",
        changes="""
one_held = LaterValue(2)
del HeldValue.__iadd__
HeldValue.__iadd__ = lambda self, other: NotImplemented
""",
    ),
    Feature(
        "special_methods_in_c",
        setup="""
import functools
import operator


class SlotTable(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __call__ = dict.get
    fetch = dict.setdefault


class PiledItems(list):
    __call__ = list.__getitem__
    __neg__ = list.copy
    __lshift__ = list.append
    __contains__ = list.index


class AskedInC:
    __getitem__ = operator.neg
    __call__ = functools.partial(max, 3)
    __len__ = (4).__index__
    __bool__ = staticmethod(lambda: False)
    __repr__ = staticmethod(lambda: "asked")


class IdenticalList(list):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


slot_table = SlotTable(a=1)
piled_items = PiledItems([1, 2])
identical_list = IdenticalList([1])
""",
        expressions="""
zoo: slot_table.a
zoo: slot_table.missing
zoo: slot_table(<str>)
zoo: slot_table.fetch('c', <int>)
int: AskedInC()(<int>)
int: AskedInC()[<int>]
int: len(AskedInC())
bool: bool(AskedInC())
bool: hasattr(slot_table, <str>)
bool: identical_list == IdenticalList([1])
bool: identical_list in [identical_list]
bool: <int> in [-piled_items]
int: piled_items(0)
str: repr(AskedInC())
str: repr(sorted(slot_table.items(), key=repr))
str: repr(slot_table.__dict__)
zoo: slot_table
zoo: piled_items
""",
        statements="""
slot_table.b = <int>
log.append(vars(slot_table))

slot_table.t = <tensor>

if 'b' in slot_table:
    del slot_table.b

slot_table.b = slot_table.a
<body>

piled_items << <int>
log.append(list(piled_items))

setattr(slot_table, <str>, <int>)
log.append(sorted(slot_table))
""",
        changes="""
slot_table.a = 5
slot_table = SlotTable(a=x0)
SlotTable.__setattr__ = object.__setattr__
del SlotTable.__setattr__
piled_items.clear()
piled_items.append(7)
""",
    ),
    Feature(
        "class_namespaces",
        setup="""
import inspect


class NamedSpace:
    first = 1
    second = 2

    def twice(self):
        return self.first * 2


class InheritedSpace(NamedSpace):
    second = 3


def own_names(space):
    return [name for name in space if not name.startswith('__')]


named_space = NamedSpace()
named_space.a, named_space.b = 1, 2
""",
        variables={"named_space": "named_space"},
        expressions="""
named_space: NamedSpace()
named_space: InheritedSpace()
bool: 'third' in NamedSpace.__dict__
bool: <str> in vars(<named_space>)
zoo: NamedSpace.__dict__.get('third')
zoo: vars(InheritedSpace).get('second')
zoo: inspect.getattr_static(NamedSpace, 'third', None)
zoo: inspect.getattr_static(<named_space>, 'first')
int: <named_space>.first
int: <named_space>.twice()
str: repr(own_names(NamedSpace.__dict__))
str: repr(list(vars(<named_space>)))
str: repr(sorted(own_names(dir(<named_space>))))
""",
        statements="""
NamedSpace.third = <int>

NamedSpace.first += 1
log.append(NamedSpace.__dict__['first'])

if 'third' in vars(NamedSpace):
    del NamedSpace.third
    log.append(hasattr(InheritedSpace, 'third'))

space = vars(InheritedSpace)
InheritedSpace.second = <int>
log.append((own_names(space), space['second']))

<$named_space>.a = <int>

<$named_space>.c = <int>
del <$named_space>.c
log.append(list(vars(<$named_space>)))

if 'a' in <$named_space>.__dict__:
    del <$named_space>.a
    <$named_space>.a = <int>
log.append(list(<$named_space>.__dict__.items()))

space = <$named_space>.__dict__
space['d'] = <int>
<body>
log.append((list(space), <$named_space>.d))
""",
        changes="""
NamedSpace.first = 7
NamedSpace.third = 'outside'
del named_space.a
named_space.a = 4
named_space = InheritedSpace()
InheritedSpace.twice = lambda self: 0
""",
    ),
    Feature(
        "looks_at_callers",
        setup="""
import sys


def variables_of_the_caller():
    return sorted(sys._getframe(1).f_locals)


def variable_of_the_caller(name):
    return sys._getframe(1).f_locals.get(name)
""",
        expressions="""
str: repr(variables_of_the_caller())
zoo: variable_of_the_caller('kept_for_nobody')
str: sys._getframe().f_code.co_name
""",
        statements="""
kept_for_nobody = <int>

kept_for_nobody = <tensor>
<body>

kept_for_nobody = <int>
print(<str>)
log.append(variable_of_the_caller('kept_for_nobody'))

log.append(variables_of_the_caller())
""",
    ),
    Feature(
        "steps_of_histories",
        setup="""
summed_leaf = torch.ones(3, requires_grad=True)
steps_seen = []


def accumulating_step(leaf):
    return torch.autograd.graph.get_gradient_edge(leaf).node
""",
        expressions="""
int: len(steps_seen)
int: (<tensor> * 1)._version
str: type((summed_leaf * 2).grad_fn).__name__
bool: summed_leaf.grad is None
""",
        statements="""
written = <tensor> * 1
written += 1
written[..., 0] *= 2
log.append(written._version)
<body>

adding = accumulating_step(summed_leaf)
adding.register_hook(lambda *given: steps_seen.append(len(given)))
(summed_leaf * <int>).sum().backward()
log.append(len(steps_seen))

adding = accumulating_step(summed_leaf)
handle = adding.register_prehook(lambda given: steps_seen.append('before'))
<body>
(summed_leaf * <float>).sum().backward()
handle.remove()

stepped = summed_leaf * 2
result = stepped.exp().sum()
stepped.grad_fn.register_hook(lambda given, taken: steps_seen.append((len(given), len(taken))))
result.backward()

saved = summed_leaf * <int>
result = saved * saved
saved.detach_()
try:
    result.sum().backward()
except RuntimeError as error:
    log.append(str(error)[:40])
""",
        changes="""
summed_leaf.grad = None
steps_seen.clear()
adding = accumulating_step(summed_leaf)
handle = adding.register_hook(lambda *given: steps_seen.append('outside'))
summed_leaf = torch.full((3,), 2.0, requires_grad=True)
""",
    ),
    Feature(
        "refused_arguments",
        setup="""
def bound_strictly(a, b=2, /, c=3, *, d, e=5):
    return a, b, c, d, e


def gathered_freely(a, *rest, k=1, **named):
    return a, rest, k, sorted(named.items())


def attempted_call(function, *given, **named):
    try:
        return function(*given, **named)
    except TypeError as error:
        return str(error)
""",
        expressions="""
zoo: attempted_call(bound_strictly, <int>, d=<int>)
zoo: attempted_call(bound_strictly, <int>, <int>, <int>, <int>, z=<int>)
zoo: attempted_call(bound_strictly, <int>, a=<int>, d=<int>)
zoo: attempted_call(bound_strictly, d=<int>)
zoo: attempted_call(gathered_freely, <int>, <int>, k=<int>, z=<int>)
zoo: attempted_call(gathered_freely, a=<int>, b=<int>)
zoo: attempted_call(gathered_freely, <int>, a=<int>)
zoo: attempted_call(gathered_freely)
zoo: attempted_call(bound_strictly, *<ints>, **{<str>: <int>})
""",
        changes="""
bound_strictly.__defaults__ = (7, 8, 9)
bound_strictly.__kwdefaults__ = {'d': 1}
bound_strictly.__defaults__ = None
""",
    ),
    Feature(
        "state_read_by_backward",
        setup="""
class ReadsLater(torch.autograd.Function):
    factor = 2.0

    @staticmethod
    def forward(ctx, t):
        ctx.later_table = later_table
        return t * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ReadsLater.factor + ctx.later_table['a']


class WritesLater(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, step):
        ctx.step = step
        return t * step

    @staticmethod
    def backward(ctx, gradient):
        written_later.add_(gradient.sum())
        return gradient * ctx.step * torch.tensor(0.5), None


class ReadsConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * CONSTANT_LATER

    @staticmethod
    def backward(ctx, gradient):
        return gradient * CONSTANT_LATER


class RefusesLater(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 1

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError('refused')


if hasattr(torch, 'library_of_drawn'):
    torch.library_of_drawn._destroy()
torch.library_of_drawn = torch.library.Library('drawn_later', 'FRAGMENT')
torch.library_of_drawn.define('scaled(Tensor t) -> Tensor')
torch.library_of_drawn.impl('scaled', lambda t: t * 2, 'CompositeExplicitAutograd')
torch.library.register_autograd(
    'drawn_later::scaled',
    lambda ctx, gradient: gradient * later_table['a'],
    setup_context=lambda ctx, inputs, output: None,
    lib=torch.library_of_drawn,
)


def scaled_later(t):
    return torch.ops.drawn_later.scaled(t)


CONSTANT_LATER = 3
later_table = {'a': 1}
written_later = torch.zeros(())
later_leaf = torch.ones(3, requires_grad=True)
""",
        expressions="""
tensor: written_later * 1
tensor: ReadsLater.apply(<tensor>)
tensor: ReadsConstant.apply(later_leaf)
tensor: scaled_later(<tensor>)
float: ReadsLater.factor
int: later_table['a']
bool: later_leaf.grad is None
""",
        statements="""
later = ReadsLater.apply(later_leaf * <int>).sum()
ReadsLater.factor = <float>
later.backward()
log.append(later_leaf.grad.tolist())

later = ReadsLater.apply(later_leaf).sum()
later_table['a'] = <int>
<body>
later.backward()

later = scaled_later(later_leaf * <int>).sum()
later_table['a'] = <int>
later.backward()
log.append(later_leaf.grad.tolist())

try:
    later = RefusesLater.apply(later_leaf).sum()
    log.append(later.item())
    later.backward()
except KeyError as error:
    log.append(repr(error))

WritesLater.apply(later_leaf, <int>).sum().backward()
log.append(written_later.item())

hooked_later = later_leaf * 2
hooked_later.register_hook(lambda given: (written_later.add_(1), None)[1])
(hooked_later * <int>).sum().backward()

ReadsConstant.apply(later_leaf).sum().backward()
log.append(later_leaf.grad.tolist())
""",
        changes="""
ReadsLater.factor = -1.0
later_table['a'] = 7
later_leaf.grad = None
CONSTANT_LATER = 5
written_later.zero_()
later_table = {'a': 2}
""",
    ),
)
