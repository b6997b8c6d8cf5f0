"""What a program gives to classes of torch and of Python, data and functions, was read once and never again."""

from support.played_programs import difference_of

_MODULE = """
import collections, fractions
def one(self, *rest):
    return 1
def two(self, *rest):
    return 2
layer = torch.nn.Linear(2, 2)
shelf = collections.UserDict()
half = fractions.Fraction(1, 2)
"""
_END = "del torch.nn.Linear.fresh, torch.Tensor.fresh"


def test_data_set_between_calls():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    return [torch.nn.Linear.fresh, torch.Tensor.fresh, layer.fresh, x.fresh]
""",
        (
            "torch.nn.Linear.fresh = torch.Tensor.fresh = True",
            "r0 = step(x0)",
            "torch.nn.Linear.fresh = torch.Tensor.fresh = 'a'",
            "r1 = step(x0)",
            "torch.nn.Linear.fresh = torch.Tensor.fresh = [1]",
            "r2 = step(x0)",
            _END,
        ),
    )


def test_data_set_inside():
    assert not difference_of(
        _MODULE
        + """
def step(x, n):
    torch.nn.Linear.fresh = torch.Tensor.fresh = n
    return [torch.nn.Linear.fresh, torch.Tensor.fresh, layer.fresh, x.fresh]
""",
        ("r0 = step(x0, 1)", "r1 = step(x0, True)", "r2 = step(x0, [2])", "r3 = step(x0, None)", _END),
    )


def test_functions_set_between_calls():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    return [layer.fresh(), x.fresh(), torch.Tensor.fresh(x)]
""",
        (
            "torch.nn.Linear.fresh = torch.Tensor.fresh = one",
            "r0 = step(x0)",
            "torch.nn.Linear.fresh = torch.Tensor.fresh = two",
            "r1 = step(x0)",
            "torch.nn.Linear.fresh = torch.Tensor.fresh = staticmethod(two)",
            "r2 = step(x0)",
            _END,
        ),
    )


def test_what_was_not_there():
    for owner in ("layer", "x", "torch.nn.Linear", "torch.Tensor"):
        assert not difference_of(
            _MODULE + f"def step(x):\n    return [hasattr({owner}, 'fresh'), x + 1]\n",
            ("r0 = step(x0)", "torch.nn.Linear.fresh = torch.Tensor.fresh = one", "r1 = step(x0)", _END),
        )


def test_classes_of_python():
    assert not difference_of(
        _MODULE
        + """
def step(x, n):
    log = [hasattr(collections.UserDict, "fresh")]
    collections.UserDict.fresh = fractions.Fraction.fresh = n
    return log + [collections.UserDict.fresh, fractions.Fraction.fresh, shelf.fresh, half.fresh]
""",
        (
            "r0 = step(x0, 1)",
            "r1 = step(x0, True)",
            "r2 = step(x0, [2])",
            "r3 = step(x0, None)",
            "del collections.UserDict.fresh, fractions.Fraction.fresh",
        ),
    )
