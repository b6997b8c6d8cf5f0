"""Strides, storage offsets, shapes, dtypes and flags of results."""

import torch


def test_as_strided_copy_after_mutation_of_strided_input():
    """The stride argument addresses the storage of the stride-2 input, not a compact copy."""

    def pick(x):
        x.add_(1)
        return torch.as_strided_copy(x, (3,), (2,))

    torch.compile(pick)(torch.arange(10)[::2])


def test_tensor_constructor_from_size():
    """torch.Tensor(size) makes a tensor of that shape, not one that holds the numbers."""

    def blank(x):
        return torch.Tensor((x @ torch.ones(10, 4)).size()).fill_(0)

    torch.manual_seed(0)
    torch.compile(blank)(torch.randn(1, 10))


def test_resize_of_view_across_break():
    """v is its own tensor object: resizing it leaves the shape of y as it was."""

    def resize(x):
        y = x * 2
        v = y.view(3, 4)
        v.resize_(1)
        return y

    with torch.no_grad():
        torch.compile(resize)(torch.ones(3, 4))


def test_detached_chain_keeps_shape():
    """clone, detach, requires_grad_, then sqrt(abs): the output keeps shape (6, 2, 3)."""

    def root(x):
        r = x.clone().detach().requires_grad_(True)
        _ = r.ndim
        return torch.sqrt(torch.abs(r))

    torch.manual_seed(0)
    torch.compile(root)(torch.randn(6, 2, 3))


def test_lazy_negation_is_seen():
    """The imaginary part of a conjugate is a lazily negated view, which is_neg tells."""
    torch.compile(lambda x: torch.complex(x, x).conj().imag.is_neg())(torch.ones(3))


def test_channels_last_is_kept():
    """A pointwise operation keeps the memory format of its argument."""
    x = torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)
    torch.compile(lambda x: torch.nn.functional.relu(x) * 2)(x)


def test_strides_of_a_transposed_sum():
    """A sum of a transposed tensor and a scalar has its strides."""
    torch.compile(lambda x: x.t() + 1)(torch.arange(6.0).reshape(2, 3))


def test_strides_of_a_size_one_dimension():
    """A slice of one column keeps its stride."""
    torch.compile(lambda x: x[:, 1:2])(torch.arange(12.0).reshape(3, 4))


def test_dtype_of_integer_and_number():
    """integer tensor * float number is float32; a 0-d tensor does not promote."""
    run = torch.compile(lambda x, y: (x * 1.5, x + y))
    run(torch.arange(3, dtype=torch.int16), torch.tensor(2, dtype=torch.int64))


def test_weight_of_result_requires_grad():
    """detach() cuts, and the rest requires grad."""
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: (x.detach(), x * 2, (x > 0)))(x)


def test_contiguity_is_asked_inside():
    """is_contiguous() chooses the branch; the second argument is transposed."""
    run = torch.compile(lambda x: x + 1 if x.is_contiguous() else x - 1)
    run(torch.zeros(3, 3))
    run(torch.zeros(3, 3).t())


def test_parameter_attribute_is_asked_inside():
    """requires_grad chooses the branch."""
    run = torch.compile(lambda x: x + 1 if x.requires_grad else x - 1)
    run(torch.zeros(2))
    run(torch.zeros(2, requires_grad=True))


def test_view_is_asked_inside():
    """is a tensor a view? _is_view differs between the two arguments."""
    run = torch.compile(lambda x: x + 1 if x._is_view() else x - 1)
    run(torch.zeros(4))
    run(torch.zeros(8)[:4])


def test_real_view_of_complex():
    """view_as_real shares memory with the complex argument and adds a dimension."""
    x = torch.tensor([1 + 2j, 3 - 1j])
    torch.compile(lambda x: torch.view_as_real(x))(x).mul_(2)
