"""The generators are the program's again, in whatever order threads begin and end what they compile."""

import itertools
import random
import threading

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.graph.effects.shared_generator import (
    demand_untouched_generator,
    kept_generators,
    watched_generator,
)

BLOCKS = [kept_generators, watched_generator]
ORDERS = sorted(set(itertools.permutations(["one", "one", "other", "other"])))


class Steps(threading.Thread):
    """A thread that enters a block and leaves it when it is told to."""

    def __init__(self, block):
        super().__init__()
        self.told, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.block, self.failed = block, None
        self.start()

    def run(self):
        self.told.acquire()
        try:
            with self.block():
                self.done.release()
                self.told.acquire()
                if self.block is watched_generator:
                    demand_untouched_generator()
        except Exception as error:
            self.failed = error
        self.done.release()

    def step(self):
        self.told.release()
        self.done.acquire()


@pytest.mark.parametrize(
    "blocks",
    list(itertools.product(BLOCKS, BLOCKS)),
    ids=lambda pair: pair[0].__name__[:4] + "-" + pair[1].__name__[:4],
)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_two_threads_leave_the_state_in_any_order(order, blocks):
    torch.manual_seed(3)
    random.seed(4)
    expected = torch.get_rng_state(), random.getstate()
    threads = {"one": Steps(blocks[0]), "other": Steps(blocks[1])}
    for name in order:
        threads[name].step()
    assert torch.equal(torch.get_rng_state(), expected[0])
    assert random.getstate() == expected[1]
    assert [thread.failed for thread in threads.values()] == [None, None]


def test_a_block_in_a_block_keeps_the_seed():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with kept_generators(), watched_generator():
        with watched_generator():
            demand_untouched_generator()
        demand_untouched_generator()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_program_that_seeds_is_seen_and_its_seed_undone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    with watched_generator():
        torch.manual_seed(5)
        with pytest.raises(Unsupported, match="seeds the generator"):
            demand_untouched_generator()
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_that_compile_at_once_draw_nothing():
    def program(x, number):
        return x * number

    torch.manual_seed(0)
    expected = torch.rand(1)
    compiled = plumbline.compile(program, backend="aot_eager")
    torch.manual_seed(0)
    threads = [
        threading.Thread(target=lambda: [compiled(torch.arange(2.0), number) for number in (1, 2, 3)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(torch.rand(1), expected)
