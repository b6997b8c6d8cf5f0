"""Objects of the standard library that a call changes: locks, queues, weak containers, thread locals, loggers."""

import collections
import contextlib
import datetime
import decimal
import fractions
import functools
import heapq
import logging
import queue
import threading
import types
import uuid
import weakref
from io import BytesIO, StringIO

import torch

from support.planted_kinds.planted_scene import PlantedScene, and_then, floats, instead, on_result, planted, scene


class Referred:
    """Can be referred to weakly."""


def twice(x, held):
    return x * 2


def lost(held, change, read) -> PlantedScene:
    """A program that changes an object, and a compiler that drops the change."""

    def program(x, held):
        change(held)
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: read(held))


def doubled(held, change, read) -> PlantedScene:
    """A program that changes an object, and a compiler that changes it twice."""

    def program(x, held):
        change(held)
        return x * 2

    return scene(program, and_then(lambda x, held: change(held)), floats(4), held, seen=lambda y: read(held))


@planted("library")
def a_lock_is_not_taken() -> PlantedScene:
    return lost(threading.Lock(), lambda lock: lock.acquire(blocking=False), lambda lock: lock.locked())


@planted("library")
def a_lock_is_not_released() -> PlantedScene:
    lock = threading.Lock()
    lock.acquire()

    def change(held):
        if held.locked():
            held.release()

    return lost(lock, change, lambda held: held.locked())


@planted("library")
def a_reentrant_lock_is_not_taken() -> PlantedScene:
    return lost(threading.RLock(), lambda lock: lock.acquire(), lambda lock: lock._is_owned())


@planted("library")
def an_event_is_not_set() -> PlantedScene:
    return lost(threading.Event(), lambda event: event.set(), lambda event: event.is_set())


@planted("library")
def an_event_is_not_cleared() -> PlantedScene:
    event = threading.Event()
    event.set()
    return lost(event, lambda held: held.clear(), lambda held: held.is_set())


@planted("library")
def a_semaphore_is_taken_twice() -> PlantedScene:
    semaphore = threading.Semaphore(3)
    return doubled(semaphore, lambda held: held.acquire(blocking=False), lambda held: held._value)


@planted("library")
def a_value_of_this_thread_is_not_set() -> PlantedScene:
    return lost(threading.local(), lambda held: setattr(held, "number", 1), lambda held: getattr(held, "number", 0))


@planted("library")
def a_value_of_this_thread_in_a_closure_is_not_set() -> PlantedScene:
    held = threading.local()

    def program(x):
        held.number = getattr(held, "number", 0) + 1
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: getattr(held, "number", 0))


@planted("library")
def a_queue_is_not_filled() -> PlantedScene:
    return lost(queue.Queue(), lambda held: held.put(1), lambda held: held.qsize())


@planted("library")
def a_queue_is_emptied_twice() -> PlantedScene:
    held = queue.Queue()
    for number in range(3):
        held.put(number)
    return doubled(held, lambda one: one.get_nowait(), lambda one: one.qsize())


@planted("library")
def a_simple_queue_is_not_filled() -> PlantedScene:
    return lost(queue.SimpleQueue(), lambda held: held.put(1), lambda held: held.qsize())


@planted("library")
def a_priority_queue_holds_another() -> PlantedScene:
    held = queue.PriorityQueue()
    held.put(5)

    def program(x, held):
        held.put(1)
        return x * 2

    def wrong(x, held):
        held.put(9)
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: held.get_nowait())


@planted("library")
def a_heap_is_not_a_heap() -> PlantedScene:
    held = [3, 5, 7]

    def wrong(x, held):
        held.append(1)
        return x * 2

    def program(x, held):
        heapq.heappush(held, 1)
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: held[0])


@planted("library")
def an_entry_by_a_weak_key_is_lost() -> PlantedScene:
    key, held = Referred(), weakref.WeakKeyDictionary()

    def program(x, held):
        held[key] = 1
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: held.get(key))


@planted("library")
def an_entry_by_a_weak_key_has_another_value() -> PlantedScene:
    key = Referred()
    held = weakref.WeakKeyDictionary({key: 1})

    def program(x, held):
        held[key] += 1
        return x * 2

    return scene(
        program, and_then(lambda x, held: held.update({key: 7})), floats(4), held, seen=lambda y: held.get(key)
    )


@planted("library")
def a_weak_value_is_lost() -> PlantedScene:
    value, held = Referred(), weakref.WeakValueDictionary()

    def program(x, held):
        held["a"] = value
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: held.get("a") is value)


@planted("library")
def a_weak_member_is_lost() -> PlantedScene:
    member, held = Referred(), weakref.WeakSet()

    def program(x, held):
        held.add(member)
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: len(held))


@planted("library")
def a_finaliser_is_not_registered() -> PlantedScene:
    one, calls = Referred(), []
    held = [one]
    del one

    def program(x, held):
        weakref.finalize(held[0], calls.append, 1)
        return x * 2

    def seen(y):
        held.clear()
        return len(calls)

    return scene(program, instead(twice), floats(4), held, seen=seen)


@planted("library")
def a_level_of_a_logger_is_not_set() -> PlantedScene:
    return lost(logging.Logger("a kind"), lambda held: held.setLevel(40), lambda held: held.level)


@planted("library")
def a_handler_of_a_logger_is_added_twice() -> PlantedScene:
    def change(held):
        held.addHandler(logging.NullHandler())

    return doubled(logging.Logger("a kind"), change, lambda held: len(held.handlers))


@planted("library")
def a_logger_propagates_no_more() -> PlantedScene:
    return lost(logging.Logger("a kind"), lambda held: setattr(held, "propagate", False), lambda held: held.propagate)


@planted("library")
def a_text_in_memory_is_not_written() -> PlantedScene:
    return lost(StringIO(), lambda held: held.write("one"), lambda held: held.getvalue())


@planted("library")
def bytes_in_memory_are_written_twice() -> PlantedScene:
    return doubled(BytesIO(), lambda held: held.write(b"one"), lambda held: held.getvalue())


@planted("library")
def a_tensor_is_not_saved() -> PlantedScene:
    held = BytesIO()

    def program(x, held):
        torch.save(x, held)
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=lambda y: len(held.getvalue()) > 0)


@planted("library")
def a_deque_turns_the_other_way() -> PlantedScene:
    held = collections.deque([1, 2, 3])

    def program(x, held):
        held.rotate(1)
        return x * 2

    return scene(program, and_then(lambda x, held: held.rotate(-2)), floats(4), held, seen=lambda y: list(held))


@planted("library")
def a_chain_of_maps_writes_to_the_wrong_one() -> PlantedScene:
    first, second = {}, {}
    held = collections.ChainMap(first, second)

    def program(x, held):
        held["a"] = 1
        return x * 2

    def wrong(x, held):
        held.maps[1]["a"] = 1
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: (dict(first), dict(second)))


@planted("library")
def an_ordered_dictionary_moves_nothing() -> PlantedScene:
    held = collections.OrderedDict(a=1, b=2)
    return lost(held, lambda one: one.move_to_end("a"), lambda one: list(one))


@planted("library")
def a_stack_of_contexts_is_not_filled() -> PlantedScene:
    calls = []

    def seen(y):
        held.close()
        return list(calls)

    held = contextlib.ExitStack()

    def program(x, held):
        held.callback(calls.append, 1)
        return x * 2

    return scene(program, instead(twice), floats(4), held, seen=seen)


@planted("library")
def a_namespace_lacks_a_name() -> PlantedScene:
    return lost(types.SimpleNamespace(), lambda held: setattr(held, "a", 1), lambda held: vars(held))


@planted("library")
def a_byte_array_is_not_changed() -> PlantedScene:
    return lost(bytearray(b"abc"), lambda held: held.append(1), lambda held: bytes(held))


@planted("library")
def a_cached_property_is_not_kept() -> PlantedScene:
    class Measured:
        """Computes once."""

        calls = 0

        @functools.cached_property
        def size(self):
            Measured.calls += 1
            return 3

    held = Measured()
    return lost(held, lambda one: one.size, lambda one: "size" in vars(one))


@planted("library")
def a_decimal_comes_back_rounded() -> PlantedScene:
    return scene(
        lambda x: (x * 2, decimal.Decimal("1.25")),
        on_result(lambda y: (y[0], decimal.Decimal("1.2"))),
        floats(4),
        seen=lambda y: y[1],
    )


@planted("library")
def a_fraction_comes_back_as_another() -> PlantedScene:
    return scene(
        lambda x: (x * 2, fractions.Fraction(1, 3)),
        on_result(lambda y: (y[0], fractions.Fraction(1, 4))),
        floats(4),
        seen=lambda y: y[1],
    )


@planted("library")
def a_date_comes_back_as_another() -> PlantedScene:
    first, second = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
    return scene(lambda x: (x * 2, first), on_result(lambda y: (y[0], second)), floats(4), seen=lambda y: y[1])


@planted("library")
def an_identifier_comes_back_as_another() -> PlantedScene:
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    return scene(lambda x: (x * 2, first), on_result(lambda y: (y[0], second)), floats(4), seen=lambda y: y[1])


@planted("library")
def a_partial_function_comes_back_with_another_argument() -> PlantedScene:
    return scene(
        lambda x: (x * 2, functools.partial(max, 5)),
        on_result(lambda y: (y[0], functools.partial(max, 6))),
        floats(4),
        seen=lambda y: y[1](0),
    )


@planted("library")
def a_storage_comes_back_with_other_bytes() -> PlantedScene:
    def wrong(x):
        return (x * 3).untyped_storage()

    return scene(lambda x: (x * 2).untyped_storage(), instead(wrong), floats(4), seen=lambda y: bytes(y))
