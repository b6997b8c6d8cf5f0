"""Operators whose kernels read grad mode: compiled graphs run with it off, so what they saw in eager is made explicit.

`mkldnn_rnn_layer` (LSTM on CPUs) keeps its workspace, which its backward needs, and picks another algorithm only
while grad mode is on. The tracer records `plumbline::with_grad_...` where the program called it with grad mode on.
"""

from collections.abc import Callable

import torch

from ..base.own_operators import define, implement
from ..base.torch_facts import OpOverload, below_autograd, set_grad_mode


def _define(operator: OpOverload) -> OpOverload:
    schema = operator._schema
    name = "with_grad_" + schema.name.partition("::")[2]
    text = str(schema)
    define(name + text[text.index("(") :])
    implement(name, _with_grad_mode(operator), "CompositeExplicitAutograd")
    overload: OpOverload = getattr(torch.ops.plumbline, name).default
    return overload


def _with_grad_mode(operator: OpOverload) -> Callable[..., object]:
    def run(*args: object, **kwargs: object) -> object:
        before = torch.is_grad_enabled()
        set_grad_mode(True)
        try:
            with below_autograd():
                return operator(*args, **kwargs)
        finally:
            set_grad_mode(before)

    return run


WITH_GRAD_MODE: dict[OpOverload, OpOverload] = {
    operator: _define(operator) for operator in (torch.ops.aten.mkldnn_rnn_layer.default,)
}
