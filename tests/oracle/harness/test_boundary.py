"""What a judged call can reach: beside its arguments, what runs with every module."""

import torch
from torch import nn

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions


def test_hooks_of_all_modules_are_rewound():
    log = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: log.append(type(module).__name__))
    try:
        model, arguments = nn.Sequential(nn.Linear(2, 2)), (torch.ones(1, 2),)
        judgement = judge_call(model, model, arguments, {}, JudgeOptions(), call_roots(model, "f", arguments, {}))
    finally:
        handle.remove()
    assert judgement.verdict.kind.name == "EQUAL"
    assert log == ["Linear", "Sequential"]


def test_without_such_hooks_they_are_no_root():
    assert set(call_roots(torch.sin, "f", (torch.ones(1),), {})) == {"arg0", "f"}
