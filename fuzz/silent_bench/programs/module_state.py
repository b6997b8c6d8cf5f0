"""Modules: buffers, flags, counters and statistics that the forward pass reads or writes."""

import torch


def test_tensor_attribute_replaced_between_calls():
    """self.cache is a new tensor before the second call; the old one must not be used."""

    class Cache(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = torch.tensor([0, 0])

        def forward(self, x, position):
            self.cache[position] = x
            return self.cache * 2

    model = Cache()
    model.forward = torch.compile(model.forward)
    model(torch.tensor([2]), torch.tensor([0]))
    model.cache = torch.tensor([0, 0])
    model(torch.tensor([1]), torch.tensor([1]))


def test_module_flag_changes_between_calls():
    """A plain boolean attribute of the module selects the branch."""

    class Adapter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.enabled = True

        def forward(self, x):
            return x * x + 1 if self.enabled else x * x

    model = Adapter()
    compiled = torch.compile(model)
    compiled(torch.arange(4.0))
    model.enabled = False
    compiled(torch.arange(4.0))


def test_statistics_of_half_precision_batch_norm():
    """Running statistics of a bfloat16 BatchNorm in training are finite numbers near 0 and 1."""
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(5).bfloat16()
    torch.compile(norm)(torch.randn(8, 5).bfloat16())


def test_batch_norm_counts_its_batches():
    """num_batches_tracked is 3 after three calls."""
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(4)
    run = torch.compile(norm)
    for _ in range(3):
        run(torch.randn(6, 4))


def test_training_mode_changes_between_calls():
    """eval() after the first call: dropout is switched off, statistics are used."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    run = torch.compile(model, options={"fallback_random": True})
    run(torch.ones(3, 4))
    model.eval()
    run(torch.ones(3, 4))


def test_parameter_replaced_between_calls():
    """weight is another parameter in the second call."""
    layer = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    run = torch.compile(layer)
    run(torch.ones(1, 2))
    layer.weight = torch.nn.Parameter(torch.full((2, 2), 3.0))
    run(torch.ones(1, 2))


def test_submodule_replaced_between_calls():
    """An activation is exchanged after the first call."""
    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU())
    run = torch.compile(model)
    run(torch.tensor([-1.0, 1.0]))
    model[1] = torch.nn.Sigmoid()
    run(torch.tensor([-1.0, 1.0]))


def test_counter_attribute_is_incremented():
    """A Python counter selects the branch of each call."""

    class Alternating(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x + 1 if self.calls % 2 else x - 1

    run = torch.compile(Alternating())
    for _ in range(3):
        run(torch.zeros(2))


def test_forward_of_the_instance_is_replaced():
    """model.forward is assigned after the first call."""
    model = torch.nn.ReLU()
    run = torch.compile(lambda x: model(x))
    run(torch.tensor([-1.0, 1.0]))
    model.forward = lambda x: x * 4
    run(torch.tensor([-1.0, 1.0]))


def test_weight_changed_in_place_between_calls():
    """An optimizer writes to the weight between two calls."""
    layer = torch.nn.Linear(3, 1)
    with torch.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    run = torch.compile(layer)
    for _ in range(2):
        optimizer.zero_grad()
        run(torch.ones(1, 3)).sum().backward()
        optimizer.step()


def test_statistics_written_before_a_failing_line():
    """The running statistics of a batch are kept although a later line raises, and the error is caught."""

    class Guarded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x, i):
            y = self.norm(x)
            try:
                return y[i]
            except IndexError:
                return y

    torch.manual_seed(0)
    torch.compile(Guarded())(torch.randn(4, 3), 9)
