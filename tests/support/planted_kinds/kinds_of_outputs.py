"""Results that are wrong: numbers, dtypes, shapes, strides, kinds of objects."""

import collections
import math

import torch

from support.planted_kinds.planted_scene import PlantedScene, floats, instead, on_result, planted, scene


@planted("outputs")
def one_element_of_many_is_off() -> PlantedScene:
    return scene(lambda x: x.sin() * 2, on_result(lambda y: y + torch.eye(1, 64)[0] * 1e-3), floats(64))


@planted("outputs")
def the_last_element_is_not_computed() -> PlantedScene:
    def wrong(y):
        y[-1] = 0
        return y

    return scene(lambda x: x.exp(), on_result(wrong), floats(17))


@planted("outputs")
def a_tail_is_dropped() -> PlantedScene:
    return scene(lambda x: x * 2, on_result(lambda y: y[:16]), floats(17))


@planted("outputs")
def rows_and_columns_are_swapped() -> PlantedScene:
    return scene(lambda x: x + 1, on_result(lambda y: y.t().contiguous()), floats(4, 4))


@planted("outputs")
def a_dtype_is_promoted() -> PlantedScene:
    return scene(lambda x: x * 2, on_result(torch.Tensor.double), floats(4))


@planted("outputs")
def a_number_promotes_a_half() -> PlantedScene:
    return scene(lambda x: x * 2.5, on_result(torch.Tensor.float), floats(4).half())


@planted("outputs")
def an_integer_is_narrowed() -> PlantedScene:
    return scene(lambda x: x.argsort(), on_result(torch.Tensor.int), floats(4))


@planted("outputs")
def a_truth_value_is_a_byte() -> PlantedScene:
    return scene(lambda x: x > 0, on_result(torch.Tensor.byte), floats(4))


@planted("outputs")
def channels_last_is_forgotten() -> PlantedScene:
    x = floats(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    return scene(lambda x: x * 2, on_result(lambda y: y.clone(memory_format=torch.contiguous_format)), x)


@planted("outputs")
def contiguous_is_forgotten() -> PlantedScene:
    return scene(lambda x: x.t().contiguous(), instead(lambda x: x.t().clone()), floats(3, 5))


@planted("outputs")
def strides_of_a_view_are_those_of_a_copy() -> PlantedScene:
    return scene(lambda x: (x * 2)[:, ::2], on_result(torch.Tensor.contiguous), floats(4, 6))


@planted("outputs")
def nan_becomes_zero() -> PlantedScene:
    return scene(lambda x: x / x, on_result(torch.nan_to_num), torch.tensor([0.0, 1.0, 2.0]))


@planted("outputs")
def infinity_becomes_the_largest_number() -> PlantedScene:
    return scene(lambda x: x / 0.0, on_result(torch.nan_to_num), torch.tensor([1.0, -1.0, 2.0]))


@planted("outputs")
def a_maximum_ignores_nan() -> PlantedScene:
    x = torch.tensor([1.0, math.nan, 3.0])
    return scene(lambda x: x.max(), instead(lambda x: torch.nan_to_num(x).max()), x)


@planted("outputs")
def halves_are_rounded_up() -> PlantedScene:
    return scene(lambda x: x.round(), instead(lambda x: (x + 0.5).floor()), torch.tensor([0.5, 1.5, 2.5]))


@planted("outputs")
def integer_division_truncates() -> PlantedScene:
    x = torch.tensor([-7, 7, -8])
    return scene(lambda x: x // 2, instead(lambda x: torch.div(x, 2, rounding_mode="trunc")), x)


@planted("outputs")
def a_remainder_has_the_other_sign() -> PlantedScene:
    x = torch.tensor([-7.5, 7.0, -8.0])
    return scene(lambda x: x % 3, instead(lambda x: torch.fmod(x, 3)), x)


@planted("outputs")
def an_overflow_saturates() -> PlantedScene:
    x = torch.tensor([100, 120], dtype=torch.int8)
    return scene(lambda x: x + x, instead(lambda x: (x.int() + x.int()).clamp(-128, 127).to(torch.int8)), x)


@planted("outputs")
def a_byte_is_signed() -> PlantedScene:
    x = torch.tensor([1, 200], dtype=torch.uint8)
    return scene(lambda x: x // 2, instead(lambda x: (x.view(torch.int8) // 2).view(torch.uint8)), x)


@planted("outputs")
def a_number_of_no_dimension_has_one() -> PlantedScene:
    return scene(lambda x: x.sum(), on_result(lambda y: y.reshape(1)), floats(4))


@planted("outputs")
def a_number_comes_back_as_a_tensor() -> PlantedScene:
    return scene(lambda x: x.shape[0], on_result(torch.tensor), floats(4))


@planted("outputs")
def a_tensor_comes_back_as_a_number() -> PlantedScene:
    return scene(lambda x: x.sum(), on_result(torch.Tensor.item), floats(4))


@planted("outputs")
def a_whole_number_comes_back_as_a_float() -> PlantedScene:
    return scene(lambda x: (x * 2, x.shape[0] * 2), on_result(lambda y: (y[0], float(y[1]))), floats(4))


@planted("outputs")
def a_truth_value_comes_back_as_a_number() -> PlantedScene:
    return scene(lambda x: (x * 2, x.dim() == 1), on_result(lambda y: (y[0], int(y[1]))), floats(4))


@planted("outputs")
def a_tuple_comes_back_as_a_list() -> PlantedScene:
    return scene(lambda x: (x + 1, x + 2), on_result(list), floats(4))


@planted("outputs")
def a_named_tuple_loses_its_names() -> PlantedScene:
    return scene(lambda x: x.max(0), on_result(tuple), floats(4, 2))


@planted("outputs")
def a_size_comes_back_as_a_tuple() -> PlantedScene:
    return scene(lambda x: (x * 2).shape, on_result(tuple), floats(4, 2))


@planted("outputs")
def two_outputs_are_swapped() -> PlantedScene:
    return scene(lambda x: (x + 1, x + 2), on_result(lambda y: (y[1], y[0])), floats(4))


@planted("outputs")
def a_tensor_is_replaced_by_none() -> PlantedScene:
    return scene(lambda x: (x + 1, x + 2), on_result(lambda y: (y[0], None)), floats(4))


@planted("outputs")
def an_empty_tensor_is_replaced_by_none() -> PlantedScene:
    return scene(lambda x: x[x > 5], on_result(lambda y: None if not len(y) else y), floats(4))


@planted("outputs")
def an_imaginary_part_is_lost() -> PlantedScene:
    return scene(lambda z: z * 2, on_result(lambda z: torch.complex(z.real, z.imag * 0)), floats(4) + 1j)


@planted("outputs")
def a_conjugation_is_lost() -> PlantedScene:
    return scene(lambda z: z.conj(), on_result(torch.Tensor.conj), floats(4) + 1j)


@planted("outputs")
def tiny_numbers_are_flushed() -> PlantedScene:
    x = torch.full((4,), 1e-40)
    return scene(lambda x: x * 2, on_result(lambda y: torch.where(y.abs() < 1e-37, 0.0, y)), x)


@planted("outputs")
def of_equal_elements_the_last_is_taken() -> PlantedScene:
    return scene(lambda x: x.argmax(), instead(lambda x: len(x) - 1 - x.flip(0).argmax()), torch.tensor([1, 3, 3, 0]))


@planted("outputs")
def a_stable_sort_is_not_stable() -> PlantedScene:
    def wrong(x):
        return torch.Size(x.shape)[0] - 1 - x.flip(0).sort(stable=True).indices

    return scene(lambda x: x.sort(stable=True).indices, instead(wrong), torch.tensor([1.0, 1.0, 0.0, 0.0]))


@planted("outputs")
def a_half_overflows_on_the_way() -> PlantedScene:
    x = torch.full((4,), 300.0).bfloat16()
    return scene(lambda x: x * x / 300, instead(lambda x: (x.half() * x.half() / 300).bfloat16()), x)


@planted("outputs")
def a_large_integer_goes_through_a_float() -> PlantedScene:
    x = torch.tensor([2**53 + 1, 2**24 + 1])
    return scene(lambda x: x + 0, instead(lambda x: x.double().long()), x)


@planted("outputs")
def a_sum_of_integers_is_narrow() -> PlantedScene:
    x = torch.tensor([2**31 - 1, 5], dtype=torch.int32)
    return scene(lambda x: x.sum(), instead(lambda x: x.sum(dtype=torch.int32).long()), x)


@planted("outputs")
def a_sparse_tensor_is_dense() -> PlantedScene:
    return scene(lambda x: x.to_sparse() * 2, on_result(torch.Tensor.to_dense), floats(3, 3))


@planted("outputs")
def a_sparse_tensor_is_coalesced() -> PlantedScene:
    def program(x):
        return torch.sparse_coo_tensor(torch.zeros(1, 2, dtype=torch.long), x, (3,))

    return scene(program, on_result(torch.Tensor.coalesce), floats(2), seen=lambda y: y.is_coalesced())


@planted("outputs")
def a_text_says_another_size() -> PlantedScene:
    return scene(lambda x: f"{tuple(x.shape)}", on_result(lambda text: text.replace("4", "s0")), floats(4))


@planted("outputs")
def a_float_is_off_in_its_last_digits() -> PlantedScene:
    return scene(lambda x: (x * 2, 0.1), on_result(lambda y: (y[0], 0.1 + 1e-9)), floats(4))


@planted("outputs")
def a_float_went_through_single_precision() -> PlantedScene:
    wrong = on_result(lambda y: (y[0], torch.tensor(y[1], dtype=torch.float32).item()))
    return scene(lambda x: (x * 2, 0.1), wrong, floats(4))


@planted("outputs")
def a_dictionary_has_another_order() -> PlantedScene:
    wrong = on_result(lambda y: dict(reversed(y.items())))
    return scene(lambda x: {"first": x + 1, "second": x + 2}, wrong, floats(4))


@planted("outputs")
def a_default_dictionary_is_plain() -> PlantedScene:
    return scene(lambda x: collections.defaultdict(list, a=x + 1), on_result(dict), floats(4))


@planted("outputs")
def a_default_dictionary_makes_other_things() -> PlantedScene:
    def wrong(y):
        y.default_factory = set
        return y

    def seen(y):
        return type(y["missing"]).__name__

    return scene(lambda x: collections.defaultdict(list, a=x + 1), on_result(wrong), floats(4), seen=seen)


@planted("outputs")
def a_deque_has_no_bound() -> PlantedScene:
    wrong = on_result(lambda y: collections.deque(y))
    return scene(lambda x: collections.deque([x + 1], maxlen=2), wrong, floats(4), seen=lambda y: y.maxlen)


@planted("outputs")
def a_function_comes_back_that_reads_another_tensor() -> PlantedScene:
    def program(x):
        y = x * 2
        return lambda: y + 1

    def wrong(x):
        y = x * 3
        return lambda: y + 1

    return scene(program, instead(wrong), floats(4), seen=lambda result: result().tolist())


@planted("outputs")
def a_batch_is_normalised_with_the_other_variance() -> PlantedScene:
    return scene(lambda x: x.std(0), instead(lambda x: x.std(0, correction=0)), floats(4, 2))


@planted("outputs")
def an_epsilon_is_left_out() -> PlantedScene:
    return scene(lambda x: x / (x.norm() + 1e-3), instead(lambda x: x / x.norm()), floats(4))


@planted("outputs")
def a_quantised_tensor_has_another_scale() -> PlantedScene:
    def program(x):
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)

    def wrong(x):
        return torch._make_per_tensor_quantized_tensor(program(x).int_repr(), 0.2, 0)

    return scene(program, instead(wrong), floats(4), seen=lambda y: y.dequantize().tolist())


@planted("outputs")
def a_tensor_is_on_the_meta_device() -> PlantedScene:
    return scene(lambda x: x * 2, on_result(lambda y: y.to("meta")), floats(4))


@planted("outputs", aspect="zero-sign")
def a_zero_has_the_other_sign() -> PlantedScene:
    return scene(lambda x: -x, instead(lambda x: 0 - x), torch.zeros(3), seen=lambda y: torch.signbit(y).tolist())
