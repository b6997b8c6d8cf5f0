"""Numbers drawn from Python's `random`, alone and beside what breaks or fails."""

import random

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
OWN = random.Random(3)


def seeded(*extra):
    def make():
        random.seed(5)
        OWN.seed(7)
        return (A.clone(), *extra)

    return make


def states():
    return random.getstate(), OWN.getstate()


@program(make=seeded(), state=states)
def draws_in_arithmetic(a):
    b = a * random.random() + random.uniform(2, 3)
    return b - random.randint(1, 100) + random.choice([1, 2, 3]) * a, random.gauss(0, 1) * a, a + random.getrandbits(8)


@program(make=seeded(), state=states)
def draws_that_are_returned(a):
    return random.random(), random.randint(1, 6), random.choice((1.5, 2.5)), a + 1


@program(make=seeded(), state=states)
def a_generator_of_its_own(a):
    return a + OWN.random(), a * random.random(), a - OWN.randrange(10)


@program(make=seeded(), state=states)
def a_draw_that_nobody_reads(a):
    random.random()
    OWN.uniform(1, 2)
    return a + 1


@program(make=seeded(), state=states, graphs=2, breaks=1)
def a_branch_on_a_draw(a):
    b = a * random.random()
    if random.random() < 0.5:
        b = b + random.random()
    return b - 1


@program(make=seeded(), state=states, graphs=2, breaks=1)
def draws_around_a_break(a):
    b = a * random.random()
    print("between")
    return b * random.random()


@program(make=seeded(), state=states, breaks=1)
def a_draw_of_texts(a):
    return random.choice(["a", "b", "c"]), a + 1


@program(make=seeded(), state=states, breaks=2)
def draws_that_change_a_list(a):
    order = [1, 2, 3]
    random.shuffle(order)
    return order, a + random.random(), random.sample(order, 2)


@program(make=seeded(), state=states, graphs=0, breaks=2)
def seeded_inside(a):
    random.seed(9)
    return random.random(), random.getstate()[1][:3]


@program(make=seeded(torch.tensor([9])), state=states, then=((seeded(torch.tensor([1])), False),))
def a_graph_that_fails_on_data(a, where):
    b = a * random.random()
    try:
        return b[0][where]
    except IndexError:
        return "caught", b


@program(make=seeded(torch.tensor([True, False])), state=states, then=((seeded(torch.tensor([True, True])), False),))
def an_assertion_on_data(a, flags):
    b = a * random.random()
    if not flags.all():
        raise ValueError("not all")
    return b


@corpus.parametrize()
def test_program(program):
    check(program)
