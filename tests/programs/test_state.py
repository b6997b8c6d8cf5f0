"""Changes of what is outside, made during capture: replayed in order, identities kept, eager's state after errors."""

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
WORLD = {"items": [], "table": {}, "names": set(), "n": 0, "t": torch.zeros(2, 3)}
total = 0


class Node:
    def __init__(self, value=None):
        self.value, self.next, self.seen = value, None, 0


class Account:
    opened = 0

    def __init__(self):
        self.balance, self.history = 0, []

    def put(self, n):
        self.balance += n
        self.history.append(("put", n))
        return self


class Observed:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append(name)
        object.__setattr__(self, name, value)


@program(A, state=lambda: WORLD)
def global_containers_in_order(a):
    WORLD["items"].append(1)
    WORLD["items"].extend([2, a.shape[0]])
    WORLD["table"]["k"] = a.sum()
    WORLD["names"].add("x")
    WORLD["n"] -= 5
    WORLD["items"].insert(0, "first")
    return a * len(WORLD["items"])


@program(A, state=lambda: WORLD)
def global_tensor_is_changed_in_place(a):
    WORLD["t"].add_(a)
    b = WORLD["t"] * 2
    WORLD["t"][0] = 7
    return b


@program(A, state=lambda: WORLD)
def global_tensor_is_replaced(a):
    WORLD["t"] = WORLD["t"] + a
    WORLD["t"] = WORLD["t"] * 2
    return WORLD["t"] - 1


@program(A, state=lambda: globals() if False else WORLD)
def global_name_is_written_and_read(a):
    global total
    total = a.shape[0]
    total += 1
    return a * total


@program(A)
def global_name_is_deleted(a):
    global scratch
    scratch = 3
    k = scratch
    del scratch
    return a * k, "scratch" in globals()


@program(make=lambda: (A.clone(), [1, 2, 3]))
def every_list_method(a, xs):
    xs.append(3.5)
    xs.insert(1, "one")
    xs.extend((4, 5))
    xs += [6]
    xs[0] = "zero"
    xs[2:4] = []
    last = xs.pop()
    first = xs.pop(0)
    xs.remove(4)
    xs.reverse()
    xs.append(a * 3)
    return a * 2, last, first, xs.index("one"), xs.copy()


@program(make=lambda: (A.clone(), [3, 1, 2]))
def list_sort_and_clear(a, xs):
    xs.sort(reverse=True)
    ys = list(xs)
    xs.clear()
    xs.append(a * 2)
    return ys


@program(make=lambda: (A.clone(), {"x": 1, "y": {"z": 2}}))
def every_dict_method(a, d):
    d["new"] = a
    d["y"]["z"] += 1
    del d["x"]
    d.update(p=1, q=2)
    d.setdefault("r", []).append(3)
    d.pop("p")
    d |= {"w": a * 2}
    inner = d.pop("y")
    d["again"] = inner
    return a + inner["z"], d.popitem()[0]


@program(make=lambda: (A.clone(), {1, 2, 3}))
def every_set_method(a, s):
    s.add(9)
    s.remove(1)
    s.discard(77)
    s |= {5}
    s -= {2}
    s.update([6])
    s ^= {6, 7}
    return a * len(s), 9 in s


@program(make=lambda: ((lambda inner: (A.clone(), [inner, inner], {"same": inner}))([1]),))
def aliases_of_arguments_are_kept(pack):
    a, xs, d = pack
    xs[0].append(2)
    d["same"].append(3)
    return a * len(xs[1]), xs[0] is d["same"]


@program(A)
def aliases_of_new_objects_are_kept(a):
    inner = [a * 2]
    both = [inner, inner]
    node = Node(inner)
    node.next = node
    return both, node, {"x": both, "y": both}, (inner,)


@program(make=lambda: (A.clone(), Node(Node(1))))
def nested_objects(a, n):
    n.value.value = a * 2
    n.value.next = n
    n.next = Node(n.value)
    n.seen += 1
    return n.next.value.value + 1


@program(make=lambda: (A.clone(), Account()))
def chained_methods_with_state(a, c):
    c.put(1).put(2).put(a.shape[1])
    return a * c.balance + len(c.history)


@program(make=lambda: (A.clone(), Observed()))
def custom_setattr(a, o):
    o.x = a * 2
    o.y = 1
    o.x = o.x + o.y
    return o.x, len(o.log)


@program(A, state=lambda: {"opened": Account.opened} if False else WORLD)
def class_attribute_is_written(a):
    Account.opened = 5
    Account.opened += 1
    k = Account.opened
    Account.opened = 0
    return a * k


@program(make=lambda: (lambda a: (a, a.view(-1), [a]))(A.clone()))
def views_and_their_base_are_arguments(a, flat, box):
    flat.mul_(2)
    box[0].add_(1)
    return a + 1, a is box[0]


@program(make=lambda: (A.clone(),))
def view_of_an_argument_is_returned(a):
    return a[0], a.T, a.view(-1), a, a.detach()


@program(make=lambda: (A.clone(),))
def view_of_an_argument_is_changed(a):
    a[0].add_(1)
    a.T[1].zero_()
    v = a.view(3, 2)
    v += 1
    return v, a.sum()


@program(make=lambda: (A.clone(), B.clone()))
def copy_and_out_arguments(a, b):
    a.copy_(b)
    torch.add(b, 1, out=a)
    b.fill_(3)
    return a * b


@program(make=lambda: (A.clone(), [0]))
def tensor_stored_then_changed(a, xs):
    y = a * 2
    xs[0] = y
    y.add_(1)
    return y + 1


@program(make=lambda: (A.clone(), []))
def same_result_in_many_places(a, xs):
    y = a * 2
    xs.append(y)
    xs.append(y.view(-1))
    d = {"y": y}
    return y, d, xs[0] is d["y"]


@program(make=lambda: (A.clone(), [1]), graphs=0, eager=1)
def error_after_changes(a, xs):
    xs.append(2)
    a.mul_(2)
    xs.append(a.sum())
    return {}["missing"]


@program(make=lambda: (A.clone(), [1]))
def caught_error_between_changes(a, xs):
    try:
        xs.append(2)
        a.mul_(2)
        [].pop()
        xs.append("never")
    except IndexError:
        xs.append(3)
    return a + len(xs)


@program(make=lambda: (A.clone(), [1]), graphs=1, breaks=1, eager=1)
def error_after_a_break(a, xs):
    xs.append(2)
    a.mul_(2)
    print(xs)
    xs.append(3)
    raise ValueError(len(xs))


@program(make=lambda: (A.clone(), [1], {"k": 1}), graphs=2, breaks=1)
def changes_on_both_sides_of_a_break(a, xs, d):
    xs.append(a * 2)
    d["k"] = xs
    print(len(xs))
    d["k"].append(3)
    xs[0] = d
    return a * len(d["k"])


@program(make=lambda: (A.clone(), Node()), breaks=1)
def new_object_lives_across_a_break(a, n):
    fresh = Node([a])
    n.value = fresh
    print(fresh.seen)
    fresh.seen += 1
    fresh.value.append(a + 1)
    return fresh, n.value is fresh


@program(make=lambda: (A.clone(), [1]), graphs=2, breaks=1)
def iterator_lives_across_a_break(a, xs):
    it = iter([1, 2, 3])
    b = a * next(it)
    print(next(it))
    return b + next(it)


@program(A, graphs=2, breaks=1)
def generator_lives_across_a_break(a):
    def count():
        n = 0
        while True:
            n += 1
            yield n

    g = count()
    b = a * next(g)
    print("between")
    return b + next(g)


@program(A, graphs=2, breaks=1)
def closure_over_an_intermediate_across_a_break(a):
    b = a * 2

    def f(x):
        return x + b

    print("between")
    b = b + 1
    return f(a)


@program(A, graphs=2, breaks=1)
def dict_view_lives_across_a_break(a):
    d = {"x": a * 2}
    values = d.values()
    print("between")
    d["y"] = a
    return sum(values)


@program(make=lambda: ({"x": A.clone(), "y": A + 1},), graphs=2, breaks=1)
def dict_views_of_an_argument_across_a_break(d):
    keys, items, values = d.keys(), d.items(), d.values()
    same = values
    b = d["x"] * 2
    print("between")
    d["z"] = b
    del d["x"]
    return list(keys), len(items), sum(values) + 1, same is values, "z" in keys, d.values() is values


@program(make=lambda: (A.clone(),), graphs=0)
def augmented_assignment_on_containers(a):
    xs, d, t = [a], {"n": 1}, (1,)
    xs += [2]
    xs *= 2
    d["n"] *= 5
    t += (2,)
    return xs, d, t


@program(make=lambda: (lambda a: (a, a.T))(A.clone()))
def transposed_alias_is_read_after_a_write(a, t):
    a[0, 1] = 50.0
    return t.sum(), t[1, 0]


@program(make=lambda: (A.clone(),))
def tensor_attribute_is_set(a):
    a.note = "x"
    return a * 2, a.note


@program(make=lambda: (A.clone(),))
def data_of_a_tensor_is_set(a):
    a.data = a.data * 2
    return a + 1


@program(make=lambda: (A.clone(), [A.clone()]))
def del_statements(a, xs):
    y = a * 2
    del xs[0]
    z = y + 1
    del y
    return z


@program(A, state=lambda: WORLD)
def function_keeps_state_in_its_attribute(a):
    remembers.calls = getattr(remembers, "calls", 0) * 0 + 1
    return remembers(a)


def remembers(x):
    remembers.calls += 1
    return x * remembers.calls


@program(make=lambda: (A.clone(), (lambda box: (box.append, box))([])))
def bound_method_of_a_list_argument(a, pair):
    push, box = pair
    push(1)
    push(a * 2)
    return len(box)


@program(make=lambda: (A.clone(), {"f": []}))
def list_grows_while_iterated(a, d):
    xs = d["f"]
    xs.append(0)
    for x in xs:
        if x < 3:
            xs.append(x + 1)
    return a * len(xs)


@corpus.parametrize()
def test_program(program):
    check(program)
