"""Places of state in functions, objects and classes: what attribute look-up, calls and special methods go through."""

from .guard_slots import add_slot

# -- functions ---------------------------------------------------------------------------------------------------------

add_slot(
    "method_code",
    "total = total + thing.kind()",
    "Thing.kind.__code__ = kind_one",
    "Thing.kind.__code__ = kind_two",
    setup="kind_one = Thing.kind.__code__\nkind_two = (lambda self: 8.0).__code__",
    needs="thing",
)
add_slot(
    "keyword_default_in_place",
    "total = tilted(total)",
    "tilted.__kwdefaults__['by'] = 2.0",
    "tilted.__kwdefaults__['by'] = 3.0",
    setup="def tilted(value, *, by=2.0):\n    return value + by",
)
add_slot(
    "function_attribute",
    "total = total + marked.factor",
    "marked.factor = 2.0",
    "marked.factor = 3.0",
    setup="def marked(value):\n    return value",
)
add_slot(
    "function_attribute_presence",
    "total = total + (1.0 if hasattr(flagged, 'extra') else 2.0)",
    "vars(flagged).pop('extra', None)",
    "flagged.extra = 1",
    setup="def flagged(value):\n    return value",
)
add_slot(
    "partial",
    "total = part(total)",
    "part = part_one",
    "part = part_two",
    "part = part_three",
    setup="import functools\n\n\ndef whole(value, by):\n    return value * by\n\n\n"
    "part_one, part_two = functools.partial(whole, by=2.0), functools.partial(whole, by=3.0)\n"
    "part_three = functools.partial(torch.add, other=1)\npart = part_one",
)
add_slot(
    "partial_keywords",
    "total = bent(total)",
    "bent.keywords['by'] = 2.0",
    "bent.keywords['by'] = 3.0",
    setup="import functools\n\n\ndef bendable(value, by):\n    return value * by\n\n\n"
    "bent = functools.partial(bendable, by=2.0)",
)
add_slot(
    "global_hides_a_builtin",
    "total = total + max(1.0, 2.0)",
    "globals().pop('max', None)",
    "max = other_max",
    setup="def other_max(first, second):\n    return first * 10",
)
add_slot(
    "cached_function",
    "total = total + cached(3)",
    "BASIS = 2.0; cached.cache_clear()",
    "BASIS = 5.0; cached.cache_clear()",
    "BASIS = 6.0",
    "cached(4); cached(5)",
    setup="import functools\n\nBASIS = 2.0\n\n\n@functools.lru_cache\ndef cached(k):\n    return k * BASIS",
    moving=True,  # a call fills the cache that a change has cleared, and nothing else may fill it
)
add_slot(
    "cached_method",
    "total = total + thing.cached()",
    "Thing.cached = cached_one",
    "Thing.cached = cached_two",
    setup="import functools\n\ncached_one = functools.lru_cache(lambda self: 1.0)\n"
    "cached_two = functools.lru_cache(lambda self: 2.0)\nThing.cached = cached_one",
    needs="thing",
)

add_slot(
    "cached_object",
    "total = total + weighed(burden)",
    "burden = heavy",
    "burden = light",
    "heavy.weight = 5.0",
    "heavy.weight = 4.0; weighed.cache_clear()",
    setup="import functools\n\n\nclass Burden:\n    def __init__(self, weight):\n        self.weight = weight\n\n\n"
    "@functools.lru_cache\ndef weighed(one):\n    return one.weight * 2\n\n\n"
    "heavy, light = Burden(4.0), Burden(1.0)\nburden = heavy",
    moving=True,  # as above
)
add_slot(
    "subclasses",
    "total = total * len(Registered.__subclasses__())",
    "SecondRegistered.__bases__ = (Registered,)",
    "SecondRegistered.__bases__ = (Unregistered,)",
    setup="class Registered:\n    pass\n\n\nclass Unregistered:\n    pass\n\n\n"
    "class FirstRegistered(Registered):\n    pass\n\n\nclass SecondRegistered(Registered):\n    pass",
)

# -- look-up in classes ------------------------------------------------------------------------------------------------

add_slot(
    "property_added_over_an_attribute",
    "total = total * thing.gain",
    "del_member(Thing, 'gain')",
    "Thing.gain = gain_property",
    setup="gain_property = property(lambda self: 9.0)",
    needs="thing",
)
add_slot(
    "property_replaced",
    "total = total * thing.width",
    "Thing.width = width_two",
    "Thing.width = width_three",
    "Thing.width = 4.0",
    setup="width_two, width_three = property(lambda self: 2.0), property(lambda self: 3.0)\nThing.width = width_two",
    needs="thing",
)
add_slot(
    "property_getter_code",
    "total = total * thing.height",
    "read_height.__code__ = height_one",
    "read_height.__code__ = height_two",
    setup="def read_height(self):\n    return 2.0\n\n\nheight_one = read_height.__code__\n"
    "height_two = (lambda self: 5.0).__code__\nThing.height = property(read_height)",
    needs="thing",
)
add_slot(
    "static_method_overridden_below",
    "total = total + lower.fixed()",
    "del_member(Lower, 'fixed')",
    "Lower.fixed = two_fixed",
    setup="two_fixed = staticmethod(lambda: 2.0)",
    needs="family",
)
add_slot(
    "class_method_overridden_below",
    "total = total + lower.made()",
    "del_member(Lower, 'made')",
    "Lower.made = two_made",
    setup="two_made = classmethod(lambda cls: 2.0)",
    needs="family",
)
add_slot(
    "method_overridden_below",
    "total = total + lower.go()",
    "del_member(Lower, 'go')",
    "Lower.go = two_go",
    setup="def two_go(self):\n    return 2.0",
    needs="family",
)
add_slot(
    "attribute_overridden_below",
    "total = total + lower.level",
    "del_member(Lower, 'level')",
    "Lower.level = 2.0",
    "Lower.level = three_level",
    setup="three_level = torch.ones(1)",
    needs="family",
)
add_slot(
    "method_reached_by_super",
    "total = total + lower.through()",
    "Upper.base = upper_one",
    "Upper.base = upper_two",
    setup="def upper_one(self):\n    return 1.0\n\n\ndef upper_two(self):\n    return 4.0\n\n\nUpper.base = upper_one",
    needs="family",
)
add_slot(
    "method_between_super_and_base",
    "total = total + lower.through()",
    "del_member(Middle, 'base')",
    "Middle.base = middle_base",
    setup="def middle_base(self):\n    return 4.0",
    needs="family",
)
add_slot(
    "class_of_a_class_attribute",
    "total = total + Upper.level + Lower.level",
    "Upper.level = 1.0",
    "Upper.level = 3.0",
    needs="family",
)
add_slot(
    "bases_of_a_class",
    ("total = total + lower.only()", "total = total + isinstance(lower, Extra)"),
    "Lower.__bases__ = (Middle,)",
    "Lower.__bases__ = (Extra, Middle)",
    setup="class Extra:\n    def only(self):\n        return 7.0\n\n\nUpper.only = lambda self: 1.0",
    needs="family",
)
add_slot(
    "getattr_added",
    "total = total + (1.0 if hasattr(plain, 'absent') else 2.0)",
    "del_member(Plain, '__getattr__')",
    "Plain.__getattr__ = get_any",
    setup="def get_any(self, name):\n    return 1.0",
    needs="plain",
)
add_slot(
    "getattr_replaced",
    "total = total + dynamic.anything",
    "Dynamic.__getattr__ = get_one",
    "Dynamic.__getattr__ = get_two",
    # a class of its own: slots that write one place would undo each other's states
    setup="class Dynamic:\n    pass\n\n\ndynamic = Dynamic()\n\n\ndef get_one(self, name):\n    return 1.0\n\n\n"
    "def get_two(self, name):\n    return 3.0\n\n\nDynamic.__getattr__ = get_one",
)
add_slot(
    "getattribute_added",
    "total = total + plain.value",
    "del_member(Plain, '__getattribute__')",
    "Plain.__getattribute__ = get_all",
    setup="def get_all(self, name):\n    return 11.0",
    needs="plain",
)
add_slot(
    "setattr_added",
    "plain.written = 1.0\ntotal = total + plain.__dict__.get('written', 5.0)",
    "del_member(Plain, '__setattr__')",
    "Plain.__setattr__ = set_none",
    setup="def set_none(self, name, value):\n    pass",
    needs="plain",
    moving=True,
)
add_slot(
    "name_of_a_class",
    "total = total + len(type(plain).__name__)",
    "Plain.__name__ = 'Plain'",
    "Plain.__name__ = 'Plainer'",
    needs="plain",
)

# -- special methods ---------------------------------------------------------------------------------------------------

for _name, _read, _method in (
    ("bool", "total = total + (1.0 if bare else 2.0)", "lambda self: False"),
    ("len", "total = total + (1.0 if bare else 2.0)", "lambda self: 0"),
    ("eq", "total = total + (1.0 if bare == 3 else 2.0)", "lambda self, other: True"),
    ("ne", "total = total + (1.0 if bare != 3 else 2.0)", "lambda self, other: False"),
    ("contains", "total = total + (1.0 if 3 in bare else 2.0)", "lambda self, item: item == 3"),
    ("repr", "total = total + (1.0 if str(bare) == 'plain' else 2.0)", "lambda self: 'plain'"),
):
    # a class without these methods: slots that write one place would undo each other's states
    _iterates = "\nBare.__iter__ = lambda self: iter([])" if _name == "contains" else ""
    add_slot(
        f"special_method_added_{_name}",
        _read,
        f"del_member(Bare, '__{_name}__')",
        f"Bare.__{_name}__ = new_{_name}",
        setup=f"new_{_name} = {_method}{_iterates}",
        needs="bare",
    )

for _name, _read, _one, _two in (
    ("bool", "total = total + (1.0 if plain else 2.0)", "lambda self: False", "lambda self: True"),
    ("iter", "total = total + sum(plain)", "lambda self: iter([1.0])", "lambda self: iter([5.0])"),
    ("getitem", "total = total + plain[0]", "lambda self, key: 1.0", "lambda self, key: 5.0"),
    ("call", "total = total + plain(0)", "lambda self, key: 1.0", "lambda self, key: 5.0"),
    ("add", "total = total + (plain + 1)", "lambda self, other: 1.0", "lambda self, other: 5.0"),
    ("radd", "total = total + (1 + plain)", "lambda self, other: 1.0", "lambda self, other: 5.0"),
    (
        "iadd",
        "plainer = plain\nplainer += 1\ntotal = total + plainer",
        "lambda self, other: 1.0",
        "lambda self, other: 5.0",
    ),
    ("lt", "total = total + (1.0 if plain < 3 else 2.0)", "lambda self, other: True", "lambda self, other: False"),
    ("hash", "total = total + {plain: 1.0}[plain] + hash(plain)", "lambda self: 1", "lambda self: 2"),
    ("enter", "with plain as inside:\n    total = total + inside", "lambda self: 1.0", "lambda self: 5.0"),
    ("index", "total = total + [1.0, 5.0][plain]", "lambda self: 0", "lambda self: 1"),
    ("float", "total = total + float(plain)", "lambda self: 1.0", "lambda self: 5.0"),
    ("neg", "total = total + (-plain)", "lambda self: 1.0", "lambda self: 5.0"),
    (
        "init",
        "total = total + Plain().value",
        "lambda self: vars(self).update(value=1.0)",
        "lambda self: vars(self).update(value=5.0)",
    ),
    ("format", "total = total + len(f'{plain}')", "lambda self, text: 'a'", "lambda self, text: 'abc'"),
):
    add_slot(
        f"special_method_{_name}",
        _read,
        f"Plain.__{_name}__ = {_name}_one",
        f"Plain.__{_name}__ = {_name}_two",
        setup=f"{_name}_one, {_name}_two = {_one}, {_two}\nPlain.__{_name}__ = {_name}_one",
        needs="plain",
    )

# -- instances ---------------------------------------------------------------------------------------------------------

add_slot(
    "slotted_attribute",
    "total = total + slotted.size",
    "slotted.size = 1.0",
    "slotted.size = 4.0",
    "slotted.size = 1",
    needs="slotted",
)
add_slot(
    "slotted_presence",
    "total = total + (1.0 if hasattr(slotted, 'extra') else 2.0)",
    "vars_of_slots(slotted)",
    "slotted.extra = 1",
    needs="slotted",
)
add_slot(
    "namespace_replaced",
    "total = total + plain.value",
    "plain.__dict__ = {'value': 1.0}",
    "plain.__dict__ = {'value': 3.0}",
    needs="plain",
)
add_slot(
    "nested_objects",
    "total = total + outer.inner.items[1]['key']",
    "outer.inner.items[1]['key'] = 1.0",
    "outer.inner.items[1]['key'] = 2.0",
    "outer.inner.items[1] = {'key': 7.0}",
    "outer.inner.items = [0, {'key': 8.0}]",
    setup="import types\n\nouter = types.SimpleNamespace(inner=types.SimpleNamespace(items=[0, {'key': 1.0}]))",
)
add_slot(
    "same_object_in_two_places",
    "total = total + (1.0 if pair[0] is pair[1] else 2.0)",
    "pair[1] = pair[0]",
    "pair[1] = list(pair[0])",
    setup="pair = [[1.0], [1.0]]\npair[1] = pair[0]",
)
add_slot(
    "written_alias",
    "couple[0].append(1.0)\ntotal = total + len(couple[1])",
    "couple[:] = [[], []]",
    "couple[0] = couple[1] = []",
    setup="couple = [[], []]",
    moving=True,
    rewound=False,
)
add_slot(
    "data_class",
    "total = total + settings.rate * settings.steps",
    "settings = Settings()",
    "settings = Settings(rate=3.0)",
    "settings = Settings(steps=4)",
    setup="import dataclasses\n\n\n@dataclasses.dataclass(frozen=True)\nclass Settings:\n    rate: float = 1.0\n"
    "    steps: int = 2\n    unread: int = 0\n\n\nsettings = Settings()",
)
add_slot(
    "named_tuple",
    "total = total + spot.left * 2 + spot[1]",
    "spot = Spot(1.0, 2.0)",
    "spot = Spot(2.0, 1.0)",
    "spot = OtherSpot(1.0, 2.0)",
    setup="import collections\n\nSpot = collections.namedtuple('Spot', 'left right')\n"
    "OtherSpot = collections.namedtuple('OtherSpot', 'right left')\nspot = Spot(1.0, 2.0)",
)
add_slot(
    "enumeration",
    ("total = total + (1.0 if colour is Colour.RED else 2.0)", "total = total + colour.value"),
    "colour = Colour.RED",
    "colour = Colour.BLUE",
    "colour = Other.RED",
    setup="import enum\n\nColour = enum.Enum('Colour', {'RED': 1.0, 'BLUE': 2.0})\n"
    "Other = enum.Enum('Other', {'RED': 3.0})\ncolour = Colour.RED",
)
add_slot(
    "weak_reference",
    "total = total + (1.0 if weak() is None else 2.0)",
    "weak = weakref.ref(Thing)",
    "weak = gone",
    setup="import weakref\n\nweak, gone = weakref.ref(Thing), weakref.ref(type('Gone', (), {}))\n"
    "import gc\n\ngc.collect()",
    needs="thing",
)
