"""Python objects, containers, exceptions, iterators and arguments."""

import array
import collections
import contextlib
import dataclasses
import itertools
import threading

import torch

from support.planted_kinds.planted_scene import (
    PlantedScene,
    Program,
    and_then,
    floats,
    instead,
    looked_at,
    on_result,
    planted,
    scene,
)


class Held:
    """An object with attributes."""

    count = 0

    def __init__(self) -> None:
        self.number = 1
        self.names = ["a"]


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 1


class Watched(dict):
    """A dictionary that counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def __setitem__(self, key, value):
        self.writes += 1
        super().__setitem__(key, value)


@dataclasses.dataclass
class Result:
    """What a program returns."""

    value: torch.Tensor
    name: str = "a"
    hidden: list = dataclasses.field(default_factory=list)


class RefusedInput(ValueError):
    """An error of the user's."""


def twice(x, *held):
    return x * 2


def lost(held, change, read) -> PlantedScene:
    """A program that changes an object, and a compiler that drops the change."""

    def program(x, held):
        change(held)
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: read(held))


@planted("objects")
def an_attribute_is_not_set() -> PlantedScene:
    return lost(Held(), lambda held: setattr(held, "number", 2), lambda held: held.number)


@planted("objects")
def an_attribute_is_not_deleted() -> PlantedScene:
    return lost(Held(), lambda held: delattr(held, "number"), lambda held: hasattr(held, "number"))


@planted("objects")
def an_attribute_has_a_stale_value() -> PlantedScene:
    def program(x, held):
        held.number += 1
        held.number *= 10
        return x * 2

    def wrong(x, held):
        held.number = 2
        return x * 2

    held = Held()
    return scene(program, instead(wrong), floats(4), held, seen=lambda y: held.number)


@planted("objects")
def an_attribute_of_another_object_is_set() -> PlantedScene:
    first, second = Held(), Held()

    def program(x, first, second):
        first.number = 5
        return x * 2

    def wrong(x, first, second):
        second.number = 5
        return x * 2

    return scene(program, instead(wrong), floats(4), first, second, seen=lambda y: (first.number, second.number))


@planted("objects")
def a_slot_is_not_set() -> PlantedScene:
    return lost(Slotted(), lambda held: setattr(held, "number", 2), lambda held: held.number)


@planted("objects")
def an_attribute_of_a_class_is_not_set() -> PlantedScene:
    class Counting:
        """Counts on its class."""

        count = 0

    def program(x, held):
        Counting.count += 1
        return x * 2

    return scene(program, instead(twice), floats(4), Counting(), seen=lambda y: Counting.count)


@planted("objects")
def the_class_of_an_object_is_not_changed() -> PlantedScene:
    class Other(Held):
        """Another class."""

    return lost(Held(), lambda held: setattr(held, "__class__", Other), lambda held: type(held).__name__)


@planted("objects")
def a_list_inside_an_object_is_not_extended() -> PlantedScene:
    return lost(Held(), lambda held: held.names.append("b"), lambda held: list(held.names))


@planted("objects")
def a_list_inside_an_object_is_replaced_by_a_copy() -> PlantedScene:
    held = Held()
    names = held.names

    def program(x, held):
        held.names.append("b")
        return x * 2

    def wrong(x, held):
        held.names = [*held.names, "b"]
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: list(names))


@planted("objects")
def a_list_is_not_cleared() -> PlantedScene:
    return lost([1, 2], lambda held: held.clear(), lambda held: list(held))


@planted("objects")
def an_item_is_put_at_the_end() -> PlantedScene:
    held = [1, 2]

    def program(x, held):
        held.insert(0, 3)
        return x * 2

    def wrong(x, held):
        held.append(3)
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: list(held))


@planted("objects")
def a_list_is_not_sorted() -> PlantedScene:
    return lost([2, 1], lambda held: held.sort(), lambda held: list(held))


@planted("objects")
def an_item_is_appended_twice() -> PlantedScene:
    held = []

    def program(x, held):
        held.append(1)
        return x * 2

    return scene(program, and_then(lambda x, held: held.append(1)), floats(4), held, seen=lambda y: list(held))


@planted("objects")
def a_tensor_in_a_list_is_another() -> PlantedScene:
    held = [torch.zeros(4)]

    def program(x, held):
        held[0] = x * 2

    def wrong(x, held):
        held[0] = x * 3

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: held[0].tolist())


@planted("objects")
def a_list_holds_a_copy_of_the_argument() -> PlantedScene:
    held, x = [], floats(4)

    def program(x, held):
        held.append(x)

    def wrong(x, held):
        held.append(x.clone())

    return scene(program, instead(wrong), x, held, seen=lambda y: held[0] is x)


@planted("objects")
def a_key_is_not_deleted() -> PlantedScene:
    return lost({"a": 1, "b": 2}, lambda held: held.pop("a"), lambda held: list(held))


@planted("objects")
def a_key_moves_to_the_end() -> PlantedScene:
    held = {"a": 1, "b": 2}

    def program(x, held):
        held["a"] = 5
        return x * 2

    def wrong(x, held):
        held.pop("a")
        held["a"] = 5
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: list(held))


@planted("objects")
def a_method_of_a_dictionary_of_the_users_is_skipped() -> PlantedScene:
    held = Watched()

    def program(x, held):
        held["a"] = 1
        return x * 2

    def wrong(x, held):
        dict.__setitem__(held, "a", 1)
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: held.writes)


@planted("objects")
def a_member_is_not_added() -> PlantedScene:
    return lost({1}, lambda held: held.add(2), lambda held: sorted(held))


@planted("objects")
def an_array_of_numbers_is_not_changed() -> PlantedScene:
    return lost(array.array("i", [1, 2]), lambda held: held.append(3), lambda held: held.tolist())


@planted("objects")
def a_counter_counts_twice() -> PlantedScene:
    held = collections.Counter()

    def program(x, held):
        held.update("a")
        return x * 2

    return scene(program, and_then(lambda x, held: held.update("a")), floats(4), held, seen=lambda y: dict(held))


@planted("objects")
def a_field_of_a_result_is_another() -> PlantedScene:
    return scene(lambda x: Result(x * 2), on_result(lambda y: dataclasses.replace(y, name="b")), floats(4))


@planted("objects")
def a_field_of_a_result_is_shared_by_all_calls() -> PlantedScene:
    shared = []

    def compiler(program: Program) -> Program:
        def wrong(x):
            y = program(x)
            y.hidden = shared
            return y

        return wrong

    def seen(first, second):
        first.hidden.append(1)
        return list(second.hidden)

    return scene(lambda x: Result(x * 2), compiler, calls=[(floats(4),), (floats(4),)], seen=seen)


@planted("objects")
def a_global_is_not_bound() -> PlantedScene:
    def program(x):
        global NEW_NAME
        NEW_NAME = 1
        return x * 2

    def seen(y):
        return globals().pop("NEW_NAME", None)

    return scene(program, instead(lambda x: x * 2), floats(4), seen=seen)


@planted("objects")
def a_cell_is_not_written() -> PlantedScene:
    number = 0

    def program(x):
        nonlocal number
        number += 1
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: number)


@planted("objects")
def an_attribute_of_a_function_is_not_set() -> PlantedScene:
    def program(x):
        program.calls = getattr(program, "calls", 0) + 1
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: getattr(program, "calls", 0))


@planted("objects")
def a_mutable_default_is_not_changed() -> PlantedScene:
    def program(x, held=[]):  # noqa: B006  # the default that lives on is what is tested
        held.append(1)
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: len(program.__defaults__[0]))


@planted("objects")
def a_thread_of_the_program_is_not_run() -> PlantedScene:
    held = []

    def program(x, held):
        thread = threading.Thread(target=held.append, args=(1,))
        thread.start()
        thread.join()
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: list(held))


@planted("objects")
def a_byte_is_not_written_through_a_view_of_memory() -> PlantedScene:
    return lost(memoryview(bytearray(3)), lambda held: held.__setitem__(0, 5), lambda held: held[0])


@planted("objects")
def an_exception_that_is_returned_has_another_argument() -> PlantedScene:
    program, wrong = (lambda x, n=n: (x * 2, RefusedInput("no", n)) for n in (1, 2))
    return scene(program, instead(wrong), floats(4), seen=lambda result: result[1].args)


# -- exceptions --------------------------------------------------------------------------------------------------------


def refuses(x):
    raise RefusedInput("no", 3)


@planted("exceptions")
def an_exception_is_swallowed() -> PlantedScene:
    return scene(refuses, instead(lambda x: x * 2), floats(4))


@planted("exceptions")
def an_exception_is_raised_that_eager_does_not_raise() -> PlantedScene:
    return scene(lambda x: x * 2, instead(refuses), floats(4))


@planted("exceptions")
def a_member_of_a_group_is_of_another_class() -> PlantedScene:
    def program(x):
        raise ExceptionGroup("refused", [RefusedInput("no"), KeyError("a")])

    def wrong(x):
        raise ExceptionGroup("refused", [TypeError("no"), KeyError("a")])

    return scene(program, instead(wrong), floats(4), seen=lambda error: [type(one) for one in error.exceptions])


@planted("exceptions")
def an_exception_is_of_a_base_class() -> PlantedScene:
    def wrong(x):
        raise ValueError("no", 3)

    return scene(refuses, instead(wrong), floats(4))


@planted("exceptions")
def an_exception_is_wrapped() -> PlantedScene:
    def wrong(x):
        try:
            refuses(x)
        except RefusedInput as error:
            raise RuntimeError("inside compiled code") from error

    return scene(refuses, instead(wrong), floats(4))


@planted("exceptions", aspect="exception-text")
def an_exception_has_another_text() -> PlantedScene:
    def wrong(x):
        raise RefusedInput("yes", 3)

    return scene(refuses, instead(wrong), floats(4))


@planted("exceptions", aspect="exception-text")
def an_exception_lacks_an_argument() -> PlantedScene:
    def wrong(x):
        raise RefusedInput("no")

    return scene(refuses, instead(wrong), floats(4), seen=lambda y: y.args)


@planted("exceptions", aspect="exception-text")
def an_exception_lacks_an_attribute() -> PlantedScene:
    def program(x):
        error = RefusedInput("no")
        error.code = 5
        raise error

    def wrong(x):
        raise RefusedInput("no")

    return scene(program, instead(wrong), floats(4), seen=lambda y: getattr(y, "code", None))


@planted("exceptions", aspect="exception-text")
def an_exception_lacks_its_cause() -> PlantedScene:
    def program(x):
        raise RefusedInput("no") from KeyError("a")

    def wrong(x):
        raise RefusedInput("no")

    return scene(program, instead(wrong), floats(4), seen=lambda y: type(y.__cause__).__name__)


@planted("exceptions", aspect="exception-text")
def an_exception_lacks_its_notes() -> PlantedScene:
    def program(x):
        error = RefusedInput("no")
        error.add_note("while testing")
        raise error

    def wrong(x):
        raise RefusedInput("no")

    return scene(program, instead(wrong), floats(4), seen=lambda y: getattr(y, "__notes__", None))


@planted("exceptions")
def a_change_before_an_exception_is_lost() -> PlantedScene:
    held = []

    def program(x, held):
        held.append(1)
        raise RefusedInput("no")

    def wrong(x, held):
        raise RefusedInput("no")

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: list(held))


@planted("exceptions")
def a_write_before_an_exception_is_lost() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.add_(1)
        raise RefusedInput("no")

    return scene(program, instead(refuses), x, seen=lambda y: x.tolist())


@planted("exceptions")
def a_final_block_is_not_run() -> PlantedScene:
    held = []

    def program(x, held):
        try:
            return x * 2
        finally:
            held.append(1)

    return scene(program, instead(twice), floats(4), held, seen=lambda y: list(held))


@planted("exceptions")
def a_context_is_left_twice() -> PlantedScene:
    held = []

    @contextlib.contextmanager
    def noted():
        yield
        held.append("left")

    def program(x):
        with noted():
            return x * 2

    return scene(program, and_then(lambda x: held.append("left")), floats(4), seen=lambda y: list(held))


@planted("exceptions")
def an_assertion_is_left_out() -> PlantedScene:
    def program(x):
        assert x.sum() > 100
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4))


@planted("exceptions")
def an_index_out_of_range_is_clamped() -> PlantedScene:
    index = torch.tensor([0, 9])
    return scene(lambda x, i: x[i], instead(lambda x, i: x[i.clamp(max=5)]), floats(6), index)


@planted("exceptions")
def shapes_that_do_not_fit_are_broadcast() -> PlantedScene:
    return scene(lambda x, y: x + y, instead(lambda x, y: x[:2] + y), floats(4), floats(2))


@planted("exceptions")
def a_division_of_integers_by_zero_gives_a_number() -> PlantedScene:
    return scene(lambda x: x // 0, instead(lambda x: x * 0), torch.tensor([1, 2]))


# -- iterators and generators ------------------------------------------------------------------------------------------


@planted("iterators")
def a_generator_comes_back_as_a_list() -> PlantedScene:
    return scene(lambda x: (row * 2 for row in x), on_result(list), floats(2, 3), seen=lambda y: type(y).__name__)


@planted("iterators")
def a_generator_gives_other_values() -> PlantedScene:
    return scene(
        lambda x: (row * 2 for row in x),
        instead(lambda x: (row * 3 for row in x)),
        floats(2, 3),
        seen=lambda y: [row.tolist() for row in y],
    )


@planted("iterators")
def a_generator_that_comes_back_is_begun() -> PlantedScene:
    def wrong(y):
        next(y)
        return y

    return scene(
        lambda x: (row * 2 for row in x), on_result(wrong), floats(2, 3), seen=lambda y: [row.tolist() for row in y]
    )


@planted("iterators")
def an_iterator_that_comes_back_is_at_another_place() -> PlantedScene:
    def wrong(y):
        next(y)
        return y

    return scene(lambda x: iter([x * 2, x * 3]), on_result(wrong), floats(4), seen=lambda y: looked_at(list(y)))


@planted("iterators")
def an_iterator_in_the_arguments_is_advanced_twice() -> PlantedScene:
    held = iter([1, 2, 3, 4])

    def program(x, held):
        return x * next(held)

    return scene(program, and_then(lambda x, held: next(held)), floats(4), held, seen=lambda y: list(held))


@planted("iterators")
def a_generator_in_the_arguments_is_advanced_twice() -> PlantedScene:
    held = (number for number in range(4))

    def program(x, held):
        return x * next(held)

    return scene(program, and_then(lambda x, held: next(held)), floats(4), held, seen=lambda y: list(held))


@planted("iterators")
def a_count_in_a_closure_is_advanced_twice() -> PlantedScene:
    numbers = itertools.count()

    def program(x):
        return x * next(numbers)

    return scene(program, and_then(lambda x: next(numbers)), floats(4), seen=lambda y: next(numbers))


@planted("iterators")
def a_zip_comes_back_shorter() -> PlantedScene:
    def wrong(x):
        return zip([x * 2], [1, 2], strict=False)

    def program(x):
        return zip([x * 2, x * 3], [1, 2], strict=True)

    return scene(program, instead(wrong), floats(4), seen=lambda y: looked_at(list(y)))


@planted("iterators")
def an_iterator_of_the_users_is_advanced_twice() -> PlantedScene:
    class Counting:
        """Counts on."""

        def __init__(self) -> None:
            self.number = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            return self.number

    held = Counting()

    def program(x, held):
        return x * next(held)

    return scene(program, and_then(lambda x, held: next(held)), floats(4), held, seen=lambda y: next(held))


# -- arguments ---------------------------------------------------------------------------------------------------------


@planted("arguments")
def two_arguments_are_swapped() -> PlantedScene:
    return scene(lambda x, y: x - y, instead(lambda x, y: y - x), floats(4), torch.ones(4))


@planted("arguments")
def a_default_is_used_where_an_argument_is_given() -> PlantedScene:
    return scene(lambda x, scale=2: x * scale, instead(lambda x, scale=2: x * 2), floats(4), 3)


@planted("arguments")
def a_keyword_is_ignored() -> PlantedScene:
    return scene(lambda x, *, scale=2: x * scale, instead(lambda x, *, scale=2: x * 2), floats(4), scale=3)


@planted("arguments")
def further_arguments_are_dropped() -> PlantedScene:
    return scene(lambda *xs: sum(xs), instead(lambda *xs: sum(xs[:2])), floats(4), floats(4), floats(4))


@planted("arguments")
def further_keywords_are_dropped() -> PlantedScene:
    return scene(lambda x, **more: x * len(more), instead(lambda x, **more: x * 1), floats(4), a=1, b=2)


@planted("arguments")
def an_argument_too_many_is_accepted() -> PlantedScene:
    return scene(lambda x: x * 2, instead(lambda x, *more: x * 2), floats(4), 5)


@planted("arguments")
def an_argument_too_few_is_accepted() -> PlantedScene:
    return scene(lambda x, y: x * 2, instead(lambda x, y=None: x * 2), floats(4))


@planted("arguments")
def an_unknown_keyword_is_accepted() -> PlantedScene:
    return scene(lambda x: x * 2, instead(lambda x, **more: x * 2), floats(4), scale=3)


@planted("arguments")
def a_list_in_the_arguments_is_a_copy_inside() -> PlantedScene:
    held = [1]

    def program(x, held):
        held.append(2)
        return held

    def wrong(x, held):
        held.append(2)
        return list(held)

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: y is held)


@planted("arguments")
def a_dictionary_of_arguments_is_changed() -> PlantedScene:
    held = {"scale": 3}

    def program(x, held):
        return x * held["scale"]

    return scene(program, and_then(lambda x, held: held.pop("scale")), floats(4), held, seen=lambda y: dict(held))
