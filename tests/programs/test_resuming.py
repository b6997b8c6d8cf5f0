"""Graph breaks in every position: operands, callees, loops, blocks, and what is alive when the program goes on."""

import random
import time

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
SEEN = []


def opaque(x):
    time.sleep(0)
    return x + 1


@torch.compiler.disable
def disabled(x):
    return x * 3


@torch.compiler.disable
def opaque_break():
    pass


def prints(x, word):
    y = x * 2
    print(word)
    return y + 1


def decides(x):
    if x.sum() > 0:
        return torch.relu(x)
    return torch.tanh(x)


def two_deep(x):
    y = prints(x, "deep")
    return y * 2


class Noisy:
    def __init__(self):
        self.n = 0

    def __call__(self, x):
        self.n += 1
        print("noisy", self.n)
        return x + self.n

    @property
    def loud(self):
        print("loud")
        return 2.0

    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, *error):
        print("exit")

    def __getitem__(self, i):
        print("item", i)
        return i

    def __add__(self, other):
        print("add")
        return other


@program(A, graphs=2, breaks=1)
def break_as_an_operand(a):
    return (a + 1) * float((a * 2).sum()) + (a - 1)


@program(A, graphs=2, breaks=1)
def break_between_arguments(a):
    return torch.where(a > 0, a * 2, a * a.max().item())


@program(A, graphs=2, breaks=1)
def break_in_a_keyword(a):
    return torch.add(a, a * 2, alpha=int((a > 0).sum()))


@program(A, graphs=2, breaks=1)
def break_in_an_index(a):
    return (a * 2)[int((a > 0).any())] + 1


@program(A, graphs=2, breaks=1)
def break_in_a_subscript_store(a):
    d, b = {}, a * 2
    d[b.sum().item() > 0] = b
    return [v + 1 for v in d.values()]


@program(A, graphs=2, breaks=1)
def break_in_an_attribute_store(a):
    n = Noisy()
    n.n = (a * 2).sum().item()
    return a * n.n


@program(A, graphs=2, breaks=1)
def break_in_a_formatted_string(a):
    b = a * 2
    s = f"mean {b.mean().item():.2f} of {b.shape[0]}"
    return b + 1, s


@program(A, graphs=2, breaks=1)
def break_in_a_return_tuple(a):
    return a + 1, (a * 2).sum().item(), a * 3


@program(A, graphs=2, breaks=1)
def break_in_a_default(a):
    b = a * 2

    def f(x, k=b.sum().item()):
        return x * k

    return f(a)


@program(A, graphs=3, breaks=2)
def conversions(a):
    b = a * 2
    n = int(b.sum())
    return b + n + bool(b.any())


@program(A, graphs=2, breaks=1)
def conditional_expression_on_data(a):
    b = a * 2
    return b + 1 if b.sum() > 5 else b - 1


@program(A, graphs=2, breaks=1)
def negated_data_condition(a):
    b = a * 2
    if not b.any():
        return b
    return b + 1


@program(A, graphs=2, breaks=1)
def data_condition_in_an_and(a):
    b = a * 2
    if a.dim() == 2 and b.sum() > -100 and a.shape[0] == 2:
        return b + 1
    return b


@program(A, graphs=2, breaks=1, changed=lambda: (A - 5,))
def both_branches_are_compiled(a):
    if a.sum() > -1:
        return a * 2
    return a * 3


@program(A, graphs=3, breaks=2)
def nested_data_branches(a):
    b = a * 2
    if b.sum() > -100:
        c = b + 1
        if c.sum() > -100:
            return c * b
    return b


@program(A, graphs=2, breaks=1)
def membership_of_data(a):
    b = a * 2
    return b + 1 if b.sum().item() in (1, 2) else b - 1


@program(A, graphs=2, breaks=1)
def disabled_callee(a):
    return disabled(a * 2) + 1


@program(A, graphs=2, breaks=1)
def callee_with_its_own_break(a):
    return prints(a, "x") * 3


@program(A, graphs=2, breaks=1)
def callee_two_deep(a):
    return two_deep(a + 1) - 1


@program(A, graphs=3, breaks=2)
def two_callees_with_breaks(a):
    return prints(a, "first") * decides(a)


@program(A, graphs=2, breaks=1)
def callee_decides(a):
    b = decides(a + 1)
    return b * 2


@program(A, graphs=2, breaks=1)
def method_with_effects(a):
    n = Noisy()
    b = a * 2
    return n(b)


@program(A, graphs=2, breaks=1)
def property_with_effects(a):
    b = a * 2
    return b * Noisy().loud


@program(A, graphs=2, breaks=1)
def operator_with_effects(a):
    b = a * 2
    return Noisy() + b + 1


@program(A, graphs=2, breaks=1)
def subscript_with_effects(a):
    b = a * 2
    return b * Noisy()[3]


@program(A, graphs=3, breaks=2)
def block_with_effects(a):
    b = a * 2
    with Noisy():
        c = b + 1
    return c * 2


@program(A, graphs=2, breaks=1)
def lambda_with_effects(a):
    f = lambda x: print("in lambda") or x + 1  # noqa: E731 - what is tested
    return f(a * 2)


@program(A, stable=False, graphs=2, breaks=4)
def comprehension_with_effects(a):
    return [print(i) or a * i for i in range(2)]


@program(A, graphs=2, breaks=1)
def map_with_effects(a):
    b = a * 2
    n = len(list(map(print, [1, 2])))
    return b * n


@program(A, graphs=2, breaks=1)
def sort_with_data(a):
    b = a * 2
    order = sorted([0, 1], key=lambda i: b[i].sum().item())
    return b[order[0]] + 1


@program(A, graphs=2, breaks=1)
def star_call_with_data(a):
    values = (a * 2).tolist()
    return torch.tensor([sum(row) for row in values]) + 1, dict(zip("ab", values))


@program(A, graphs=3, breaks=4)
def loop_with_a_print_each_time(a):
    for i in range(3):
        a = a * 2 + i
        print(i)
    return a


@program(A, graphs=3, breaks=4)
def break_on_the_second_round(a):
    for i in range(4):
        a = a * 2
        if i == 1:
            print("second")
    return a


@program(A)
def loop_until_data_says(a):
    n = 0
    while True:
        a = a + 1
        n += 1
        if a.sum() > 10:
            break
    return a, n


@program(make=lambda: (A.clone(), [1, 2, 3]), graphs=2, breaks=1)
def list_lives_across(a, xs):
    ys = [a * 2, xs]
    print("here")
    ys.append(ys[0] + 1)
    return ys, xs is ys[1]


@program(A, graphs=2, breaks=1)
def many_locals_live_across(a):
    b, c, d, e = a + 1, [a + 2], {"k": a + 3}, (a + 4, "s")
    print("here")
    return b + c[0] + d["k"] + e[0], e[1]


@program(A, graphs=2, breaks=1)
def unread_locals_do_not_live_across(a):
    b, c = a + 1, a + 2
    print(c is None)
    return b * 2


@program(A, graphs=2, breaks=1)
def view_lives_across(a):
    b = a * 2
    v = b[0]
    print("here")
    v.add_(1)
    return b, v


@program(A, graphs=2, breaks=1)
def loop_state_lives_across(a):
    out = []
    for i, x in enumerate([a, a + 1]):
        out.append(x * i)
    print(len(out))
    return sum(out)


@program(A, breaks=1)
def partial_and_methods_live_across(a):
    import functools  # noqa: PLC0415 - what is tested

    f, g = functools.partial(torch.mul, a), a.add
    print("here")
    return f(2) + g(1)


@program(A, graphs=2, breaks=1, state=lambda: SEEN)
def global_list_across(a):
    SEEN.append(1)
    b = a * 2
    print(len(SEEN))
    SEEN.append(b.sum())
    return b + len(SEEN)


@program(A, graphs=1, breaks=1, eager=0)
def break_before_anything(a):
    print("start")
    return a * 2


@program(A, graphs=1, breaks=1)
def break_after_everything(a):
    b = a * 2
    print("end")
    return b


@program(A, graphs=1, breaks=1)
def python_random_state(a):
    random.seed(1)
    k = random.uniform(0, 1)
    return a * k


@program(A, graphs=2, breaks=1)
def time_is_never_constant(a):
    b = a * 2
    t = time.time()
    return b + 1, t > 0


@program(A, graphs=2, breaks=1)
def unique_has_a_data_dependent_size(a):
    b = (a * 2).round()
    u = torch.unique(b)
    return u + 1


@program(A, graphs=2, breaks=1)
def masked_select(a):
    b = a * 2
    return torch.masked_select(b, b > 0) * 2


@program(A)
def numpy_round_trip(a):
    b = a * 2
    n = b.numpy()
    return torch.from_numpy(n) + 1


@program(A, graphs=2, breaks=1)
def range_of_data(a):
    n = int((a > 0).sum())
    return sum(a * i for i in range(n))


@program(A, graphs=2, breaks=1)
def tensor_equality_as_a_condition(a):
    b = a * 2
    if torch.equal(b, a):
        return b
    return b + 1


@program(A, graphs=2, breaks=1)
def allclose_as_a_condition(a):
    b = a * 2
    return b + 1 if torch.allclose(b, a) else b - 1


@program(A, graphs=2, breaks=1)
def recursion_with_data(a):
    def halve(x, depth):
        if depth == 0:
            return x
        return halve(x / 2, depth - 1)

    b = halve(a, 3)
    print("done")
    return b + 1


@program(A, graphs=2, breaks=1)
def max_over_python_of_data(a):
    b = a * 2
    return b * max(b.sum().item(), 1.0)


@program(A)
def frame_questions(a):
    import sys  # noqa: PLC0415 - what is tested

    b = a * 2
    name = sys._getframe().f_code.co_name
    return b + 1, name


@program(A, graphs=2, breaks=4)
def lazy_iterators_live_across(a):
    seen = []

    def note(x):
        seen.append(x)
        return x

    mapped, zipped = map(note, [1, 2, 3]), zip(map(note, (4, 5)), [6, 7], strict=True)
    counted = enumerate(filter(None, map(note, [0, 8, 9])), 10)
    b = a * next(mapped)
    first = next(counted)
    opaque_break()
    return b + next(mapped), list(zipped), list(counted), first, seen


@corpus.parametrize()
def test_program(program):
    check(program)
