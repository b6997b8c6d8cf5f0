"""Transforms, checkpoints and conversions: programs that are more than one pass over tensors."""

import copy
import functools
import math
import typing

import numpy
import torch

from support.planted_kinds.planted_scene import (
    PlantedScene,
    after_backward,
    and_then,
    floats,
    instead,
    leaf,
    on_result,
    planted,
    scene,
)


class Pair(typing.NamedTuple):
    """Two results by name."""

    first: torch.Tensor
    second: int


class OtherPair(typing.NamedTuple):
    """Two results by the same names."""

    first: torch.Tensor
    second: int


def square_sum(x):
    return (x * x).sum()


@planted("transforms")
def a_gradient_function_forgets_a_factor() -> PlantedScene:
    return scene(torch.func.grad(square_sum), instead(lambda x: x * 1), floats(4))


@planted("transforms")
def a_jacobian_is_transposed() -> PlantedScene:
    def program(x):
        return torch.func.jacrev(lambda y: torch.stack([y[0] * y[1], y[0]]))(x)

    return scene(program, on_result(lambda y: y.t().contiguous()), floats(2))


@planted("transforms")
def a_batched_function_sees_one_row() -> PlantedScene:
    return scene(torch.func.vmap(square_sum), on_result(lambda y: y[:1].expand_as(y).clone()), floats(3, 2))


@planted("transforms")
def a_batch_is_put_at_the_wrong_place() -> PlantedScene:
    def program(x):
        return torch.func.vmap(lambda row: row * 2, out_dims=1)(x)

    return scene(program, instead(lambda x: x * 2), floats(3, 3))


@planted("transforms")
def a_hessian_is_its_diagonal() -> PlantedScene:
    def program(x):
        return torch.func.hessian(lambda y: y.prod())(x)

    return scene(program, on_result(lambda y: torch.diag(torch.diag(y))), floats(3) + 3)


@planted("transforms")
def a_product_with_a_tangent_lacks_a_part() -> PlantedScene:
    def program(x):
        return torch.func.jvp(lambda y: y * y, (x,), (torch.ones(4),))

    return scene(program, on_result(lambda y: (y[0], y[1] / 2)), floats(4))


@planted("transforms")
def a_checkpoint_computes_with_other_random_numbers() -> PlantedScene:
    x = leaf(64)

    def block(x):
        return torch.nn.functional.dropout(x, 0.5) * x

    def program(x):
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)

    def wrong(x):
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)

    return scene(program, instead(wrong), x, seen=after_backward(x))


@planted("transforms")
def a_checkpoint_repeats_an_effect() -> PlantedScene:
    held: list[int] = []
    x = leaf(4)

    def program(x, held):
        held.append(1)
        return x.sin()

    return scene(program, and_then(lambda x, held: held.append(1)), x, held, seen=lambda y: list(held))


@planted("transforms")
def a_functional_call_leaves_its_weights() -> PlantedScene:
    module = torch.nn.Linear(2, 2)
    weights = {"weight": torch.zeros(2, 2), "bias": torch.zeros(2)}

    def program(x, module):
        return torch.func.functional_call(module, weights, (x,))

    def change(x, module):
        with torch.no_grad():
            module.weight.zero_()

    return scene(program, and_then(change), floats(1, 2), module, seen=lambda y: bool(module.weight.any()))


@planted("conversions")
def an_array_has_another_dtype() -> PlantedScene:
    return scene(lambda x: (x * 2).numpy(), on_result(lambda y: y.astype(numpy.float64)), floats(4))


@planted("conversions")
def an_array_holds_other_numbers() -> PlantedScene:
    return scene(lambda x: (x * 2).numpy(), on_result(lambda y: y + 1e-2), floats(4))


@planted("conversions")
def an_array_of_texts_holds_others() -> PlantedScene:
    return scene(lambda x: numpy.array(["a", "b"]), on_result(lambda y: y[::-1].copy()), floats(4))


@planted("conversions")
def a_scalar_of_numpy_comes_back_as_pythons() -> PlantedScene:
    return scene(lambda x: (x * 2).numpy()[0], on_result(float), floats(4))


@planted("conversions")
def a_list_of_numbers_is_one_shorter() -> PlantedScene:
    return scene(lambda x: (x * 2).tolist(), on_result(lambda y: y[:-1]), floats(4))


@planted("conversions")
def a_list_of_numbers_holds_texts() -> PlantedScene:
    return scene(lambda x: (x * 2).tolist(), on_result(lambda y: [str(each) for each in y]), floats(4))


@planted("conversions")
def a_named_tuple_is_of_another_class() -> PlantedScene:
    return scene(lambda x: Pair(x * 2, 1), on_result(lambda y: OtherPair(*y)), floats(4))


@planted("conversions")
def a_key_of_a_result_is_another() -> PlantedScene:
    return scene(lambda x: {(0, 1): x * 2}, on_result(lambda y: {(1, 0): y[0, 1]}), floats(4))


@planted("conversions")
def a_number_that_is_not_one_is_zero() -> PlantedScene:
    return scene(lambda x: (x * 2, math.nan), on_result(lambda y: (y[0], 0.0)), floats(4))


@planted("conversions")
def a_complex_number_is_conjugated() -> PlantedScene:
    return scene(lambda x: (x * 2, 1 + 2j), on_result(lambda y: (y[0], 1 - 2j)), floats(4))


@planted("conversions")
def a_slice_has_another_end() -> PlantedScene:
    return scene(lambda x: (x * 2, slice(0, 4)), on_result(lambda y: (y[0], slice(0, 3))), floats(4))


@planted("conversions")
def a_set_lacks_a_member() -> PlantedScene:
    return scene(lambda x: {1, 2, x.dim()}, on_result(lambda y: y - {2}), floats(4))


@planted("conversions")
def a_nested_result_is_flat() -> PlantedScene:
    return scene(lambda x: [[x * 2], [x * 3]], on_result(lambda y: [y[0][0], y[1][0]]), floats(4))


@planted("conversions")
def a_cast_saturates() -> PlantedScene:
    def wrong(x):
        return x.clamp(-127, 127).to(torch.int8)

    return scene(lambda x: x.to(torch.int8), instead(wrong), torch.tensor([128, 300, -129]))


@planted("conversions")
def a_cast_rounds() -> PlantedScene:
    return scene(lambda x: x.long(), instead(lambda x: x.round().long()), torch.tensor([1.6, -1.6]))


@planted("conversions")
def a_deep_copy_is_none() -> PlantedScene:
    held = [[1]]

    def seen(y):
        y[0].append(2)
        return held[0]

    return scene(lambda x, held: copy.deepcopy(held), instead(lambda x, held: list(held)), floats(4), held, seen=seen)


@planted("conversions")
def a_method_comes_back_of_another_object() -> PlantedScene:
    first, second = torch.nn.Linear(2, 3), torch.nn.Linear(2, 4)

    def program(first, second):
        return first.forward

    def seen(y):
        return y(floats(1, 2)).shape[1]

    return scene(program, instead(lambda first, second: second.forward), first, second, seen=seen)


@planted("conversions")
def a_partial_function_is_of_another_function() -> PlantedScene:
    wrong = instead(lambda x: functools.partial(min, 3))
    return scene(lambda x: functools.partial(max, 3), wrong, floats(4), seen=lambda y: y(5))
