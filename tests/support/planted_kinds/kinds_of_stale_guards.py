"""What a later call reads as it was at the first one: guards that are missing, wrong or too weak."""

import collections
import dataclasses
import enum
import functools
import math
import os

import torch

from support.planted_kinds.planted_scene import Plant, PlantedScene, Program, floats, planted, scene


class Reduction(enum.Enum):
    """What a program may be told."""

    SUM = 1
    MEAN = 2


@dataclasses.dataclass
class ScaledBy:
    """An argument with one field."""

    factor: float


def frozen(read, write) -> Plant:
    """At every call the program finds what it found at the first."""

    def compiler(program: Program) -> Program:
        first: list[object] = []

        def wrong(*args):
            now = read(*args)
            first.append(now)
            write(first[0], *args)
            try:
                return program(*args)
            finally:
                write(now, *args)

        return wrong

    return compiler


def first_argument_again(place: int) -> Plant:
    """At every call one argument is that of the first call."""

    def compiler(program: Program) -> Program:
        first: list[object] = []

        def wrong(*args):
            first.append(args[place])
            return program(*args[:place], first[0], *args[place + 1 :])

        return wrong

    return compiler


X = floats(6) + 0.5
COUNT = 0


@planted("stale guards")
def a_whole_number() -> PlantedScene:
    return scene(lambda x, n: x * n, first_argument_again(1), calls=[(X, 2), (X, 3)])


@planted("stale guards")
def a_float() -> PlantedScene:
    return scene(lambda x, n: x * n, first_argument_again(1), calls=[(X, 2.5), (X, 2.5), (X, 2.5), (X, 3.5)])


@planted("stale guards")
def a_truth_value() -> PlantedScene:
    return scene(lambda x, b: x if b else -x, first_argument_again(1), calls=[(X, True), (X, False)])


@planted("stale guards")
def true_is_one() -> PlantedScene:
    def program(x, n):
        return x * 2 if n is True else x * 3

    def compiler(program):
        cache = {}

        def wrong(x, n):
            return cache.setdefault(n, (program(x, n),))[0]

        return wrong

    return scene(program, compiler, calls=[(X, 1), (X, True)])


@planted("stale guards")
def one_is_one_point_zero() -> PlantedScene:
    def compiler(program):
        cache = {}
        return lambda x, n: cache.setdefault(n, program(x, n))

    x = torch.arange(4)
    return scene(lambda x, n: x * n, compiler, calls=[(x, 1), (x, 1.0)])


@planted("stale guards")
def minus_zero_is_zero() -> PlantedScene:
    def compiler(program):
        cache = {}
        return lambda x, n: cache.setdefault(n, program(x, n))

    return scene(lambda x, n: x / math.copysign(1.0, n), compiler, calls=[(X, 0.0), (X, -0.0)])


@planted("stale guards")
def a_text() -> PlantedScene:
    return scene(lambda x, how: getattr(x, how)(), first_argument_again(1), calls=[(X, "sum"), (X, "mean")])


@planted("stale guards")
def a_member_of_an_enum() -> PlantedScene:
    def program(x, how):
        return x.sum() if how is Reduction.SUM else x.mean()

    return scene(program, first_argument_again(1), calls=[(X, Reduction.SUM), (X, Reduction.MEAN)])


@planted("stale guards")
def none_or_a_tensor() -> PlantedScene:
    def program(x, mask):
        return x if mask is None else x * mask

    return scene(program, first_argument_again(1), calls=[(X, None), (X, X > 0)])


@planted("stale guards")
def a_shape() -> PlantedScene:
    def compiler(program):
        rows = []

        def wrong(x):
            rows.append(len(x))
            return program(x) * rows[0] / len(x)

        return wrong

    return scene(lambda x: x * len(x), compiler, calls=[(floats(4),), (floats(8),)])


@planted("stale guards")
def a_size_of_one_is_broadcast() -> PlantedScene:
    def compiler(program):
        return lambda x, y: program(x, y[:1])

    return scene(lambda x, y: x + y, compiler, calls=[(X, floats(1)), (X, floats(6))])


@planted("stale guards")
def a_dtype() -> PlantedScene:
    def compiler(program):
        found = []

        def wrong(x):
            found.append(x.dtype)
            return program(x).to(found[0])

        return wrong

    return scene(lambda x: x * 2, compiler, calls=[(X,), (X.double(),)])


@planted("stale guards")
def strides() -> PlantedScene:
    def compiler(program):
        found = []

        def wrong(x):
            found.append(x.stride())
            return program(torch.as_strided(x, x.shape, found[0]))

        return wrong

    return scene(lambda x: x + 1, compiler, calls=[(floats(3, 3),), (floats(3, 3).t(),)])


@planted("stale guards")
def requires_grad() -> PlantedScene:
    def compiler(program):
        found = []

        def wrong(x):
            found.append(x.requires_grad)
            return program(x) if found[0] else program(x).detach()

        return wrong

    return scene(lambda x: x * 2, compiler, calls=[(X.clone(),), (X.clone().requires_grad_(),)])


@planted("stale guards")
def which_arguments_are_the_same_tensor() -> PlantedScene:
    def program(x, y):
        x.add_(1)
        return y * 2

    def compiler(program):
        def wrong(x, y):
            if x is not y:
                return program(x, y)
            result = x * 2
            x.add_(1)
            return result

        return wrong

    same = X.clone()
    return scene(program, compiler, calls=[(X.clone(), X.clone()), (same, same)])


@planted("stale guards")
def which_arguments_overlap() -> PlantedScene:
    def program(x, y):
        x.add_(1)
        return y * 2

    def compiler(program):
        def wrong(x, y):
            before = y.clone()
            program(x, y)
            return before * 2 if x is not y else y * 2

        return wrong

    base = floats(8)
    return scene(program, compiler, calls=[(base[:4], base[2:6])])


@planted("stale guards")
def the_length_of_a_list() -> PlantedScene:
    return scene(lambda x, held: sum(held, x), first_argument_again(1), calls=[(X, [X]), (X, [X, X]), (X, [X, X, X])])


@planted("stale guards")
def the_keys_of_a_dictionary() -> PlantedScene:
    def program(x, held):
        return x * held.get("scale", 1)

    return scene(program, first_argument_again(1), calls=[(X, {}), (X, {"scale": 3})])


@planted("stale guards")
def the_order_of_a_dictionary() -> PlantedScene:
    def program(x, held):
        for factor, shift in held.items():
            x = x * factor + shift
        return x

    return scene(program, first_argument_again(1), calls=[(X, {2: 1, 3: 5}), (X, {3: 5, 2: 1})])


@planted("stale guards")
def a_field_of_an_object() -> PlantedScene:
    one = ScaledBy(2.0)

    def program(x, held):
        result = x * held.factor
        held.factor += 1
        return result

    def compiler(program):
        first = []

        def wrong(x, held):
            first.append(held.factor)
            held.factor += 1
            return x * first[0]

        return wrong

    return scene(program, compiler, calls=[(X, one), (X, one), (X, one)])


@planted("stale guards")
def the_class_of_an_argument() -> PlantedScene:
    class Doubled(list):
        """A list that says another length."""

        def __len__(self):
            return 2 * super().__len__()

    def compiler(program):
        return lambda x, held: program(x, list(held))

    return scene(lambda x, held: x * len(held), compiler, calls=[(X, [1]), (X, Doubled([1]))])


@planted("stale guards")
def a_global() -> PlantedScene:
    def program(x):
        global COUNT
        COUNT = 1 - COUNT  # the second call puts it back
        return x * COUNT

    def compiler(program):
        def wrong(x):
            program(x)
            return x * 1

        return wrong

    return scene(program, compiler, calls=[(X,), (X,)])


@planted("stale guards")
def a_cell_of_a_closure() -> PlantedScene:
    number = 0

    def program(x):
        nonlocal number
        number += 1
        return x * number

    def compiler(program):
        first = []

        def wrong(x):
            result = program(x)
            first.append(result)
            return first[0].clone()

        return wrong

    return scene(program, compiler, calls=[(X,), (X,), (X,)])


@planted("stale guards")
def an_environment_variable() -> PlantedScene:
    def program(x):
        before = int(os.environ.get("A_VARIABLE_OF_A_KIND", "1"))
        os.environ["A_VARIABLE_OF_A_KIND"] = str(before + 1)
        return x * before

    def compiler(program):
        def wrong(x):
            program(x)
            return x * 1

        return wrong

    return scene(program, compiler, calls=[(X,), (X,)])


@planted("stale guards")
def grad_mode() -> PlantedScene:
    x = X.clone().requires_grad_()

    def program(x, on):
        with torch.set_grad_enabled(on):
            return x * 2

    return scene(program, first_argument_again(1), calls=[(x, True), (x, False)])


@planted("stale guards")
def the_default_dtype() -> PlantedScene:
    def program(x, dtype):
        torch.set_default_dtype(dtype)
        try:
            return x + torch.ones(6)
        finally:
            torch.set_default_dtype(torch.float32)

    def compiler(program):
        return lambda x, dtype: program(x, torch.float32)

    return scene(program, compiler, calls=[(X, torch.float32), (X, torch.float64)])


@planted("stale guards")
def whether_a_module_is_training() -> PlantedScene:
    drop = torch.nn.Dropout(1.0)

    def program(x, training):
        return drop.train(training)(x)

    def compiler(program):
        found = []

        def wrong(x, training):
            found.append(training)
            result = program(x, found[0])
            drop.train(training)
            return result

        return wrong

    return scene(program, compiler, calls=[(X, False), (X, True)])


@planted("stale guards")
def a_default_of_a_function() -> PlantedScene:
    def inner(x, scale=2):
        return x * scale

    def program(x):
        result = inner(x)
        inner.__defaults__ = (inner.__defaults__[0] + 1,)
        return result

    def compiler(program):
        def wrong(x):
            program(x)
            return x * 2

        return wrong

    return scene(program, compiler, calls=[(X,), (X,)])


@planted("stale guards")
def a_method_that_was_replaced() -> PlantedScene:
    class Scaled:
        """Its method is replaced between the calls."""

        def apply(self, x):
            return x * 2

    one = Scaled()

    def program(x, again):
        if again:
            Scaled.apply = lambda self, x: x * 5
        return one.apply(x)

    def compiler(program):
        def wrong(x, again):
            program(x, again)
            return x * 2

        return wrong

    return scene(program, compiler, calls=[(X, False), (X, True)])


@planted("stale guards")
def the_data_of_a_tensor() -> PlantedScene:
    def compiler(program):
        found = []

        def wrong(x):
            found.append(bool(x.sum() > 0))
            return x * 2 if found[0] else x * 3

        return wrong

    return scene(lambda x: x * 2 if x.sum() > 0 else x * 3, compiler, calls=[(X + 3,), (X - 3,)])


@planted("stale guards")
def the_data_of_a_tensor_at_the_fifth_call() -> PlantedScene:
    """A call like those before it, between two that are judged."""

    def compiler(program):
        found = []

        def wrong(x):
            found.append(bool(x.sum() > 0))
            return x * 2 if found[0] else x * 3

        return wrong

    def program(x):
        return x * 2 if x.sum() > 0 else x * 3

    return scene(program, compiler, calls=[(X + 3,)] * 4 + [(X - 3,)])


@planted("stale guards")
def a_number_inside_a_nested_container() -> PlantedScene:
    def program(x, held):
        return x * held["a"][0]["b"]

    return scene(program, first_argument_again(1), calls=[(X, {"a": [{"b": k}]}) for k in (2, 2, 2, 2, 3)])


@planted("stale guards")
def a_number_in_a_numpy_array() -> PlantedScene:
    def program(x, held):
        return x * float(held[0])

    arrays = [torch.tensor([float(k)]).numpy() for k in (2, 2, 2, 2, 3)]
    return scene(program, first_argument_again(1), calls=[(X, each) for each in arrays])


@planted("stale guards")
def the_partial_argument_of_a_callable() -> PlantedScene:

    def scaled(scale, x):
        return x * scale

    def program(x, function):
        return function(x)

    functions = [functools.partial(scaled, k) for k in (2, 2, 2, 2, 3)]
    return scene(program, first_argument_again(1), calls=[(X, each) for each in functions])


@planted("stale guards")
def the_counts_of_a_counter() -> PlantedScene:
    def program(x, held):
        return x * held["a"]

    counters = [collections.Counter(a=k) for k in (2, 2, 2, 2, 3)]
    return scene(program, first_argument_again(1), calls=[(X, each) for each in counters])


@planted("stale guards")
def an_order_of_summands_is_only_right_for_the_first_size() -> PlantedScene:
    def compiler(program):
        return lambda x: program(x) if len(x) % 4 == 0 else program(x[: len(x) // 4 * 4])

    return scene(lambda x: x.sum(), compiler, calls=[(floats(8),), (floats(12),), (floats(13) + 1,)])
