"""A hook that a judged call registers has the same number in both programs: torch counts on for every hook."""

import torch

from plumbline.oracle.harness.session import JudgeSession


def test_a_call_that_registers_a_hook_is_equal():
    module = torch.nn.Linear(2, 2)

    def register(x):
        handle = module.register_forward_pre_hook(lambda *_: None)
        return x + 1, handle

    session = JudgeSession(compiler="plumbline", backend="eager")
    with session:
        _, handle = session.compiled(register)(torch.ones(2))
    assert [call.verdict.kind.value for call in session.calls] == ["EQUAL"]
    assert list(module._forward_pre_hooks) == [handle.id]
    handle.remove()
    assert not module._forward_pre_hooks
