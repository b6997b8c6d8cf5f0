"""NumPy: known values are computed while capturing, arrays over tensors share memory, the rest runs in NumPy."""

import numpy as np
import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
WEIGHTS = np.ones((2, 3), dtype=np.float32)


def array(*values, dtype=np.float32):
    return np.array(values, dtype=dtype)


def rows(dtype=np.float32):
    return np.arange(1, 7, dtype=dtype).reshape(2, 3)


@program(A)
def functions_of_known_numbers(a):
    scale = np.sqrt(2.0) * np.float32(0.5) + np.log(10) - np.clip(3.0, 0, 1)
    return a * scale, a.reshape(np.prod(a.shape)), a.new_zeros(int(np.ceil(a.shape[0] / 2)))


@program(A)
def limits_of_dtypes(a):
    return a * np.finfo(np.float32).eps, torch.where(a > 0, a, -np.inf), np.iinfo(np.int8).max


@program(make=lambda: (A.clone(), np.float64(2.5)), changed=lambda: (A.clone(), np.float64(3.5)))
def number_argument(a, k):
    return a * k, float(k)


@program(make=lambda: (A.clone(), np.float32("nan")), changed=lambda: (A.clone(), np.float32(-0.0)))
def odd_number_argument(a, k):
    return a + float(k), k


@program(make=lambda: ([A.clone()] * 3, np.int64(2)), changed=lambda: ([A.clone()] * 3, np.int64(1)))
def index_argument(xs, k):
    return xs[k] + k, xs[0][k - 1]


PLACES = np.triu_indices(3, k=1)


@program(make=lambda: (torch.zeros(3, 3), torch.arange(3.0)))
def arrays_from_outside_as_indices(a, v):
    a[PLACES[0], PLACES[1]] = v
    return a[PLACES[0]], a[:, PLACES[1]] * 2, a[PLACES]


@program(make=lambda: (torch.arange(6.0).reshape(2, 3), np.array([2, 0, -1], dtype=np.int32)))
def arrays_as_indices(a, places):
    return a[:, places], a.T[places], a[0][np.array([1, 2])], a[np.array([[0, 1]]), 1]


@program(make=lambda: (torch.arange(6.0).reshape(2, 3), np.array([True, False, True])))
def arrays_as_masks(a, mask):
    a[:, mask] = 7.0
    a[np.array([False, True])] = 1.0
    return a


@program(make=lambda: (torch.arange(6.0).reshape(2, 3), np.array([[0, 1], [1, 0]])), graphs=2, breaks=1)
def array_with_two_dimensions_alone(a, places):
    return (a + 1)[places] * 2


@program(A)
def dtype_of_numbers_in_tensors(a):
    return a + 1, torch.tensor(np.float64(2.0)), torch.as_tensor(np.int32(2)), torch.full((2,), np.float64(2.0))


@program(A, graphs=1, breaks=1)
def list_of_numbers_becomes_a_tensor(a):
    return a + 1, torch.tensor([np.float64(2.0), np.float64(3.0)])


@program(A)
def known_arrays_become_tensors(a):
    steps = torch.as_tensor(np.linspace(0, 1, 3), dtype=a.dtype)
    order = torch.as_tensor(np.argsort([3, 1, 2]).copy())
    return a * steps + torch.from_numpy(np.arange(3, dtype=np.float32)), a[:, order], torch.tensor(np.zeros((2, 1)))


@program(A)
def known_arrays_as_numbers(a):
    total = np.cumsum([1, 2, 3])
    return [int(n) for n in total], a + total[-1], len(total), total.shape, total.sum()


@program(A)
def known_array_is_returned(a):
    return a + 1, np.arange(6).reshape(2, 3)


@program(A, graphs=0, eager=1)
def two_arrays_over_one_memory_are_returned(a):
    n = np.arange(6)
    return a + 1, n, n.reshape(2, 3)


@program(A, graphs=1, breaks=1)
def known_array_is_changed(a):
    n = np.arange(3)
    n[0] = 7
    return a + 1, n


@program(A, graphs=1, breaks=1)
def name_of_a_changed_array(a):
    n = np.arange(3)
    m = n
    n += 1
    return a + 1, m


@program(A, graphs=0, eager=1)
def array_under_a_changed_tensor(a):
    n = np.arange(3)
    torch.from_numpy(n).add_(5)
    return a + 1, int(n.sum())


@program(A)
def round_trip(a):
    n = (a * 2).numpy()
    return torch.from_numpy(n) + 1


@program(A)
def array_of_an_argument_is_returned(a):
    n = a.numpy()
    a.add_(1)
    return n, n.shape, n.dtype, n.ndim, len(n)


@program(A)
def array_of_a_result_is_returned(a):
    b = a * 2
    n = b.numpy()
    return n, b


@program(make=lambda: (A.clone().requires_grad_(),), graphs=1, breaks=1)
def array_of_what_needs_gradients(a):
    return (a * 2).numpy()


@program(A)
def array_of_a_tensor_is_written(a):
    n = a.numpy()
    n[0] = 3
    n[:, 1] += 0.5
    return a


@program(make=lambda: (rows(),))
def array_argument_becomes_a_tensor(n):
    return torch.from_numpy(n) * 2, torch.as_tensor(n) + 1, torch.tensor(n.T)


@program(make=lambda: (rows(),))
def tensor_over_an_array_argument_is_written(n):
    t = torch.from_numpy(n)
    t.add_(1)
    return t, n


@program(make=lambda: (rows(), rows()), changed=lambda: (rows(np.float64), rows(np.float64)))
def arithmetic_of_arrays(n, m):
    return n + 1, (n * m - 2) / m, np.sqrt(n), np.abs(-1.5 * n), n[1:].T.reshape(3)


@program(make=lambda: (rows(),))
def array_argument_in_place(n):
    m = n
    n += 1
    n[0] = 7
    return n, m


@program(make=lambda: (lambda n: (n, n))(rows()))
def one_array_twice(n, m):
    n *= 2
    return n is m, m + 1


@program(make=lambda: (lambda n: (n, n[0]))(rows()))
def row_of_an_array_argument(n, row):
    row += 1
    return n * 2


@program(make=lambda: (rows(np.int64),))
def whole_numbers_divide_in_numpy(n):
    return n / 2


@program(make=lambda: (rows(),))
def sum_without_an_axis_is_a_number(n):
    return n.sum()


@program(make=lambda: (rows(),), graphs=0, breaks=1)
def comparison_with_none(n):
    return n == None  # noqa: E711 - NumPy compares element by element


@program(make=lambda: (rows()[::-1],), graphs=0, breaks=1)
def reversed_array(n):
    return n + 1


def read_only():
    n = rows()
    n.flags.writeable = False
    return (n,)


@program(make=lambda: (rows(),), then=((read_only, True),), graphs=1)
def read_only_array(n):
    return n + 1


@program(A)
def global_array(a):
    return a + torch.from_numpy(WEIGHTS)


@program(A, graphs=0, breaks=1)
def warning_of_a_known_number(a):
    return np.log(np.float64(0.0))


@program(make=lambda: (array(1.5, -1.5, 2.5, -0.5, np.nan, np.inf),))
def fix_truncates(n):
    return np.fix(n), np.floor(n), np.ceil(n), np.rint(n), np.trunc(n), np.square(n)


@program(make=lambda: (array(8.0, -8.0),), graphs=0, breaks=1)
def cube_root_of_a_negative(n):
    return np.cbrt(n)


@program(make=lambda: (array(-128, -3, 0, 100, dtype=np.int8),))
def clip_with_wide_bounds(n):
    return np.clip(n, -100, 1000 % 101)


@program(make=lambda: (array(np.nan, 2.0, -0.0, -np.inf),))
def sign_of_nan(n):
    return np.sign(n), np.isnan(n), np.isfinite(n), n > 0, n == n


@program(make=lambda: (array(-3.0, 0.5, np.nan, 7.0), array(-3.0, 0.5, np.nan, 7.0, dtype=np.float64)))
def clip_of_floats(n, m):
    return np.clip(n, -1, 2.5), np.clip(m, 2.5, -1)


@program(make=lambda: (array(np.nan, -1.0, 0.0, 2.0),), graphs=0, breaks=2)
def heaviside_of_nan(n):
    return np.heaviside(n, np.float32(0.5)).tolist()


@program(A)
def list_of_tensors_becomes_a_tensor(a):
    return torch.tensor([a[0, 0], a[0, 1]]), torch.tensor(a.shape)


@program(A, dynamic=True, then=((lambda: (torch.ones(4, 3),), False),))
def array_of_open_size(a):
    n = a.numpy()
    return torch.from_numpy(n * 2) + n.shape[0], n.size, n.nbytes


@corpus.parametrize()
def test_program(program):
    check(program)
