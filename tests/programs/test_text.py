"""Text, questions about objects, assertions, logging, warnings and pytrees. PYTEST_DONT_REWRITE (asserts)"""

import inspect
import logging
import math
import numbers
import string
import typing
import warnings
from collections import namedtuple
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
LOGGER = logging.getLogger("plumbline.test.programs")
LINES = {"all": []}
Pair = namedtuple("Pair", "x y")


class Keeping(logging.Handler):
    def emit(self, record):
        LINES["all"].append((record.levelname, record.getMessage()))


LOGGER.addHandler(Keeping())
LOGGER.setLevel(logging.INFO)
LOGGER.propagate = False


@dataclass
class Config:
    hidden: int = 3
    act: str = "relu"

    def __contains__(self, name):
        return hasattr(self, name)


def signed(x, y=2, *args, z: int = 3, **kwargs):
    return x


def shown(x, /, *, k=1):
    return x * k


@program(A, graphs=0)
def format_specifications(a):
    n, r = a.shape[0], 3.14159
    return a, f"{n:03d}|{r:>8.2f}|{r:e}|{n!r:>4}|{'x':^5}|{n:,}|{0.25:.0%}|{n=}|{'ab'}|{{}}|{n:{n + 2}}|{True}"


@program(A, graphs=0)
def percent_and_format_method(a):
    return a, "%s %r %d %5.1f %%" % ("x", "y", 3, 2.25), "{0} {1!r} {k:>3}".format(1, "q", k=2), "{:x}".format(255)


@program(A)
def string_methods(a):
    s = " Layer.0.weight "
    return (
        a * len(s.strip()), s.split("."), s.strip().rsplit(".", 1), s.replace("0", "1"), s.find("0"), s.count("."),
        s.strip().startswith(("Layer", "x")), s.strip().endswith("weight"), s.lower(), s.upper(), "a,b".partition(","),
        "-".join(["x", "y"]), "abc"[::-1], "b" in "abc", "ab" * 2, "ab" + "cd", s.isspace(), "12".isdigit(),
        "x".zfill(3),
        "a b".title(), "prefix_x".removeprefix("prefix_"), "tEsT".swapcase(), "x".ljust(3) + "|", "é".encode("utf-8"),
    )  # fmt: skip


@program(A, graphs=0)
def string_comparisons_and_conversions(a):
    return (
        a, "a" < "b", str(3), str(2.5), repr("x"), int("12"), float("1e3"), ord("a"), chr(98), bool(""),
        str(None), "x" == 1,
    )  # fmt: skip


@program(A, graphs=0)
def bytes_and_numbers(a):
    return (
        a, b"ab" + b"c", 7 // 2, -7 % 3, 2**10, 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, 0.1 + 0.2, 1e300 * 1e10,
        (3).bit_length(), 3.0.is_integer(),
    )  # fmt: skip


@program(A)
def math_functions(a):
    return (
        a * math.sqrt(16) + math.floor(2.7) + math.ceil(2.1), math.prod([2, 3]), math.isnan(math.nan),
        math.gcd(4, 6), math.log2(8), math.inf,
    )  # fmt: skip


@program(A, "relu", changed=lambda: (A.clone(), "tanh"))
def function_by_name(a, name):
    return getattr(torch, name)(a) + getattr(torch.nn.functional, "relu")(a)


@program(A, graphs=0)
def text_of_known_objects(a):
    return (
        a, str(torch.float32), f"{a.shape}", str(a.dtype), repr(a.device), f"{type(a).__name__}", str([1,
        "x"]), f"{ {'k': (1,)} }", f"{None}",
    )  # fmt: skip


@program(A, graphs=0)
def questions_about_types(a):
    values = [1, True, 2.0, "x", None, [1], (1,), {1: 2}, {1}, a, torch.float32, print, int, len]
    return (
        a, [isinstance(v, (int, str)) for v in values], [type(v).__name__ for v in values],
        [callable(v) for v in values],
    )  # fmt: skip


@program(A)
def abstract_types(a):
    return (
        a, isinstance(1, numbers.Number), isinstance([], typing.Sequence), isinstance({}, typing.Mapping),
        isinstance(1.0, numbers.Integral), isinstance(3, int | str), isinstance(a, torch.Tensor), isinstance(None,
        type(None)),
        isinstance(print, typing.Callable), issubclass(bool, int), isinstance(torch.nn.Parameter(a),
        torch.nn.Parameter),
    )  # fmt: skip


@program(make=lambda: (A.clone(), Config()), changed=lambda: (A.clone(), Config(act="tanh")))
def configuration_object(a, c):
    return getattr(torch, c.act)(a) * c.hidden, "act" in c, "none" in c, getattr(c, "none", 5), vars(c)["hidden"]


@program(A)
def identity_and_none(a):
    b, x = a, None
    return a is b, x is None, a is not None, a is a + 1, type(a) is torch.Tensor, (x or 3) + 0, not x, a + 1


@program(A)
def signature_of_a_known_function(a):
    names = list(inspect.signature(signed).parameters)
    p = inspect.signature(signed).parameters["y"]
    return a * len(names), names, p.default, p.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD


@program(A)
def keywords_filtered_by_signature(a):
    given = {"k": 3, "other": 4}
    known = {k: v for k, v in given.items() if k in inspect.signature(shown).parameters}
    return shown(a, **known)


@program(A, graphs=0)
def inspect_questions(a):
    return a, inspect.isfunction(shown), inspect.isclass(Config), inspect.ismethod(shown), inspect.isclass(3)


@program(A)
def passing_assertion(a):
    assert a.dim() == 2, "two dimensions"
    assert isinstance(a, torch.Tensor)
    assert a.shape[0] in (1, 2)
    return a * 2


@program(A, graphs=0, eager=1)
def failing_assertion_on_a_shape(a):
    b = a * 2
    assert b.dim() == 3, f"got {b.dim()}"
    return b


@program(A)
def assertion_on_data_passes(a):
    b = a + 2
    assert (b > 0).all(), "positive"
    return b * 2


@program(A)
def assertion_on_data_fails(a):
    b = a * 2
    assert torch.all(b > 5), "big enough"
    return b


@program(A)
def torch_checks(a):
    torch._check(a.dim() == 2)
    torch._check(a.shape[0] > 1, lambda: "small")
    return a + 1


@program(A, graphs=2, breaks=1, state=lambda: LINES)
def logging_is_an_effect(a):
    b = a * 2
    LOGGER.info("shape %s", tuple(b.shape))
    return b + 1


@program(A, graphs=1, breaks=0, state=lambda: LINES)
def logging_below_the_level(a):
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("values %s", a)
    return a + 1


@program(A, graphs=2, breaks=1)
def warnings_are_effects(a):
    b = a * 2
    warnings.warn("careful", UserWarning, stacklevel=1)
    return b + 1


@program(A, graphs=2, breaks=1)
def printing_known_values(a):
    b = a * 2
    print("shape", b.shape[0], [1, 2], f"{b.dim()}", sep="-", end="!\n")
    return b + 1


@program(A, graphs=2, breaks=1)
def printing_a_tensor(a):
    b = a * 2
    print(b)
    return b + 1


@program(A, graphs=2, breaks=1)
def formatting_a_tensor(a):
    b = a * 2
    text = f"{b.sum():.3f}"
    return b + 1, text


@program(A)
def pytree_map(a):
    tree = {"x": [a, (a + 1, 2)], "y": Pair(a, None)}
    return pytree.tree_map(lambda v: v * 2 if isinstance(v, torch.Tensor) else v, tree)


@program(make=lambda: ({"x": [A.clone(), (B.clone(), 2)], "y": Pair(A.clone(), None)},))
def pytree_flatten_and_unflatten(tree):
    leaves, spec = pytree.tree_flatten(tree)
    return pytree.tree_unflatten([v + 1 if isinstance(v, torch.Tensor) else v for v in leaves], spec), len(leaves)


@program(A)
def pytree_helpers(a):
    tree = (a, {"k": a * 2, "n": 3})
    return (
        pytree.tree_leaves(tree), pytree.tree_all(lambda v: v is not None, tree),
        pytree.tree_map_only(torch.Tensor, torch.neg, tree), pytree.tree_structure(tree).num_leaves,
    )  # fmt: skip


@program(A, graphs=0)
def string_module_and_templates(a):
    return a, string.ascii_lowercase[:3], "{a}-{b}".format_map({"a": 1, "b": 2}), "x".join(map(str, range(3)))


@program(A)
def dtype_questions(a):
    return (
        a, a.dtype.is_floating_point, torch.finfo(a.dtype).eps, torch.iinfo(torch.int32).max, a.dtype.itemsize,
        torch.promote_types(torch.float32, torch.int64), torch.is_tensor(a), torch.is_floating_point(a),
        a.is_contiguous(), a.T.is_contiguous(), a.device.type, a.layout, a.is_leaf, a.element_size(),
        a.storage_offset(),
    )  # fmt: skip


@program(A)
def mask_with_finfo(a):
    mask = torch.tril(torch.ones(2, 3, dtype=torch.bool))
    return a.masked_fill(~mask, torch.finfo(a.dtype).min).softmax(-1)


@program(A, graphs=0)
def dir_and_doc(a):
    return a, "hidden" in dir(Config()), Config.__name__, Config.__module__ == __name__, shown.__qualname__


@program(A, graphs=0)
def globals_are_readable(a):
    return a, "Config" in globals(), __name__ == Config.__module__


@program(A, graphs=0)
def hash_and_id_free_questions(a):
    return a, hash("x") == hash("x"), hash((1, 2)) == hash((1, 2)), {a: 1}[a], len({a, a})


@corpus.parametrize()
def test_program(program):
    check(program)
