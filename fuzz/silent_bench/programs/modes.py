"""Modes of torch around and inside the compiled function: grad mode, autocast, default dtype, inference mode."""

import torch


def test_no_grad_twin_is_not_merged():
    """x + 1 under no_grad and x + 1 outside differ in requires_grad."""

    def twins(x):
        with torch.no_grad():
            o = x + 1
        return o, x + 1

    torch.compile(twins)(torch.ones(3, requires_grad=True))


def test_no_grad_survives_graph_break():
    """The sin after the break is still inside no_grad."""

    def wave(x):
        with torch.no_grad():
            x = torch.sin(x)
            torch._dynamo.graph_break()
            x = torch.sin(x)
        return x

    torch.compile(wave)(torch.ones(2, requires_grad=True))


def test_enable_grad_twin_under_no_grad():
    """Called under no_grad, one of two equal sums is made under enable_grad and requires grad."""

    def twins(x):
        with torch.enable_grad():
            first = x + 1
        return first, x + 1

    with torch.no_grad():
        torch.compile(twins)(torch.ones(3, requires_grad=True))


def test_default_dtype_changes_between_calls():
    """A constant made inside has the default dtype of the moment."""
    make = torch.compile(lambda: torch.ones(2) + torch.tensor([1.0, 2.0]))
    try:
        make()
        torch.set_default_dtype(torch.float64)
        make()
    finally:
        torch.set_default_dtype(torch.float32)


def test_default_dtype_is_read_inside():
    """get_default_dtype() is no constant."""
    convert = torch.compile(lambda x: x.to(torch.get_default_dtype()))
    try:
        convert(torch.arange(3))
        torch.set_default_dtype(torch.float64)
        convert(torch.arange(3))
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast_around_the_second_call():
    """The second call is under autocast and multiplies in bfloat16."""
    torch.manual_seed(0)
    product = torch.compile(lambda a, b: a @ b)
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    product(a, b)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product(a, b)


def test_autocast_switched_off_inside():
    """Under autocast a block without it: forward and backward of the block are float32."""
    torch.manual_seed(0)
    weight = torch.randn(64, 64, requires_grad=True)

    def inner(x):
        with torch.autocast("cpu", enabled=False):
            return x.float() @ weight.T

    x = torch.randn(4, 64, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = torch.compile(inner)(x)
    result.sum().backward()


def test_grad_mode_set_inside_stays():
    """set_grad_enabled(False) as a statement stays switched off after the call."""

    def switch(x):
        torch.set_grad_enabled(False)
        return x * 2

    try:
        torch.compile(switch)(torch.ones(2, requires_grad=True))
    finally:
        torch.set_grad_enabled(True)


def test_grad_mode_changes_between_calls():
    """The result of the call under no_grad does not require grad; that of the other one does."""
    double = torch.compile(lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        double(x)
    double(x)


def test_inference_mode_inside():
    """A tensor made under inference_mode is an inference tensor."""

    def infer(x):
        with torch.inference_mode():
            return x * 2

    torch.compile(infer)(torch.ones(2))


def test_deterministic_flag_is_read_inside():
    """are_deterministic_algorithms_enabled() chooses the branch at each call."""

    def choose(x):
        return x + 1 if torch.are_deterministic_algorithms_enabled() else x - 1

    run = torch.compile(choose)
    run(torch.zeros(2))
    torch.use_deterministic_algorithms(True)
    try:
        run(torch.zeros(2))
    finally:
        torch.use_deterministic_algorithms(False)
