"""What numbers do not show: layouts, views, masks, attributes beside contents, memory outside of torch, switches."""

import collections
import concurrent.futures
import ctypes
import hashlib
import mmap
import re
import sqlite3
import sys
import types
import weakref
import zlib

import numpy
import torch
from torch import nn

from support.planted_kinds.kinds_of_library_objects import lost
from support.planted_kinds.planted_scene import PlantedScene, floats, instead, looked_at, planted, scene


def given(right, wrong, seen=None) -> PlantedScene:
    """A program that gives one thing of a tensor, and a compiler that gives another."""
    return scene(right, instead(wrong), floats(2, 3), seen=seen and (lambda result: seen(result)))


def by_value(result):
    return list(result)


# -- tensors -----------------------------------------------------------------------------------------------------------


@planted("forms")
def rows_are_stored_as_columns() -> PlantedScene:
    return given(lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc())


@planted("forms")
def a_zero_is_stored() -> PlantedScene:
    places = torch.tensor([[0, 1, 1], [1, 1, 2]])

    def of(*chosen):
        numbers = torch.tensor([1.0, 0.0, 2.0])
        return lambda x: torch.sparse_coo_tensor(places[:, chosen], numbers[list(chosen)], (2, 3)).coalesce()

    return given(of(0, 2), of(0, 1, 2))


@planted("forms")
def a_result_is_not_in_shared_memory() -> PlantedScene:
    return given(lambda x: (x * 2).share_memory_(), lambda x: x * 2, lambda y: y.is_shared())


def with_gradient_of(number):
    def program(x):
        y = (x * 2).requires_grad_()
        y.grad = torch.full_like(y, number)
        return y

    return program


@planted("forms")
def the_gradient_field_of_a_result_is_empty() -> PlantedScene:
    return given(with_gradient_of(1.0), lambda x: (x * 2).requires_grad_(), lambda y: y.grad is None)


@planted("forms")
def the_gradient_field_of_a_result_has_other_numbers() -> PlantedScene:
    return given(with_gradient_of(1.0), with_gradient_of(2.0), lambda y: y.grad.tolist())


def looked_up(sparse):
    places = torch.tensor([1, 2])
    return lambda weight: nn.functional.embedding(places, weight, sparse=sparse)


def layout_after_backward(weight):
    def seen(y):
        y.sum().backward()
        return weight.grad.layout

    return seen


@planted("gradients")
def a_sparse_gradient_is_dense() -> PlantedScene:
    weight = floats(5, 3).requires_grad_()
    return scene(looked_up(True), instead(looked_up(False)), weight, seen=layout_after_backward(weight))


@planted("gradients")
def a_dense_gradient_is_sparse() -> PlantedScene:
    weight = floats(5, 3).requires_grad_()
    return scene(looked_up(False), instead(looked_up(True)), weight, seen=layout_after_backward(weight))


@planted("aliasing", aspect="identity")
def a_result_that_comes_twice_is_its_own_view() -> PlantedScene:
    def program(x):
        y = x * 2
        return y, y

    def wrong(x):
        y = x * 2
        return y, y.view_as(y)

    return given(program, wrong, lambda pair: pair[0] is pair[1])


# -- arrays ------------------------------------------------------------------------------------------------------------


def masked(*mask):
    return lambda x: numpy.ma.masked_array([1, 2, 3], mask)


@planted("forms")
def a_mask_of_an_array_is_lost() -> PlantedScene:
    return given(masked(0, 1, 0), masked(0, 0, 0), lambda y: y.mask.tolist())


def protected(x):
    array = x.numpy() * 2
    array.setflags(write=False)
    return array


@planted("forms")
def an_array_may_be_written() -> PlantedScene:
    return given(protected, lambda x: x.numpy() * 2, lambda y: y.flags.writeable)


@planted("forms", aspect="placement")
def an_array_lies_by_rows() -> PlantedScene:
    return given(lambda x: numpy.asfortranarray(x.numpy() * 2), lambda x: x.numpy() * 2, lambda y: y.strides)


def of_objects(factor):
    def program(x):
        array = numpy.empty(2, object)
        array[0] = x * factor
        return array

    return program


@planted("forms")
def a_tensor_in_an_array_of_objects_is_another() -> PlantedScene:
    return given(of_objects(2), of_objects(3), lambda y: y[0].tolist())


@planted("forms")
def an_array_of_foreign_bytes_holds_others() -> PlantedScene:
    return given(lambda x: numpy.array([1, 2], ">i4"), lambda x: numpy.array([1, 3], ">i4"), by_value)


@planted("forms")
def an_item_of_a_structure_is_another() -> PlantedScene:
    form = numpy.dtype([("a", "f4"), ("b", "i4")])
    return given(lambda x: numpy.array([(1, 2)], form), lambda x: numpy.array([(1, 3)], form), lambda y: y.tolist())


@planted("forms")
def an_array_is_not_protected() -> PlantedScene:
    return lost(numpy.zeros(3), lambda a: a.setflags(write=False), lambda a: a.flags.writeable)


@planted("forms")
def an_item_is_not_masked() -> PlantedScene:
    array = numpy.ma.masked_array([1.0, 2.0, 3.0], [0, 0, 0])
    return lost(array, lambda a: a.__setitem__(1, numpy.ma.masked), lambda a: a.mask.tolist())


@planted("forms")
def an_object_is_not_put_into_an_array() -> PlantedScene:
    return lost(numpy.empty(2, object), lambda a: a.__setitem__(0, "a"), lambda a: a.tolist())


# -- what shows something else -----------------------------------------------------------------------------------------


@planted("forms")
def keys_come_back_of_another_dictionary() -> PlantedScene:
    return given(lambda x: {"a": 1}.keys(), lambda x: {"b": 1}.keys(), by_value)


@planted("forms")
def values_come_back_of_another_dictionary() -> PlantedScene:
    return given(lambda x: {"a": x * 2}.values(), lambda x: {"a": x * 3}.values(), lambda y: looked_at(list(y)))


@planted("forms")
def a_protected_dictionary_holds_another() -> PlantedScene:
    def of(factor):
        return lambda x: types.MappingProxyType({"a": x * factor})

    return given(of(2), of(3), lambda y: y["a"].tolist())


@planted("forms")
def a_pattern_has_found_another_place() -> PlantedScene:
    return given(lambda x: re.match("a(b)", "ab"), lambda x: re.match("(a)b", "ab"), lambda y: y.groups())


class Held:
    """Can be referred to weakly."""


@planted("forms")
def what_is_referred_to_is_gone() -> PlantedScene:
    held = Held()
    return given(lambda x: weakref.ref(held), lambda x: weakref.ref(Held()), lambda y: y() is None)


@planted("forms")
def a_future_has_another_result() -> PlantedScene:
    def of(factor):
        def program(x):
            future = torch.futures.Future()
            future.set_result(x * factor)
            return future

        return program

    return given(of(2), of(3), lambda y: y.value().tolist())


@planted("forms")
def a_key_that_is_a_tensor_is_another() -> PlantedScene:
    return given(lambda x: {x * 2: 1}, lambda x: {x * 3: 1}, lambda y: [key.tolist() for key in y])


class Pair(collections.namedtuple("Pair", "first")):
    """A named tuple with attributes."""


@planted("forms")
def an_attribute_of_a_named_tuple_is_lost() -> PlantedScene:
    def program(x):
        pair = Pair(x * 2)
        pair.extra = 1
        return pair

    return given(program, lambda x: Pair(x * 2), lambda y: hasattr(y, "extra"))


@planted("zeros", aspect="zero-sign")
def a_number_of_pythons_is_plus_zero() -> PlantedScene:
    return given(lambda x: -0.0, lambda x: 0.0, repr)


@planted("zeros", aspect="zero-sign")
def the_imaginary_part_of_a_number_is_plus_zero() -> PlantedScene:
    return given(lambda x: complex(0, -0.0), lambda x: complex(0, 0.0), repr)


# -- what a call changes -----------------------------------------------------------------------------------------------


@planted("forms")
def the_code_of_a_function_is_not_exchanged() -> PlantedScene:
    def one():
        return 1

    def two():
        return 2

    return lost(one, lambda f: setattr(f, "__code__", two.__code__), lambda f: f())


class Fields(ctypes.Structure):
    """Memory of C with a name."""

    _fields_ = (("a", ctypes.c_int),)


@planted("memory outside")
def a_field_of_a_structure_is_not_set() -> PlantedScene:
    return lost(Fields(1), lambda one: setattr(one, "a", 5), lambda one: one.a)


@planted("memory outside")
def an_item_of_an_array_of_c_is_not_set() -> PlantedScene:
    return lost((ctypes.c_int * 3)(), lambda one: one.__setitem__(1, 7), list)


@planted("memory outside")
def a_number_of_c_is_not_set() -> PlantedScene:
    return lost(ctypes.c_double(1), lambda one: setattr(one, "value", 7.0), lambda one: one.value)


@planted("memory outside")
def mapped_memory_is_not_written() -> PlantedScene:
    return lost(mmap.mmap(-1, 16), lambda one: one.__setitem__(0, 5), lambda one: one[:])


@planted("memory outside")
def a_hash_is_not_continued() -> PlantedScene:
    return lost(hashlib.sha1(), lambda one: one.update(b"a"), lambda one: one.hexdigest())


@planted("memory outside")
def a_packer_is_not_fed() -> PlantedScene:
    return lost(zlib.compressobj(), lambda one: one.compress(b"a" * 1000), lambda one: one.copy().flush())


@planted("memory outside")
def a_row_of_a_database_is_not_written() -> PlantedScene:
    base = sqlite3.connect(":memory:")
    base.execute("create table rows (a)")

    def count(one):
        return one.execute("select count(*) from rows").fetchall()

    return lost(base, lambda one: one.execute("insert into rows values (1)"), count)


@planted("memory outside")
def a_result_of_a_future_is_not_set() -> PlantedScene:
    return lost(concurrent.futures.Future(), lambda one: one.set_result(1), lambda one: one.done())


class Doubled(nn.Module):
    """A parametrisation."""

    def forward(self, weight):
        return weight * 2


@planted("modules")
def a_parametrisation_is_not_removed() -> PlantedScene:
    module = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(module, "weight", Doubled())
    return lost(
        module,
        lambda one: nn.utils.parametrize.remove_parametrizations(one, "weight"),
        nn.utils.parametrize.is_parametrized,
    )


# -- switches ----------------------------------------------------------------------------------------------------------


def not_set(change, read) -> PlantedScene:
    """A program that sets something for good, and a compiler that drops it."""

    def program(x):
        change()
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: read())


def attribute_not_set(holder, name, value) -> PlantedScene:
    return not_set(lambda: setattr(holder, name, value), lambda: getattr(holder, name))


@planted("modes")
def reduced_sums_of_products_are_not_forbidden() -> PlantedScene:
    return attribute_not_set(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False)


@planted("modes")
def short_products_of_convolutions_are_not_forbidden() -> PlantedScene:
    return attribute_not_set(torch.backends.cudnn, "allow_tf32", False)


@planted("modes")
def short_products_of_one_library_are_not_allowed() -> PlantedScene:
    return attribute_not_set(torch.backends.mkldnn.matmul, "fp32_precision", "bf16")


@planted("modes")
def a_library_is_not_told_to_repeat_itself() -> PlantedScene:
    return attribute_not_set(torch.backends.mkldnn, "deterministic", True)


@planted("modes")
def sparse_tensors_are_not_checked() -> PlantedScene:
    checks = torch.sparse.check_sparse_tensor_invariants
    return not_set(checks.enable, checks.is_enabled)


@planted("modes")
def backwards_still_use_threads() -> PlantedScene:
    threads = torch.autograd
    return not_set(lambda: torch._C._set_multithreading_enabled(False), threads.is_multithreading_enabled)


@planted("modes")
def a_level_of_forward_derivatives_is_not_entered() -> PlantedScene:
    forward = torch.autograd.forward_ad
    return not_set(forward.enter_dual_level, lambda: forward._current_level)


@planted("process")
def a_class_may_not_be_loaded() -> PlantedScene:
    return not_set(
        lambda: torch.serialization.add_safe_globals([Held]), lambda: Held in torch.serialization.get_safe_globals()
    )


@planted("process")
def memory_is_shared_in_another_way() -> PlantedScene:
    sharing = torch.multiprocessing
    return not_set(lambda: sharing.set_sharing_strategy("file_system"), sharing.get_sharing_strategy)


@planted("process")
def a_profile_function_is_not_set() -> PlantedScene:
    return not_set(lambda: sys.setprofile(lambda *_: None), lambda: sys.getprofile() is None)
