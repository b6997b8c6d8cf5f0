"""What the function does besides its result: containers it fills, attributes it sets, what it prints or counts."""

import collections

import torch


class Window:
    def __init__(self, values):
        self.values = values


def test_nested_list_filled_in_order():
    """rows[0][i] depends on rows[0][i - 1], written one iteration earlier."""

    def fill(x):
        rows = [[1, 2, 3], [4, 5, 6]]
        for i in range(3):
            rows[0][i] = x if i == 0 else rows[0][i - 1] + 1
        return rows[0][-1]

    torch.compile(fill)(torch.arange(2.0))


def test_argument_list_grows():
    """Appending to a list that belongs to an argument object is visible to the caller."""

    def push(window, x):
        window.values.append(x.sum())
        return torch.stack(window.values)

    window = Window([])
    push = torch.compile(push)
    push(window, torch.ones(3))
    push(window, torch.ones(3))


def test_method_of_a_local_class_appends_to_a_closure():
    """A class made inside the function, whose method appends to a list outside."""
    log = []

    def work(x):
        class Helper:
            def touch(self):
                log.append(x.shape[0])

        Helper().touch()
        return x * 2

    run = torch.compile(work)
    run(torch.zeros(2))
    run(torch.zeros(2))


def test_method_of_a_class_made_outside_counts():
    """An object made inside, of a class made outside, counts in a dictionary."""
    state = {"calls": 0}

    class Helper:
        def touch(self):
            state["calls"] += 1

    def work(x):
        Helper().touch()
        return x + 1

    run = torch.compile(work)
    run(torch.zeros(2))
    run(torch.zeros(2))


def test_deque_drops_its_oldest():
    """A deque of two forgets the first of three."""
    history = collections.deque(maxlen=2)

    def push(x):
        history.append(x)
        return sum(history)

    run = torch.compile(push)
    for k in range(3):
        run(torch.full((2,), float(k)))


def test_dictionary_of_an_argument_is_filled():
    """The caller's dictionary holds the intermediate."""

    def work(x, kept):
        kept["sine"] = x.sin()
        return kept["sine"] + 1

    torch.compile(work)(torch.zeros(2), {})


def test_list_is_sorted_in_place():
    """A list of numbers is sorted, and stays so."""
    numbers = [3.0, 1.0, 2.0]

    def work(x):
        numbers.sort()
        return x * numbers[0]

    torch.compile(work)(torch.ones(2))


def test_generator_is_consumed():
    """Two of the three values of a generator are taken."""
    source = iter([1.0, 2.0, 3.0])

    def work(x):
        return x + next(source) * next(source)

    torch.compile(work)(torch.zeros(2))


def test_attribute_is_deleted():
    """The attribute is gone after the call."""
    box = Window([1.0])
    box.spare = 2.0

    def work(x):
        value = box.spare
        del box.spare
        return x * value

    torch.compile(work)(torch.ones(2))


def test_result_holds_the_argument_itself():
    """The returned list is the argument's own list."""

    def work(window, x):
        window.values.append(x)
        return window.values

    torch.compile(work)(Window([]), torch.ones(2))
