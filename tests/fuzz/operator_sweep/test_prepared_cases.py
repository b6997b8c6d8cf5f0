"""Cases made ready: every context is a program that eager runs, from inputs in the promised form."""

import pytest
import torch

from plumbline.fuzz.operator_sweep.cases import SweepCase, SweepTask
from plumbline.fuzz.operator_sweep.contexts import BY_NAME
from plumbline.fuzz.operator_sweep.prepared_cases import GuardedCopy, Sample, copy_of, prepare, program_of

ADD = SweepTask("add", "float32", False, "aot_eager")
SAMPLE = Sample((torch.arange(6.0).view(2, 3), torch.ones(3)), {"alpha": 2})
EXPECTED = torch.arange(6.0).view(2, 3) + 2


def prepared(context, task=ADD, sample=SAMPLE):
    return prepare(SweepCase(task, 0, context), sample)


def result(case):
    return program_of([case])([case.fresh_inputs()])[0]


@pytest.mark.parametrize("context", ["alone", "strided", "transposed", "in_place", "in_place_between", "out"])
def test_the_form_of_the_inputs_does_not_change_the_result(context):
    assert torch.equal(result(prepared(context)), EXPECTED)


def test_neighbours_keep_what_goes_in_and_show_what_comes_out():
    assert torch.equal(result(prepared("pointwise")), EXPECTED + 1)
    total, rows = result(prepared("reduced"))
    assert total == EXPECTED.sum()
    assert torch.equal(rows, EXPECTED.sum(-1))
    assert "masked_fill" in prepared("reduced").definition("f")


def test_sizes_of_inputs_are_what_their_context_says():
    assert [tuple(tensor.shape) for tensor in prepared("no_dimensions").inputs] == [(), ()]
    assert [tuple(tensor.shape) for tensor in prepared("size_0").inputs] == [(0, 3), (3,)]
    assert [tuple(tensor.shape) for tensor in prepared("one_dimension_of_size_1").inputs] == [(1, 3), (3,)]
    assert prepared("strided").inputs[0].stride() == (6, 2)
    assert prepared("transposed").inputs[0].stride() == (1, 2)


def test_a_tensor_passed_as_out_is_an_input_of_the_asked_form():
    forms = {name: prepared(name).inputs[2] for name in ("out", "out_resized", "out_wrong")}
    assert (tuple(forms["out"].shape), forms["out"].dtype) == ((2, 3), torch.float32)
    assert tuple(forms["out_resized"].shape) == (0,)
    assert forms["out_wrong"].dtype == torch.int64
    assert torch.equal(result(prepared("out_resized")), EXPECTED)


def test_twice_gives_two_results():
    first, second = result(prepared("twice"))
    assert torch.equal(first, second)
    assert first is not second


def test_equal_draws_whose_results_are_only_read_stay_two():
    task = SweepTask("nn.functional.dropout", "float32", False, "aot_eager")
    first, second = result(prepared("twice_read", task, Sample((torch.ones(64),), {"p": 0.5})))
    assert set(first.tolist()) == {1.0, 3.0}
    assert not torch.equal(first, second)


def test_indices_out_of_range_are_for_operators_with_indices():
    assert prepared("far_index") is None
    task = SweepTask("index_select", "float32", False, "aot_eager")
    case = prepared("far_index", task, Sample((torch.ones(3), 0, torch.tensor([1])), {}))
    with pytest.raises(IndexError):
        result(case)


def test_elements_that_nobody_wrote_are_not_compared():
    task = SweepTask("empty_like", "float32", False, "aot_eager")
    for context in ("alone", "twice"):
        case = prepared(context, task, Sample((torch.zeros(3),), {}))
        assert "fill_(1)" in case.definition("f")


def test_many_cases_are_one_program_with_their_own_constants():
    task = SweepTask("broadcast_tensors", "float32", False, "aot_eager")
    cases = [prepared("alone"), prepared("alone", task, Sample((torch.ones(2, 1), torch.ones(3)), {}))]
    first, second = program_of(cases)([case.fresh_inputs() for case in cases])
    assert torch.equal(first, EXPECTED)
    assert [tuple(tensor.shape) for tensor in second] == [(2, 3), (2, 3)]


@pytest.mark.parametrize(
    "tensor", [torch.arange(8.0)[::2], torch.ones(3, 1).expand(3, 4), torch.empty(0, 2), torch.tensor(1.0)]
)
def test_copies_have_the_same_strides_and_memory_of_their_own(tensor):
    copy = copy_of(tensor)
    assert torch.equal(copy, tensor)
    assert copy.stride() == tensor.stride()
    assert copy.data_ptr() != tensor.data_ptr() or not tensor.numel()


def test_every_context_has_a_reason():
    assert all(context.reason for context in BY_NAME.values())


@pytest.mark.parametrize("shape", [(3, 2), (0,), ()], ids=str)
def test_writes_outside_the_inputs_are_seen(shape: tuple[int, ...]) -> None:
    guarded = GuardedCopy(torch.rand(shape))
    guarded.copy.fill_(1)
    assert guarded.is_whole()
    guarded.copy.as_strided((1,), (1,), guarded.copy.storage_offset() + guarded.copy.numel() + 5).fill_(1)
    assert not guarded.is_whole()
