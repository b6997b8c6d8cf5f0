"""Writing to outputs: every element that can be told apart changes, and so does whoever shares its memory."""

import pytest
import torch

from plumbline.fuzz.graph_programs.quick_comparison import (
    CallOutcome,
    difference_after_writes,
    raw_bytes,
    write_outputs,
)

DTYPES = (torch.float32, torch.bfloat16, torch.float64, torch.bool, torch.int8, torch.uint8, torch.int64,
          torch.complex64, torch.complex128)  # fmt: skip
MADE = {
    "dense": lambda t: t,
    "transposed": lambda t: t.t(),
    "every_second": lambda t: t[:, ::2],
    "one": lambda t: t[0, 0],
    "none": lambda t: t[:0],
    "conjugate": torch.Tensor.conj,
    "imaginary_part_of_the_conjugate": lambda t: t.conj().imag if t.is_complex() else t,
}


@pytest.mark.parametrize("view", MADE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_of_an_output_changes(dtype, view):
    """Whatever it held: a number written over an equal one changed nothing, and looked like memory of its own."""
    for number in (0, 1, 2, 4):
        output = MADE[view](torch.full((3, 4), number, dtype=dtype))
        before = raw_bytes(output)
        write_outputs(CallOutcome((output,), (), None))
        assert (raw_bytes(output) != before).any(1).all()


def test_outputs_with_other_elements_are_no_difference_of_memory():
    eager, compiled = (CallOutcome((torch.full((3,), number),), (), None) for number in (41.0, 40.0))
    before = [[one.clone() for one in outcome.tensors] for outcome in (eager, compiled)]
    write_outputs(eager)
    write_outputs(compiled)
    assert difference_after_writes(eager, before[0], compiled, before[1]) is None


def test_an_output_that_shares_memory_with_an_argument_is_one():
    argument, other = torch.zeros(3), torch.zeros(3)
    eager, compiled = CallOutcome((argument.clone(),), (argument,), None), CallOutcome((other.view(3),), (other,), None)
    before = [[one.clone() for one in outcome.tensors] for outcome in (eager, compiled)]
    write_outputs(eager)
    write_outputs(compiled)
    sentence = difference_after_writes(eager, before[0], compiled, before[1])
    assert sentence == "args[0] changes when outputs are written to, unlike eager's"
