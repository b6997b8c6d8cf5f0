"""Rows of the vocabulary that ask the autograd engine: gradients inside the program, hooks, leaves, transforms."""

from .operator_row import add_rows

_LEAF = "{f}.detach().clone().requires_grad_()"

add_rows("autograd", "detach_", "{x}.detach_()")
add_rows("autograd", "detached_leaf", f"{_LEAF} * 2")
add_rows("autograd", "new_leaf", _LEAF)
add_rows("autograd", "requires_grad_", "{f}.requires_grad_()")
add_rows("autograd", "retain_grad", "{f}.retain_grad()", results=0)
add_rows("autograd", "hook", "{f}.register_hook(lambda grad: grad * 2 + 1)", results=0)
add_rows("autograd", "hook_that_looks", "{f}.register_hook(lambda grad: None)", results=0)
add_rows("autograd", "grad_inside", f"(lambda t: torch.autograd.grad((t * t.sin()).sum(), t)[0])({_LEAF})")
add_rows(
    "autograd",
    "grad_of_grad",
    "(lambda t: torch.autograd.grad(torch.autograd.grad((t ** 3).sum(), t, create_graph=True)[0].sum(), t)[0])"
    f"({_LEAF})",
)
add_rows("autograd", "grad_kept", f"(lambda t: torch.autograd.grad((t ** 2).sum(), t, create_graph=True)[0])({_LEAF})")
add_rows("autograd", "grad_of_value", "torch.autograd.grad(({f} * {f}).sum(), {f}, create_graph=True)[0]")
add_rows(
    "autograd", "grad_unused", f"torch.autograd.grad({{g}}.sum(), {_LEAF}, allow_unused=True)[0] is None", results=0
)
add_rows("autograd", "backward_inside", f"(lambda t: ((t * 3).sum().backward(), t.grad)[1])({_LEAF})")
add_rows(
    "autograd",
    "backward_twice",
    f"(lambda t: ((t * 3).sum().backward(), t.sin().sum().backward(), t.grad)[2])({_LEAF})",
)
add_rows("autograd", "backward_of_value", "({f} * 2).sum().backward(retain_graph=True)", results=0)
add_rows("autograd", "func_grad", "torch.func.grad(lambda t: (t * t).sum())({f})")
add_rows("autograd", "func_vjp", "torch.func.vjp(torch.sin, {f})[1]({f})[0]")
add_rows("autograd", "func_jvp", "torch.func.jvp(torch.sin, ({f},), ({f},))", results=2)
add_rows("autograd", "func_vmap", "torch.func.vmap(lambda row: row.cumsum(0) + row.sum())({f})")
add_rows("autograd", "without_grad", "torch.no_grad()(torch.sin)({f})")
add_rows("autograd", "with_grad", "torch.enable_grad()(torch.sin)({f})")
add_rows("autograd", "block_without_grad", "with torch.no_grad(): {f}.mul_(2)", results=0)
add_rows("autograd", "used_thrice", "{f} * {f} + {f}.sin() * {f}")
add_rows("autograd", "checkpointed", "torch.utils.checkpoint.checkpoint(torch.sin, {f}, use_reentrant=False)")
add_rows(
    "autograd",
    "checkpointed_draws",
    "torch.utils.checkpoint.checkpoint(lambda t: t.sin() * torch.rand(()), {f}, use_reentrant=False, "
    "preserve_rng_state={flag})",
    draws=True,
)
