"""A region that torch is told to compile once is an ordinary call to us, and reads the state of each call."""

import torch

import plumbline


def test_a_nested_region_reads_the_state_of_each_call():
    state = {"step": torch.tensor(0)}

    @torch.compiler.nested_compile_region
    def region():
        return state["step"] + 1

    def twice(start):
        for _ in range(2):
            state["step"] = start
            start = region()
        return start

    compiled = plumbline.compile(twice, fullgraph=True, backend="eager")
    assert [int(compiled(torch.tensor(n))) for n in (0, 5)] == [2, 7]
    assert int(state["step"]) == 6
