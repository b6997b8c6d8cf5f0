"""Random numbers: which are drawn, from which generator, and where each generator stands afterwards."""

import random

import numpy
import torch

from support.planted_kinds.planted_scene import PlantedScene, and_then, floats, instead, planted, scene


def twice(x):
    return x * 2


def next_numbers(*given):
    return random.random(), float(numpy.random.rand()), torch.rand(1).item()


@planted("random state")
def torch_draws_once_more() -> PlantedScene:
    return scene(lambda x: x + torch.rand(4), and_then(lambda x: torch.rand(1)), floats(4), seen=next_numbers)


@planted("random state")
def python_draws_once_more() -> PlantedScene:
    return scene(lambda x: x + random.random(), and_then(lambda x: random.random()), floats(4), seen=next_numbers)


@planted("random state")
def numpy_draws_once_more() -> PlantedScene:
    change = and_then(lambda x: numpy.random.rand())
    return scene(lambda x: x + float(numpy.random.rand()), change, floats(4), seen=next_numbers)


@planted("random state")
def numbers_are_right_and_the_state_stands_still() -> PlantedScene:
    def wrong(x):
        state = torch.get_rng_state()
        y = x + torch.rand(4)
        torch.set_rng_state(state)
        return y

    return scene(lambda x: x + torch.rand(4), instead(wrong), floats(4), seen=next_numbers)


@planted("random state")
def the_second_draw_is_the_first_again() -> PlantedScene:
    def wrong(x):
        drawn = torch.rand(4)
        torch.rand(4)
        return x + drawn + drawn

    return scene(lambda x: x + torch.rand(4) + torch.rand(4), instead(wrong), floats(4))


@planted("random state")
def two_draws_are_swapped() -> PlantedScene:
    def wrong(x):
        second, first = torch.rand(4), torch.rand(4)
        return x * first + second

    return scene(lambda x: x * torch.rand(4) + torch.rand(4), instead(wrong), floats(4))


@planted("random state")
def the_seed_of_torch_is_not_set() -> PlantedScene:
    def program(x):
        torch.manual_seed(5)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=next_numbers)


@planted("random state")
def the_seed_of_python_is_not_set() -> PlantedScene:
    def program(x):
        random.seed(5)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=next_numbers)


@planted("random state")
def the_seed_of_numpy_is_not_set() -> PlantedScene:
    def program(x):
        numpy.random.seed(5)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=next_numbers)


@planted("random state")
def a_generator_of_torch_is_not_used() -> PlantedScene:
    generator = torch.Generator().manual_seed(3)

    def wrong(x, generator):
        return x + torch.rand(4)

    def seen(y):
        return torch.rand(1, generator=generator).item()

    return scene(
        lambda x, generator: x + torch.rand(4, generator=generator), instead(wrong), floats(4), generator, seen=seen
    )


@planted("random state")
def a_generator_in_a_closure_is_advanced_once_more() -> PlantedScene:
    generator = torch.Generator().manual_seed(3)

    def program(x):
        return x + torch.rand(4, generator=generator)

    def seen(y):
        return torch.rand(1, generator=generator).item()

    return scene(program, and_then(lambda x: torch.rand(1, generator=generator)), floats(4), seen=seen)


@planted("random state")
def a_generator_of_numpy_is_advanced_once_more() -> PlantedScene:
    generator = numpy.random.default_rng(3)

    def program(x):
        return x + float(generator.random())

    change = and_then(lambda x: generator.random())
    return scene(program, change, floats(4), seen=lambda y: float(generator.random()))


@planted("random state")
def a_bit_generator_of_numpy_is_advanced() -> PlantedScene:
    bits = numpy.random.PCG64(3)

    def program(x, bits):
        return x + int(bits.random_raw() % 7)

    change = and_then(lambda x, bits: bits.advance(1))
    return scene(program, change, floats(4), bits, seen=lambda y: int(bits.random_raw()))


@planted("random state")
def an_old_generator_of_numpy_is_advanced_once_more() -> PlantedScene:
    generator = numpy.random.RandomState(3)

    def program(x):
        return x + float(generator.rand())

    change = and_then(lambda x: generator.rand())
    return scene(program, change, floats(4), seen=lambda y: float(generator.rand()))


@planted("random state")
def a_second_gaussian_number_is_forgotten() -> PlantedScene:
    """Python's generator keeps one number of each pair for the next call."""

    def program(x):
        return x + random.gauss(0, 1)

    def wrong(x):
        y = x + random.gauss(0, 1)
        version, state, _ = random.getstate()
        random.setstate((version, state, None))
        return y

    return scene(program, instead(wrong), floats(4), seen=lambda y: random.gauss(0, 1))


@planted("random state")
def a_generator_of_python_is_advanced_once_more() -> PlantedScene:
    generator = random.Random(3)

    def program(x):
        return x + generator.random()

    change = and_then(lambda x: generator.random())
    return scene(program, change, floats(4), seen=lambda y: generator.random())


@planted("random state")
def the_seed_of_a_generator_says_another() -> PlantedScene:
    generator = torch.Generator().manual_seed(3)

    def program(x, generator):
        return x + torch.rand(4, generator=generator)

    def wrong(x, generator):
        y = program(x, generator)
        state = generator.get_state()
        generator.manual_seed(3)
        torch.rand(8, generator=generator)
        del state
        return y

    def seen(y):
        return torch.rand(1, generator=generator).item()

    return scene(program, instead(wrong), floats(4), generator, seen=seen)


@planted("random state")
def a_shuffle_is_another() -> PlantedScene:
    held = list(range(20))

    def program(x, held):
        random.shuffle(held)
        return x * 2

    def wrong(x, held):
        state = random.getstate()
        random.shuffle(held)
        random.setstate(state)
        random.shuffle(list(range(20)))
        held.sort()
        return x * 2

    return scene(program, instead(wrong), floats(4), held, seen=lambda y: list(held))


@planted("random state")
def a_mask_is_the_same_at_every_call() -> PlantedScene:
    def compiler(program):
        found = []

        def wrong(x):
            found.append(program(x))
            return found[0].clone()

        return wrong

    x = floats(40)
    return scene(lambda x: torch.nn.functional.dropout(x, 0.5), compiler, calls=[(x,), (x,)])


@planted("random state")
def a_fork_of_the_generator_leaks() -> PlantedScene:
    def program(x):
        with torch.random.fork_rng([]):
            torch.manual_seed(1)
            return x + torch.rand(4)

    def wrong(x):
        torch.manual_seed(1)
        return x + torch.rand(4)

    return scene(program, instead(wrong), floats(4), seen=next_numbers)
