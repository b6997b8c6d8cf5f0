"""An error that depends on data came out of the graph: past the program's handlers, and its changes were lost."""

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_program_handles_its_own_error(backend):
    def factor(matrix):
        for jitter in (0.0, 2.0):
            try:
                return torch.linalg.cholesky(matrix + jitter * torch.eye(2)), jitter
            except torch.linalg.LinAlgError:
                continue
        return None

    compiled = plumbline.compile(factor, backend=backend)
    assert compiled(torch.eye(2))[1] == 0.0
    lower, jitter = compiled(-torch.eye(2))
    assert jitter == 2.0
    assert torch.equal(lower, torch.eye(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_changed_before_the_error_stays_changed(backend):
    log = []

    def looks_up(x, index):
        log.append("before")
        y = x[index] + 1
        log.append("after")
        return y

    compiled = plumbline.compile(looks_up, backend=backend)
    compiled(torch.arange(3.0), torch.tensor([0, 2]))
    with pytest.raises(IndexError) as caught:
        compiled(torch.arange(3.0), torch.tensor([0, 5]))
    assert log == ["before", "after", "before"]
    assert caught.value.__context__ is None


def test_an_error_after_a_break_and_in_a_callee():
    log = []

    def part(x, index):
        log.append(len(log))
        try:
            return x[index]
        except IndexError as error:
            return str(error)[:5]

    def whole(x, index):
        y = x * 2
        plumbline.graph_break()
        with torch.no_grad():
            z = part(y, index)
        return z, torch.is_grad_enabled()

    compiled = plumbline.compile(whole, backend="eager")
    assert compiled(torch.arange(3.0), torch.tensor(1))[0].item() == 2
    assert compiled(torch.arange(3.0), torch.tensor(7)) == ("index", True)
    assert compiled(torch.arange(3.0), torch.tensor(2))[0].item() == 4
    assert log == [0, 1, 2]


@pytest.mark.cc
def test_checks_without_results_stay_in_generated_code():
    """`drop_unread` removed them: a singular matrix and a failed assertion went unseen."""

    def checked(matrix, x):
        torch.linalg.inv(matrix)
        torch._assert_async((x > 0).all())
        return x + 1

    compiled = plumbline.compile(checked, backend="inductor")
    assert torch.equal(compiled(torch.eye(2), torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(RuntimeError, match="nonzero"):
        compiled(torch.eye(2), -torch.ones(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_no_probability_is_refused(backend):
    """Binary cross-entropy was taken apart into logarithms, which gave NaN."""
    compiled = plumbline.compile(torch.nn.functional.binary_cross_entropy, backend=backend)
    guess, truth = torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0.0, 1.0])
    loss = compiled(guess, truth)
    loss.backward()
    assert torch.allclose(loss, torch.tensor([0.2231, 0.3567]).mean(), atol=1e-4)
    assert torch.allclose(guess.grad, torch.tensor([0.625, -0.7143]), atol=1e-4)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        compiled(torch.tensor([1.5, 0.2]), truth)


def test_a_write_into_an_expanded_tensor_is_refused_where_it_stands():
    """Shape rules let it pass: the error came out of the graph, and the changes before it were lost."""
    log = []

    def writes(x):
        log.append("before")
        y = x.expand(3, 2)
        try:
            y.add_(1)
        except RuntimeError as error:
            log.append(str(error)[:21])
        return x * 2

    compiled = plumbline.compile(writes, backend="eager")
    assert torch.equal(compiled(torch.ones(1, 2)), torch.full((1, 2), 2.0))
    assert log == ["before", "unsupported operation"]
    whole = torch.ones(3, 2)
    assert torch.equal(compiled(whole), torch.full((3, 2), 4.0))


@pytest.mark.cc
def test_eagers_error_comes_without_the_one_before():
    kept = torch.zeros(1, 8, 2)

    def stores(x, place):
        kept.index_copy_(1, place, x[:, None])
        return kept.sum()

    compiled = plumbline.compile(stores, backend="inductor")
    compiled(torch.ones(1, 2), torch.tensor([1]))
    with pytest.raises(IndexError) as caught:
        compiled(torch.ones(1, 2), torch.tensor([9]))
    assert caught.value.__context__ is None or caught.value.__suppress_context__
