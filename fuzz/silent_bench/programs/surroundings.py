"""Globals, closures and functions around the compiled function that change between calls."""

import torch

LARGEST = 3.0
OFFSET = 0.0
NUMBERS = [1, 2, 3]


def scaled(x):
    return x * 2


def hooked(x):
    return x


def test_nested_region_reads_rebound_state():
    """The region reads state["h"], which the loop rebinds before each call: 2, not 1."""
    state = {"h": torch.tensor(0)}

    @torch.compiler.nested_compile_region
    def region():
        return state["h"] + 1

    def loop(h):
        for _ in range(2):
            state["h"] = h
            h = region()
        return h

    torch.compile(loop, fullgraph=True)(torch.tensor(0))


def test_global_hides_a_builtin():
    """A global named max, set after the first call, takes the place of the builtin."""

    def bound(x):
        return x + max(1.0, 2.0)

    run = torch.compile(bound)
    run(torch.zeros(1))
    globals()["max"] = lambda a, b: 10 * a
    try:
        run(torch.zeros(1))
    finally:
        del globals()["max"]


def test_attribute_added_to_a_function():
    """hasattr(function, name) is asked at each call."""

    def choose(x):
        return x + (1 if hasattr(hooked, "enabled") else 2)

    run = torch.compile(choose)
    run(torch.zeros(1))
    hooked.enabled = True
    try:
        run(torch.zeros(1))
    finally:
        del hooked.enabled


def test_global_becomes_minus_zero():
    """0.0 and -0.0 are equal, and 1 / x tells them apart."""
    global OFFSET
    OFFSET = 0.0
    run = torch.compile(lambda x: x / OFFSET)
    run(torch.ones(1))
    OFFSET = -0.0
    run(torch.ones(1))


def test_global_number_changes():
    """A global number has its new value in the second call."""
    global LARGEST
    LARGEST = 3.0
    run = torch.compile(lambda x: x.clamp(max=LARGEST))
    run(torch.arange(6.0))
    LARGEST = 1.5
    run(torch.arange(6.0))


def test_global_function_is_replaced():
    """The function called by name is the new one in the second call."""
    run = torch.compile(lambda x: scaled(x))
    before = scaled
    run(torch.ones(2))
    globals()["scaled"] = lambda x: x * 5
    try:
        run(torch.ones(2))
    finally:
        globals()["scaled"] = before


def test_default_argument_is_replaced():
    """__defaults__ of a function that is called inside change."""

    def shift(x, by=1.0):
        return x + by

    run = torch.compile(lambda x: shift(x))
    run(torch.zeros(2))
    shift.__defaults__ = (4.0,)
    run(torch.zeros(2))


def test_code_of_a_function_is_replaced():
    """__code__ of a function that is called inside changes."""

    def shift(x):
        return x + 1

    run = torch.compile(lambda x: shift(x))
    run(torch.zeros(2))
    shift.__code__ = (lambda x: x + 7).__code__
    run(torch.zeros(2))


def test_list_is_argument_and_global():
    """One list under two names in the first call, two lists in the second."""

    def last(values, x):
        return x + NUMBERS[-1] + values[-1]

    run = torch.compile(last)
    run(NUMBERS, torch.zeros(1))
    run([3, 2, 1], torch.zeros(1))


def test_closure_cell_is_rebound():
    """A variable of the enclosing function changes between calls."""
    factor = 2.0

    def change(value):
        nonlocal factor
        factor = value

    run = torch.compile(lambda x: x * factor)
    run(torch.ones(2))
    change(3.0)
    run(torch.ones(2))


def test_closure_tensor_is_rebound():
    """A tensor of the enclosing function is another one in the second call."""
    weight = torch.ones(2)

    def change(value):
        nonlocal weight
        weight = value

    run = torch.compile(lambda x: x * weight)
    run(torch.ones(2))
    change(torch.full((2,), 3.0))
    run(torch.ones(2))


def test_dictionary_key_added():
    """A key that was missing in the first call is there in the second."""
    table = {}

    def look_up(x):
        return x + table.get("shift", 0.0)

    run = torch.compile(look_up)
    run(torch.zeros(2))
    table["shift"] = 2.5
    run(torch.zeros(2))


def test_dictionary_order_changes():
    """The order of the keys decides, not only what they hold."""
    table = {"a": 2.0, "b": 3.0}

    def fold(x):
        for value in table.values():
            x = x * value + 1
        return x

    run = torch.compile(fold)
    run(torch.ones(2))
    table["a"] = table.pop("a")
    run(torch.ones(2))
