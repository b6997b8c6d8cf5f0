"""Places where a compiled function may read state: how each is set up, read, and changed between calls.

Everything is text, executed in one namespace, so that a campaign runs exactly what it saves.
A value's text must leave the same state whenever it is executed: repeated states are recognised by that.
"""

from dataclasses import dataclass

PARAMETERS = ("x", "w", "y", "number", "items", "options", "module", "thing")
CALL = "step(x, x if same else x.detach().clone(), y, number, items, options, module, thing)"

# Definitions that several slots share; a scenario prints those it needs.
BASES = {
    "thing": """\
class Thing:
    factor = 2.0

    def __init__(self):
        self.gain = 1.0
        self.config = {"depth": 1, "unused": 0}

    def kind(self):
        return 1.0


class OtherThing(Thing):
    def kind(self):
        return -3.0


def del_member(kind, name):
    if name in vars(kind):
        delattr(kind, name)


first_thing, second_thing = Thing(), Thing()
thing = first_thing""",
    "module": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0
        self.unused = 0
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, value):
        return value * 2 if self.training else value - 1


module = Net()""",
    "tree": """\
class Leaf(torch.nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.full((1,), gain))
        self.register_buffer("level", torch.zeros(1))

    def forward(self, value):
        return value * 2 if self.training else value - 1


class Tree(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.other = leaf_one, Leaf(1.0)
        self.parts, self.chain = torch.nn.ModuleList([leaf_one]), torch.nn.Sequential(leaf_one)


leaf_one, leaf_two = Leaf(1.0), Leaf(2.0)
tree = Tree()""",
    "items": "items = [1.0, 2.0]",
    "options": "options = {'a': 1.0, 'b': 2.0}",
    "family": """\
class Upper:
    level = 1.0

    def base(self):
        return 1.0

    def go(self):
        return 1.0

    @staticmethod
    def fixed():
        return 1.0

    @classmethod
    def made(cls):
        return 1.0


class Middle(Upper):
    pass


class Lower(Middle):
    def through(self):
        return super().base()


def del_member(kind, name):
    if name in vars(kind):
        delattr(kind, name)


lower = Lower()""",
    "plain": """\
class Plain:
    def __init__(self):
        self.value = 1.0

    def __exit__(self, *error):
        pass


def del_member(kind, name):
    if name in vars(kind):
        delattr(kind, name)


plain = Plain()""",
    "bare": """\
class Bare:
    pass


def del_member(kind, name):
    if name in vars(kind):
        delattr(kind, name)


bare = Bare()""",
    "slotted": """\
class Slotted:
    __slots__ = ("extra", "size")

    def __init__(self):
        self.size = 1.0


def vars_of_slots(thing):
    if hasattr(thing, "extra"):
        del thing.extra


slotted = Slotted()""",
    "liar": """\
class Liar:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0""",
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of state.

    setup: defines it in its first value, and what `values` need.  reads: ways in which the body uses it, each a line
    or several of the function's body.  values: texts that change it, the first one its first value.
    needs: a name in BASES.  moving: a read changes it, so no state is ever met again.
    always: state of torch that changes what any operation does, so that every compiled function depends on it.
    rewound: the judge can set back what a read changes, so that a campaign may draw it.
    """

    name: str
    reads: tuple[str, ...]
    values: tuple[str, ...]
    setup: str = ""
    needs: str = ""
    moving: bool = False
    always: bool = False
    rewound: bool = True


SLOTS: dict[str, Slot] = {}


def add_slot(
    name: str,
    reads: str | tuple[str, ...],
    *values: str,
    setup: str = "",
    needs: str = "",
    moving: bool = False,
    always: bool = False,
    rewound: bool = True,
) -> None:
    """Register a slot."""
    ways = (reads,) if isinstance(reads, str) else reads
    SLOTS[name] = Slot(name, ways, values, setup or values[0], needs, moving, always, rewound)


# A number that an operator takes as an attribute: what was compiled for one value must not answer for another.
NUMBERS_OF_OPERATORS = (
    "total = total.clamp(max=number) + total * number",
    "total = torch.clamp(total, min=float(number))",
    "total = torch.nn.functional.leaky_relu(total - 1, float(number))",
    "total = torch.nn.functional.elu(total - 2, abs(number) + 0.5)",
    "total = torch.nn.functional.threshold(total, 0.5, float(number))",
    "total = torch.nn.functional.pad(total, [1, 0], value=float(number))",
    "total = total.masked_fill(total > 1, number)",
    "total = torch.where(total > 1, total, number)",
    "total = torch.full_like(total, number) + total",
    "total = total.add(total, alpha=number * 2)",
    "total = torch.addcmul(total, total, total, value=number * 2)",
    "total = torch.index_fill(total, 0, torch.zeros(1, dtype=torch.int64), float(number))",
    "total = total.roll(int(number))",
    "total = total + number ** 2",
    "total = total + number // 2 + number % 2",
    "total = (number + 3) ** total",
    "total = total + round(number, 1) + int(number)",
    "total = total / (abs(number) + 1)",
)

# -- arguments ---------------------------------------------------------------------------------------------------------

add_slot(
    "argument_tensor",
    (
        "total = total * (1.0 if x.dtype == torch.float32 else 2.0)",
        "total = total + (1.0 if x.is_contiguous() else 3.0)",
        "total = total + x.stride(-1)",
        "total = total + (1.0 if x.requires_grad else 5.0)",
        "total = total + x.shape[0]",
        "total = total + (1.0 if x.shape[0] > 2 else 4.0)",
        "total = total.reshape(x.shape[-1], -1) if x.numel() else total",
        "total = total + x.storage_offset()",
        "total = total + x.dim()",
    ),
    "x = torch.arange(3.0)",
    "x = torch.arange(4.0)",
    "x = torch.arange(3.0, dtype=torch.float64)",
    "x = torch.arange(3)",
    "x = torch.arange(6.0)[::2]",
    "x = torch.arange(4.0)[1:]",
    "x = torch.arange(3.0).requires_grad_()",
    "x = torch.arange(6.0).reshape(2, 3)",
    "x = torch.arange(6.0).reshape(3, 2).t()",
    "x = torch.ones(1)",
    "x = torch.ones(0)",
    "x = torch.ones(1).expand(3)",
)
add_slot("alias", "total = total * (5.0 if w is x else 7.0)", "same = True", "same = False")
add_slot(
    "optional_tensor",
    "total = total if y is None else total + y",
    "y = None", "y = torch.ones(1)", "y = torch.ones(1, dtype=torch.float64)", "y = 2.0",
)  # fmt: skip
add_slot(
    "number",
    ("total = total * number", "total = total + (1.0 if number > 2 else 0.5)", *NUMBERS_OF_OPERATORS),
    "number = 1", "number = True", "number = 1.0", "number = 7", "number = 2.5", "number = 0", "number = 0.1",
    "number = 0.6", "number = -2.7",
)  # fmt: skip
add_slot(
    "number_of_numpy",
    ("total = total * gauge", "total = total + gauge.item()", "total = total + (1.0 if gauge > 2 else 0.5)"),
    "gauge = numpy.int64(1)", "gauge = numpy.float64(2.5)", "gauge = numpy.int64(7)", "gauge = numpy.float32(2.5)",
    "gauge = numpy.float64(-0.0)", "gauge = numpy.float64('nan')",
    setup="import numpy\n\ngauge = numpy.int64(1)",
)  # fmt: skip

# -- globals and closures ----------------------------------------------------------------------------------------------

add_slot(
    "global_number", "total = total * SCALE",
    "SCALE = 2", "SCALE = 3", "SCALE = 2.0", "SCALE = 2.5", "SCALE = True", "SCALE = 1",
)  # fmt: skip
add_slot(
    "global_zero", "total = total + torch.ones(1) / ZERO",
    "ZERO = 0.0", "ZERO = -0.0", "ZERO = 1.0", "ZERO = float('nan')",
)  # fmt: skip
add_slot(
    "global_string", "total = total.sum() if MODE == 'sum' else total * 0.5",
    "MODE = 'sum'", "MODE = 'half'", "MODE = 'su' + 'm'",
)  # fmt: skip
add_slot(
    "global_tensor", "total = total + WEIGHT",
    "WEIGHT = torch.ones(1)", "WEIGHT = torch.full((1,), 2.0)", "WEIGHT = torch.ones(1, dtype=torch.float64)",
    "WEIGHT = torch.ones(2, 1)", "WEIGHT = torch.ones(1, requires_grad=True)",
)  # fmt: skip
add_slot("global_tuple", "for part in PARTS:\n    total = total * part + 1", "PARTS = (1.0, 2.0)", "PARTS = (2.0, 1.0)",
     "PARTS = (2.0,)", "PARTS = ()")  # fmt: skip
add_slot(
    "global_set", "total = total + (1.0 if 'a' in TAGS else 2.0)", "TAGS = {'a'}", "TAGS = {'b'}", "TAGS = {'b', 'a'}"
)
add_slot(
    "global_function", "total = helper(total)",
    "helper = helper_one", "helper = helper_two",
    setup="def helper_one(value):\n    return value + 1\n\n\ndef helper_two(value):\n    return value * 3\n\n\n"
          "helper = helper_one",
)  # fmt: skip
add_slot(
    "function_code", "total = coded(total)",
    "coded.__code__ = code_one", "coded.__code__ = code_two",
    setup="def coded(value):\n    return value + 1\n\n\ncode_one = coded.__code__\n"
          "code_two = (lambda value: value - 4).__code__",
)  # fmt: skip
add_slot(
    "function_defaults", "total = scaled(total)",
    "scaled.__defaults__ = (2.0,)", "scaled.__defaults__ = (3.0,)", "scaled.__defaults__ = (2,)",
    setup="def scaled(value, by=2.0):\n    return value * by",
)  # fmt: skip
add_slot(
    "keyword_defaults", "total = shifted(total)",
    "shifted.__kwdefaults__ = {'by': 2.0}", "shifted.__kwdefaults__ = {'by': 3.0}",
    setup="def shifted(value, *, by=2.0):\n    return value + by",
)  # fmt: skip
add_slot(
    "closure_cell", "total = closed(total)",
    "set_bias(1.0)", "set_bias(-2.0)", "set_bias(1)", "set_bias(torch.full((1,), 2.0))",
    setup="def make(bias):\n    def closed(value):\n        return value + bias\n\n    def set_bias(new):\n"
          "        nonlocal bias\n        bias = new\n\n    return closed, set_bias\n\n\nclosed, set_bias = make(1.0)",
)  # fmt: skip
add_slot(
    "namespace_attribute", "total = total + library.offset",
    "library.offset = 1.0", "library.offset = 2.0", "library.offset = 1",
    setup="import types\n\nlibrary = types.SimpleNamespace(offset=1.0, unused=0)",
)  # fmt: skip
add_slot("namespace_other_attribute", "total = total + library_two.unused", "library_two.unused = 0",
     "library_two.unused = 1",
     setup="import types\n\nlibrary_two = types.SimpleNamespace(offset=1.0, unused=0)")  # fmt: skip
add_slot("lying_equality", "total = total + mark.value", "mark = mark_one", "mark = mark_two",
     setup="mark_one, mark_two = Liar(1.0), Liar(9.0)\nmark = mark_one", needs="liar")  # fmt: skip

# -- containers --------------------------------------------------------------------------------------------------------

add_slot(
    "list_items", ("for item in items:\n    total = total * 2 + item", "total = total + len(items)",
                   "total = total + (1.0 if items else 2.0)"),
    "items[:] = [1.0, 2.0]", "items[:] = [2.0, 1.0]", "items[:] = [1.0]", "items[:] = []", "items[:] = [1.0, 2]",
    needs="items",
)  # fmt: skip
add_slot(
    "dict_items",
    ("for value in options.values():\n    total = total * 2 + value",
     "total = total + options.get('a', 9.0)",
                   "total = total + (1.0 if 'b' in options else 2.0)",
                   "for key in options:\n    total = total * 2 + (1.0 if key == 'a' else 3.0)"),
    "options.clear(); options.update(a=1.0, b=2.0)", "options.clear(); options.update(b=2.0, a=1.0)",
    "options.clear(); options.update(a=1.0, c=2.0)", "options.clear(); options.update(a=2.0, b=1.0)",
    "options.clear()", needs="options",
)  # fmt: skip

# -- objects and modules -----------------------------------------------------------------------------------------------

add_slot("class_attribute", "total = total * thing.factor", "Thing.factor = 2.0", "Thing.factor = 3.0",
         "Thing.factor = 2", needs="thing")  # fmt: skip
add_slot("instance_attribute", "total = total * thing.gain", "thing.gain = 1.0", "thing.gain = 4.0", "thing.gain = 1",
     "thing.gain = torch.full((1,), 3.0)", needs="thing")  # fmt: skip
add_slot("attribute_presence", "total = total * (3.0 if hasattr(thing, 'extra') else 0.5)",
     "vars(thing).pop('extra', None)", "thing.extra = None", needs="thing")  # fmt: skip
add_slot("shadowed_class_attribute", "total = total * thing.factor", "vars(thing).pop('factor', None)",
     "thing.factor = 11.0", needs="thing")  # fmt: skip
add_slot("class_of_object", "total = total * thing.kind()", "thing.__class__ = Thing", "thing.__class__ = OtherThing",
     needs="thing")  # fmt: skip
add_slot("method_of_class", "total = total + thing.method()", "Thing.method = method_one", "Thing.method = method_two",
     setup="def method_one(self):\n    return 1.0\n\n\ndef method_two(self):\n    return 6.0\n\n\n"
           "Thing.method = method_one", needs="thing")  # fmt: skip
add_slot("nested_dict", "total = total + thing.config['depth']", "thing.config['depth'] = 1",
         "thing.config['depth'] = 2", needs="thing")  # fmt: skip
add_slot("nested_dict_other_key", "total = total + thing.config['unused']", "thing.config['unused'] = 0",
     "thing.config['unused'] = 1", needs="thing")  # fmt: skip
add_slot("counter", "thing.calls += 1", "thing.calls = 0", "thing.calls = 5", needs="thing", moving=True)
add_slot("module_attribute", "total = total * module.scale", "module.scale = 1.0", "module.scale = 2.0",
         "module.scale = 1", needs="module")  # fmt: skip
add_slot("module_other_attribute", "total = total + module.unused", "module.unused = 0", "module.unused = 1",
     needs="module")  # fmt: skip
add_slot("module_training", "total = module(total)", "module.train(True)", "module.train(False)", needs="module")
add_slot("module_parameter", "total = total + module.weight.sum()", "module.weight = torch.nn.Parameter(torch.ones(3))",
     "module.weight = torch.nn.Parameter(torch.full((3,), 2.0))", "module.weight = torch.nn.Parameter(torch.ones(2))",
     "module.weight = torch.nn.Parameter(torch.ones(3), requires_grad=False)", needs="module")  # fmt: skip
add_slot("module_buffer", "module.shift.add_(1.0)\ntotal = total + module.shift.sum()", "module.shift = torch.zeros(3)",
     "module.shift = torch.ones(3)", needs="module", moving=True)  # fmt: skip
add_slot("module_hook", "total = total + module(total).sum()", "module._forward_hooks.clear()",
         "module._forward_hooks[7] = triple", setup="def triple(module, given, out):\n    return out * 3",
         needs="module")  # fmt: skip

# -- torch's own state -------------------------------------------------------------------------------------------------

add_slot("grad_mode", "total = total * (2.0 if torch.is_grad_enabled() else 3.0)", "torch.set_grad_enabled(True)",
     "torch.set_grad_enabled(False)", always=True)  # fmt: skip
add_slot("default_dtype", "total = total + torch.ones(1)", "torch.set_default_dtype(torch.float32)",
     "torch.set_default_dtype(torch.float64)", always=True)  # fmt: skip
