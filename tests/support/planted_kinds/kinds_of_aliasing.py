"""Memory: which results share it, what is written in place, and what a write is seen through."""

import gc
import weakref

import numpy
import torch

from support.planted_kinds.planted_scene import PlantedScene, and_then, floats, instead, leaf, on_result, planted, scene


def written(place=0):
    """A user writes into a result and looks at the argument, which the program's author has kept."""

    def seen_by(x):
        def seen(y):
            one = y if isinstance(y, torch.Tensor) else y[place]
            one.zero_()
            return x.tolist()

        return seen

    return seen_by


@planted("memory")
def a_view_is_a_copy() -> PlantedScene:
    x = floats(6)
    return scene(lambda x: x[1:3], on_result(torch.Tensor.clone), x, seen=written()(x))


@planted("memory")
def a_copy_is_a_view() -> PlantedScene:
    x = floats(6)
    return scene(lambda x: x[1:3].clone(), instead(lambda x: x[1:3]), x, seen=written()(x))


@planted("memory")
def the_argument_comes_back_as_a_copy() -> PlantedScene:
    x = floats(6)
    return scene(lambda x: x, on_result(torch.Tensor.clone), x, seen=lambda y: y is x)


@planted("memory", aspect="identity")
def the_argument_comes_back_as_a_view() -> PlantedScene:
    x = floats(6)
    return scene(lambda x: x, on_result(lambda y: y.view(6)), x, seen=lambda y: y is x)


@planted("memory", aspect="identity")
def a_view_is_the_argument_itself() -> PlantedScene:
    x = floats(6)
    return scene(lambda x: x.view(6), instead(lambda x: x), x, seen=lambda y: y is x)


@planted("memory")
def two_results_are_one_object() -> PlantedScene:
    def seen(y):
        y[0].add_(1)
        return y[1].tolist()

    return scene(lambda x: (x * 2, x * 2), on_result(lambda y: (y[0], y[0])), floats(4), seen=seen)


@planted("memory")
def one_result_twice_is_two_objects() -> PlantedScene:
    def program(x):
        y = x * 2
        return y, y

    return scene(program, on_result(lambda y: (y[0], y[0].clone())), floats(4), seen=lambda y: y[0] is y[1])


@planted("memory")
def two_results_share_memory() -> PlantedScene:
    def seen(y):
        y[0].add_(1)
        return y[1].tolist()

    return scene(lambda x: (x * 2, x * 2), on_result(lambda y: (y[0], y[0].view(4))), floats(4), seen=seen)


@planted("memory")
def a_result_and_its_view_are_apart() -> PlantedScene:
    def program(x):
        y = x * 2
        return y, y[1:]

    def seen(y):
        y[0].zero_()
        return y[1].tolist()

    return scene(program, on_result(lambda y: (y[0], y[1].clone())), floats(4), seen=seen)


@planted("memory")
def two_results_overlap_by_one_element() -> PlantedScene:
    def wrong(x):
        memory = (x * 2).repeat(2)[:7]
        return torch.as_strided(memory, (4,), (1,)), torch.as_strided(memory, (4,), (1,), 3)

    def program(x):
        y, z = wrong(x)
        return y.clone(), z.clone()

    def seen(y):
        y[0].zero_()
        return y[1].tolist()

    return scene(program, instead(wrong), floats(4), seen=seen)


@planted("memory")
def a_result_shares_memory_with_a_weight() -> PlantedScene:
    weight = floats(4)

    def seen(y):
        y.zero_()
        return weight.tolist()

    return scene(lambda x: weight * 1, instead(lambda x: weight.view(4)), floats(4), seen=seen)


@planted("memory")
def a_write_is_lost() -> PlantedScene:
    x = floats(4)
    return scene(lambda x: x.add_(1) * 2, instead(lambda x: (x + 1) * 2), x, seen=lambda y: x.tolist())


@planted("memory")
def a_write_happens_twice() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.add_(1)

    return scene(program, and_then(program), x, seen=lambda y: x.tolist())


@planted("memory")
def a_write_through_a_view_is_lost() -> PlantedScene:
    x = floats(4)

    def program(x):
        x[1:3].mul_(5)
        return x.sum()

    def wrong(x):
        y = x.clone()
        y[1:3].mul_(5)
        return y.sum()

    return scene(program, instead(wrong), x, seen=lambda y: x.tolist())


@planted("memory")
def a_write_goes_past_its_view() -> PlantedScene:
    x = floats(6)

    def program(view):
        view.mul_(2)

    return scene(program, and_then(lambda view: x[4:5].mul_(2)), x[1:4], seen=lambda y: x.tolist())


@planted("memory")
def a_write_into_a_global_tensor_is_lost() -> PlantedScene:
    buffer = torch.zeros(4)

    def program(x):
        buffer.copy_(x)
        return x * 2

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: buffer.tolist())


@planted("memory")
def a_write_into_an_array_is_lost() -> PlantedScene:
    array = numpy.zeros(4)

    def program(x, array):
        array[1] = 7.0
        return x * 2

    return scene(program, instead(lambda x, array: x * 2), floats(4), array, seen=lambda y: array.tolist())


@planted("memory")
def an_array_of_a_tensor_is_a_copy() -> PlantedScene:
    x = floats(4)

    def seen(y):
        y[0] = 9.0
        return x.tolist()

    return scene(lambda x: x.numpy(), on_result(numpy.copy), x, seen=seen)


@planted("memory")
def a_tensor_of_an_array_is_a_copy() -> PlantedScene:
    array = numpy.zeros(4)

    def seen(y):
        y[0] = 9.0
        return array.tolist()

    return scene(torch.from_numpy, on_result(torch.Tensor.clone), array, seen=seen)


@planted("memory")
def a_write_into_a_result_given_as_out_is_lost() -> PlantedScene:
    out = torch.zeros(4)
    return scene(
        lambda x, out: torch.mul(x, 2, out=out),
        instead(lambda x, out: x * 2),
        floats(4),
        out,
        seen=lambda y: (out.tolist(), y is out),
    )


@planted("memory")
def a_result_given_as_out_is_not_resized() -> PlantedScene:
    out = torch.zeros(0)

    def wrong(x, out):
        return torch.mul(x, 2)

    return scene(lambda x, out: torch.mul(x, 2, out=out), instead(wrong), floats(4), out, seen=lambda y: out.shape)


@planted("memory")
def an_in_place_change_of_shape_is_lost() -> PlantedScene:
    x = floats(2, 3)

    def program(x):
        x.t_()

    return scene(program, instead(lambda x: None), x, seen=lambda y: tuple(x.shape))


@planted("memory")
def a_resize_is_lost() -> PlantedScene:
    x = floats(6)

    def program(x):
        x.resize_(3)

    return scene(program, instead(lambda x: None), x, seen=lambda y: tuple(x.shape))


@planted("memory")
def new_data_is_copied_instead_of_set() -> PlantedScene:
    x, new = floats(4), torch.ones(4)

    def program(x, new):
        x.set_(new)

    def seen(y):
        new.zero_()
        return x.tolist()

    return scene(program, instead(lambda x, new: (x.copy_(new), None)[1]), x, new, seen=seen)


@planted("memory")
def data_of_a_parameter_is_copied_instead_of_set() -> PlantedScene:
    weight, new = torch.nn.Parameter(floats(4)), torch.ones(4)

    def program(weight, new):
        weight.data = new

    def wrong(weight, new):
        weight.data.copy_(new)

    def seen(y):
        new.zero_()
        return weight.tolist()

    return scene(program, instead(wrong), weight, new, seen=seen)


@planted("memory")
def requires_grad_of_an_argument_is_not_set() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.requires_grad_()
        return x.detach() * 2

    return scene(program, instead(lambda x: x.detach() * 2), x, seen=lambda y: x.requires_grad)


@planted("memory")
def an_argument_is_not_detached() -> PlantedScene:
    x = leaf(4) * 2

    def program(x):
        x.detach_()

    return scene(program, instead(lambda x: None), x, seen=lambda y: x.requires_grad)


@planted("memory")
def a_write_has_no_history() -> PlantedScene:
    x, w = floats(4), leaf(4)

    def program(x, w):
        x.mul_(w)

    def wrong(x, w):
        x.mul_(w.detach())

    return scene(program, instead(wrong), x, w, seen=lambda y: x.requires_grad)


@planted("memory", aspect="versions")
def a_write_is_not_counted() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.add_(1)

    def wrong(x):
        x.data.add_(1)

    return scene(program, instead(wrong), x, seen=lambda y: x._version > 0)


@planted("memory")
def an_attribute_of_a_tensor_is_lost() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.note = "seen"
        return x * 2

    return scene(program, instead(lambda x: x * 2), x, seen=lambda y: getattr(x, "note", None))


@planted("memory")
def an_attribute_of_a_result_is_lost() -> PlantedScene:
    def program(x):
        y = x * 2
        y.note = "seen"
        return y

    return scene(program, instead(lambda x: x * 2), floats(4), seen=lambda y: getattr(y, "note", None))


@planted("memory")
def a_parameter_comes_back_as_a_tensor() -> PlantedScene:
    def program(x):
        return torch.nn.Parameter(x * 2)

    def wrong(x):
        return (x * 2).requires_grad_()

    return scene(program, instead(wrong), floats(4), seen=lambda y: type(y).__name__)


@planted("memory")
def an_expanded_result_takes_memory() -> PlantedScene:
    return scene(lambda x: x.expand(3, 4), on_result(torch.Tensor.contiguous), floats(4), seen=lambda y: y.stride())


@planted("memory", aspect="placement")
def a_result_starts_elsewhere_in_its_memory() -> PlantedScene:
    def wrong(x):
        return torch.cat([x.new_zeros(2), x * 2])[2:]

    return scene(lambda x: x * 2, instead(wrong), floats(4), seen=lambda y: y.storage_offset())


@planted("memory", aspect="placement")
def a_result_keeps_a_large_memory() -> PlantedScene:
    def wrong(x):
        return torch.cat([x * 2, x.new_zeros(1000)])[:4]

    return scene(lambda x: x * 2, instead(wrong), floats(4), seen=lambda y: y.untyped_storage().nbytes())


@planted("memory")
def an_object_that_was_dropped_lives_on() -> PlantedScene:
    class Held:
        """Can be referred to weakly."""

    holder = [Held()]
    weak = weakref.ref(holder[0])
    kept = []

    def program(x, holder):
        holder.clear()
        return x * 2

    def compiler(program):
        def wrong(x, holder):
            kept.extend(holder)
            return program(x, holder)

        return wrong

    def seen(y):
        gc.collect()
        return weak() is None

    return scene(program, compiler, floats(4), holder, seen=seen)


@planted("memory")
def a_storage_is_not_freed() -> PlantedScene:
    x = floats(4)

    def program(x):
        x.untyped_storage().resize_(0)

    return scene(program, instead(lambda x: None), x, seen=lambda y: x.untyped_storage().nbytes())
