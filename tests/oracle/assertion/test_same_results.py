"""assert_same: what rounding explains passes, anything else is named with its place, distance and units."""

import dataclasses
from collections import OrderedDict, namedtuple

import numpy
import pytest
import torch

from plumbline.compiler.base.errors import UserError
from plumbline.oracle import ResultsDiffer, assert_same

Pair = namedtuple("Pair", "first second")
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass
class Answer:
    loss: torch.Tensor
    label: str


def values(dtype=torch.float32, seed=0):
    return torch.randn(40, 30, generator=torch.Generator().manual_seed(seed)).to(dtype)


def product(dtype):
    """Return a product, the same summed in another order, and the reference."""
    a, b = values(dtype), values(dtype, 1).T.contiguous()
    other = sum(a[:, k : k + 10] @ b[k : k + 10] for k in (20, 0, 10))
    return a @ b, other, a.double() @ b.double()


def refusal(*args, **options):
    with pytest.raises(ResultsDiffer) as raised:
        assert_same(*args, **options)
    return str(raised.value)


# --- what passes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_another_order_of_summation_passes_with_a_reference(dtype):
    right, other, exact = product(dtype)
    assert assert_same(other, right, exact).kind.value in ("NOISE", "BETTER", "EQUAL")


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_another_order_of_summation_passes_without_one(dtype):
    right, other, _ = product(dtype)
    assert assert_same(other, right).kind.value in ("NOISE", "EQUAL")


def test_a_result_nearer_to_the_reference_is_better():
    right, _, exact = product(torch.bfloat16)
    worse = right + right.abs() * 0.01
    assert assert_same(right, worse, exact).kind.value == "BETTER"


def test_a_reference_may_be_a_function():
    right, other, exact = product(torch.float32)
    assert not assert_same({"y": other}, {"y": right}, lambda: {"y": exact}).failed


def test_nested_results_of_every_kind_pass():
    def made():
        x = values()
        return OrderedDict(
            a=[x, (x.int(), x > 0)],
            b=Pair(x.to(torch.complex64), "text"),
            c=Answer(x.sum(), "label"),
            d={1: x.numpy(), 2: None, 3: 2.5, 4: range(3), 5: b"bytes"},
            e=x.to_sparse(),
            f=x.to_sparse_csr(),
            g=torch.nested.nested_tensor([x[0, :3], x[1, :5]]),
            h=x.to(torch.float8_e4m3fn),
            i=torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
            j=torch.empty(0),
            k=torch.tensor([float("nan"), float("inf"), -0.0]),
            m=x.to("meta"),
        )

    assert assert_same(made(), made()).kind.value == "EQUAL"


def test_zeros_of_either_sign_are_equal():
    assert assert_same(torch.tensor([-0.0]), torch.tensor([0.0])).kind.value == "NOISE"


def test_units_widen_what_passes():
    right = torch.ones(4)
    other = right * (1 + 40 * torch.finfo(torch.float32).eps)
    assert "units in the last place" in refusal(other, right)
    assert not assert_same(other, right, units=64).failed


# --- what does not -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_wrong_element_is_found_and_told(dtype):
    right = values(dtype)
    wrong = right.clone()
    wrong[3, 4] = wrong[3, 4] * 1.5 + 1
    text = refusal(wrong, right)
    assert "[3, 4]" in text
    assert "1 of 1200 elements is beyond" in text
    assert "reference=" in text


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_one_wrong_element_is_found_with_a_reference(dtype):
    right, other, exact = product(dtype)
    wrong = other.clone()
    wrong[5, 6] += 0.5
    assert "[5, 6]" in refusal(wrong, right, exact)


def test_an_error_of_the_whole_is_found_that_no_element_shows():
    right, _, exact = product(torch.float32)
    wrong = (exact + 4 * (right.double() - exact).roll(1, 0)).float()
    assert "as a whole" in refusal(wrong, right, exact, multiple=1000)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (torch.ones(2), torch.ones(3), "shape is [2], expected has [3]"),
        (torch.ones(2), torch.ones(2).half(), "dtype is torch.float32, expected has torch.float16"),
        (torch.ones(2), [torch.ones(2)], "is a Tensor, expected is a list"),
        ([torch.ones(2)], torch.ones(2), "is a list, expected is a Tensor"),
        ([1, 2], (1, 2), "is a list, expected is a tuple"),
        ([1, 2], [1, 2, 3], "lacks [2]"),
        ({"a": 1, "b": 2}, {"a": 1}, "has ['b'], which expected has not"),
        ({"a": 1}, {"a": 2}, "result['a']: WRONG: is 1, expected is 2"),
        ("one", "two", "is 'one', expected is 'two'"),
        (1, 1.0, "is a int, expected is a float"),
        (numpy.ones(2), numpy.ones(2, dtype="f4"), "dtype is float64, expected has float32"),
        (torch.tensor([1, 2, 3]), torch.tensor([1, 5, 6]), "2 at [1], expected has 5 (and at 1 position more)"),
        (torch.tensor([True]), torch.tensor([False]), "integers and booleans do not round"),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]), "nan at [1], expected has 2"),
        (torch.tensor([float("inf")]), torch.tensor([-float("inf")]), "inf at [0], expected has -inf"),
        (torch.eye(3).to_sparse(), torch.ones(3, 3).to_sparse(), "units in the last place"),
        (torch.eye(3).to_sparse(), torch.eye(3), "layout is torch.sparse_coo, expected has torch.strided"),
        (torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64) * 1j, "at [0, 0]"),
        (Answer(torch.ones(1), "a"), Answer(torch.ones(1), "b"), "result.label: WRONG"),
    ],
)
def test_differences_are_told_by_place(actual, expected, words):
    assert words in refusal(actual, expected)


def test_every_wrong_place_is_told_and_counted():
    text = refusal([torch.zeros(1)] * 12, [torch.ones(1)] * 12, name="loss")
    assert text.count("loss[") == 8
    assert "4 places more" in text
    assert "12 of 12 places differ" in text


def test_the_verdict_comes_with_the_error():
    with pytest.raises(ResultsDiffer) as raised:
        assert_same([torch.zeros(1), torch.ones(1)], [torch.ones(1), torch.ones(1)])
    (finding,) = raised.value.verdict.findings
    assert (finding.where, finding.numbers.worst_index) == ("result[0]", (0,))


def test_infinity_that_the_reference_does_not_have_is_no_model():
    expected = torch.tensor([60000.0, float("inf")], dtype=torch.float16)
    exact = torch.tensor([60000.0, 65000.0], dtype=torch.float64)
    actual = exact.to(torch.float16)
    assert not assert_same(actual, expected, exact).failed
    assert "inf at [1]" in refusal(expected, actual, exact)


def test_a_reference_has_to_be_more_precise_somewhere():
    x = values()
    with pytest.raises(UserError, match="nowhere more precise"):
        assert_same(x, x, x)
    with pytest.raises(UserError, match="has shape"):
        assert_same(x, x, x[0].double())
    assert not assert_same([x, 1.5], [x, 1.5], [x.double(), 1.5]).failed  # numbers of Python have no wider form


def test_objects_whose_equality_raises_differ():
    class Odd:
        def __eq__(self, other):
            raise ValueError("no")

        __hash__ = None

    assert "cannot be compared: ValueError: no" in refusal(Odd(), Odd())
