"""Programs that keep state across calls: caches, recurrent states, averages, counters, generators, lazy parts."""

import collections
import dataclasses
import functools
import itertools
import random
import threading
import weakref
from typing import Any, NamedTuple

import numpy
import torch
from torch import nn
from torch.nn import functional

from .registry import Registry, gradients, inputs

STATEFUL = Registry()


class KeyValueCache(nn.Module):
    """Attention over all keys seen so far, kept with or without their graph."""

    def __init__(self, width: int = 4, keep_graph: bool = False) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.keep_graph = keep_graph
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).chunk(3, -1)
        self.keys.append(key if self.keep_graph else key.detach())
        self.values.append(value if self.keep_graph else value.detach())
        keys, values = torch.stack(self.keys, 1), torch.stack(self.values, 1)
        weights = torch.softmax((query[:, None] * keys).sum(-1), -1)
        return (weights[..., None] * values).sum(1)


@STATEFUL
def key_value_cache(call):
    module = KeyValueCache()
    outs = [call(module, inputs()) for _ in range(4)]
    outs[-1].sum().backward()
    return outs, module


@STATEFUL
def key_value_cache_with_graph(call):
    module = KeyValueCache(keep_graph=True)
    outs = [call(module, inputs()) for _ in range(4)]
    sum(out.sum() for out in outs).backward()
    return outs, gradients(module)


@STATEFUL
def static_cache_with_positions(call):
    cache, position = torch.zeros(2, 8, 4), torch.zeros((), dtype=torch.long)

    def step(x, cache, position):
        cache.index_copy_(1, position.reshape(1), x[:, None])
        position.add_(1)
        return cache[:, : int(position)].sum(1)

    return [call(step, inputs(), cache, position).clone() for _ in range(3)], cache, position


@STATEFUL
def cache_in_a_buffer(call):
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(4, 4))
            self.position = 0

        def forward(self, x):
            self.cache[self.position] = x.sum(0)
            self.position += 1
            return self.cache.cumsum(0)

    module = Cached()
    return [call(module, inputs()) for _ in range(3)], module


@STATEFUL
def cache_grown_by_concatenation(call):
    cache = {}

    def step(x, layer):
        cache[layer] = torch.cat([cache[layer], x]) if layer in cache else x
        return cache[layer].mean(0)

    return [call(step, inputs(), layer) for layer in (0, 1, 0, 1)], cache


@STATEFUL
def recurrent_state_in_an_attribute(call):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.hidden = nn.GRUCell(4, 4), None

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden)
            return self.hidden

    module = Recurrent()
    for _ in range(3):
        loss = call(module, inputs()).square().mean()
    loss.backward()
    return loss, module


@STATEFUL
def truncated_backpropagation(call):
    cell, optimizer_log = nn.LSTMCell(4, 4), []
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = (torch.zeros(2, 4), torch.zeros(2, 4))
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(2):
            state = call(cell, inputs(), state)
        loss = state[0].sum()
        loss.backward()
        optimizer.step()
        state = tuple(one.detach() for one in state)
        optimizer_log.append(loss.detach())
    return optimizer_log, cell, state


@STATEFUL
def truncated_backpropagation_in_a_closure(call):
    cell = nn.Linear(8, 4)
    hidden = torch.zeros(2, 4)

    def step(x):
        nonlocal hidden
        hidden = torch.tanh(cell(torch.cat([x, hidden], -1)))
        return hidden.sum()

    losses = []
    for _ in range(2):
        losses.append(call(step, inputs()))
    sum(losses).backward()
    hidden = hidden.detach()
    call(step, inputs()).backward()
    return losses, gradients(cell), hidden


@STATEFUL
def recurrent_layer_with_packed_sequences(call):
    rnn = nn.LSTM(4, 3, batch_first=True)
    packed = nn.utils.rnn.pack_padded_sequence(inputs(3, 5, 4), [5, 3, 2], batch_first=True)
    out, state = call(rnn, packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    (padded.sum() + state[0].sum()).backward()
    return padded, lengths, state, gradients(rnn)


@STATEFUL
def moving_average_of_weights(call):
    model = nn.Linear(4, 4)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def step(x):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1)
        average.update_parameters(model)
        return average(x)

    return [call(step, inputs()) for _ in range(3)], average, model


@STATEFUL
def moving_average_by_hand(call):
    model = nn.Linear(4, 4)
    shadow = {name: value.detach().clone() for name, value in model.named_parameters()}

    def update(x):
        for name, value in model.named_parameters():
            shadow[name].mul_(0.9).add_(value.detach(), alpha=0.1)
        return model(x) + shadow["bias"]

    out = [call(update, inputs()) for _ in range(2)]
    out[-1].sum().backward()
    return out, shadow, gradients(model)


@STATEFUL
def running_statistics(call):
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    out = [call(module, inputs(6, 4)) for _ in range(3)]
    out[-1].sum().backward()
    return out, module


@STATEFUL
def running_statistics_then_evaluation(call):
    module = nn.BatchNorm2d(3)
    out = [call(module, inputs(2, 3, 4, 4))]
    module.eval()
    return [*out, call(module, inputs(2, 3, 4, 4))], module


@STATEFUL
def running_statistics_by_hand(call):
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("seen", torch.tensor(0))

        def forward(self, x):
            self.seen += 1
            self.mean = self.mean + (x.detach().mean(0) - self.mean) / self.seen
            return x - self.mean

    module = Normed()
    return [call(module, inputs().requires_grad_()) for _ in range(3)], module


@STATEFUL
def codebook_with_moving_averages(call):
    class Quantizer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("codes", torch.randn(5, 4))
            self.register_buffer("counts", torch.ones(5))

        def forward(self, x):
            nearest = torch.cdist(x.float(), self.codes.float()).argmin(-1)
            hot = functional.one_hot(nearest, 5).to(x.dtype)
            with torch.no_grad():
                self.counts.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.codes.lerp_((hot.t() @ x) / self.counts[:, None], 0.1)
            chosen = self.codes[nearest]
            return x + (chosen - x).detach(), nearest

    module, x = Quantizer(), inputs(6, 4).requires_grad_()
    out = [call(module, x) for _ in range(2)]
    out[-1][0].sum().backward()
    return out, module, x


@STATEFUL
def replay_memory(call):
    memory = collections.deque(maxlen=3)

    def remember(x):
        memory.append(x.mean())
        return torch.stack(list(memory)).sum()

    return [call(remember, inputs()) for _ in range(5)], memory


@STATEFUL
def counters_of_all_kinds(call):
    counter, ordered, names = collections.Counter(), collections.OrderedDict(), set()
    grouped = collections.defaultdict(list)

    def count(x, name):
        counter[name] += 1
        ordered[name] = x.sum()
        ordered.move_to_end(name, last=False)
        names.add(name)
        grouped[name].append(x)
        return x * counter[name] + len(names)

    outs = [call(count, inputs(), name) for name in "abaca"]
    return outs, counter, ordered, names, grouped


@STATEFUL
def counter_of_itertools(call):
    numbers = itertools.count()
    return [call(lambda x: x + next(numbers), inputs()) for _ in range(3)], next(numbers)


@STATEFUL
def cycle_of_itertools(call):
    signs = itertools.cycle((1, -1))
    return [call(lambda x: x * next(signs), inputs()) for _ in range(3)]


@STATEFUL
def generator_that_is_sent_to(call):
    def accumulate():
        total = 0
        while True:
            total = total + (yield total)

    running = accumulate()
    next(running)
    return [call(lambda x: running.send(x) * 2, inputs()) for _ in range(3)]


@STATEFUL
def batches_of_a_loader(call):
    data = torch.utils.data.TensorDataset(inputs(6, 4), torch.arange(6))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    model = nn.Linear(4, 4)
    return [call(lambda b: functional.cross_entropy(model(b[0]), b[1] % 4), batch) for batch in loader]


@STATEFUL
def loader_inside_the_call(call):
    data = torch.utils.data.TensorDataset(inputs(6, 4))

    def epoch(scale):
        loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
        return [batch * scale for (batch,) in loader]

    return call(epoch, 2.0)


@STATEFUL
def iterator_of_a_loader(call):
    loader = iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs(6, 4)), batch_size=2))
    return [call(lambda: next(loader)[0] * 2) for _ in range(3)]


@STATEFUL
def generator_of_the_users(call):
    generator = torch.Generator().manual_seed(3)

    def noisy(x):
        return x + torch.randn(x.shape, generator=generator)

    return [call(noisy, inputs()) for _ in range(2)], generator


@STATEFUL
def generators_of_python_and_numpy(call):
    python, array = random.Random(1), numpy.random.default_rng(1)

    def noisy(x):
        return x * python.random() + torch.from_numpy(array.standard_normal(4)).to(x.dtype) + random.random()

    return [call(noisy, inputs()) for _ in range(2)], python.random(), array.random(), random.random()


@STATEFUL
def seeding_inside(call):
    def seeded(x):
        torch.manual_seed(7)
        return x + torch.rand(4)

    return call(seeded, inputs()), torch.rand(2)


@STATEFUL
def forked_generator(call):
    def forked(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            noise = torch.rand(4)
        return x + noise + torch.rand(4)

    return call(forked, inputs()), torch.rand(2)


@STATEFUL
def dropout_in_training(call):
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    out = [call(module, inputs()) for _ in range(2)]
    sum(one.sum() for one in out).backward()
    return out, gradients(module)


@STATEFUL
def permutations_and_draws(call):
    def draw(x):
        order = torch.randperm(x.shape[0])
        return x[order], torch.multinomial(x.exp(), 2), torch.bernoulli(x.sigmoid()), torch.empty_like(x).uniform_()

    return call(draw, inputs(4, 4)), torch.rand(1)


@STATEFUL
def cached_by_lru(call):
    @functools.lru_cache(maxsize=4)
    def table(length):
        return torch.arange(length, dtype=torch.get_default_dtype()).cos()

    return [call(lambda x: x * table(x.shape[-1]), inputs()) for _ in range(2)], table.cache_info().hits > 0


@STATEFUL
def cached_property_of_a_module(call):
    class Positions(nn.Module):
        @functools.cached_property
        def table(self):
            return torch.linspace(0, 1, 4)

        def forward(self, x):
            return x + self.table

    module = Positions()
    return [call(module, inputs()) for _ in range(2)], module


@STATEFUL
def lazily_made_table(call):
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.cos = None

        def forward(self, x):
            if self.cos is None or self.cos.shape[0] < x.shape[0]:
                self.cos = torch.arange(x.shape[0]).to(x.dtype).cos()[:, None]
            return x * self.cos[: x.shape[0]]

    module = Rotary()
    return [call(module, inputs(size, 4)) for size in (2, 3, 2)], module


@STATEFUL
def lazily_initialised_layers(call):
    module = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU())
    outs = [call(module, inputs(3, 5)) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, module


@STATEFUL
def lazily_registered_buffer(call):
    class Masked(nn.Module):
        def forward(self, x):
            if not hasattr(self, "mask"):
                self.register_buffer("mask", torch.ones(x.shape[-1]).tril(), persistent=False)
            return x * self.mask

    module = Masked()
    return [call(module, inputs(3, 4)) for _ in range(2)], module


@STATEFUL
def lazily_registered_parameter(call):
    class Growing(nn.Module):
        def forward(self, x):
            if not hasattr(self, "weight"):
                self.weight = nn.Parameter(torch.ones(x.shape[-1]))
            return x * self.weight

    module = Growing()
    outs = [call(module, inputs()) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, module


@STATEFUL
def submodule_made_in_forward(call):
    class Growing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList()

        def forward(self, x):
            self.layers.append(nn.Linear(4, 4))
            for layer in self.layers:
                x = layer(x)
            return x

    module = Growing()
    return [call(module, inputs()) for _ in range(2)], module


@STATEFUL
def dataclass_as_state(call):
    @dataclasses.dataclass
    class State:
        hidden: torch.Tensor
        step: int = 0
        log: list = dataclasses.field(default_factory=list)

    state = State(torch.zeros(4))

    def advance(x, state):
        state.hidden = state.hidden + x.mean(0)
        state.step += 1
        state.log.append(state.hidden.sum())
        return state

    return [call(advance, inputs(), state) for _ in range(2)][-1]


@STATEFUL
def frozen_slots_and_named_tuples(call):
    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        x: torch.Tensor
        y: float

    class Pair(NamedTuple):
        left: torch.Tensor
        right: Any

    return call(lambda x: Pair(x * 2, (Point(x + 1, 0.5), {"a": x, 1: None})), inputs())


@STATEFUL
def outputs_that_share(call):
    def shared(x):
        y = x * 2
        return {"y": y, "again": y, "view": y[0], "x": x, "list": [y, x[0]]}

    return call(shared, inputs())


@STATEFUL
def outputs_of_a_library(call):
    transformers_output = collections.namedtuple("transformers_output", "last hidden")
    return call(lambda x: transformers_output(x, (x, x * 2))._replace(last=x + 1), inputs())


@STATEFUL
def weak_references(call):
    class Node:
        def __init__(self, value):
            self.value = value

    live: dict = {}
    register = weakref.WeakValueDictionary(live)
    keep = []

    def note(x):
        node = Node(x * 2)
        keep.append(node)
        register[len(register)] = node
        return sum(one.value for one in register.values())

    return [call(note, inputs()) for _ in range(2)], len(register), len(keep)


@STATEFUL
def weak_reference_as_parent(call):
    class Child(nn.Module):
        def __init__(self, parent):
            super().__init__()
            self.parent = weakref.ref(parent)

        def forward(self, x):
            return x * self.parent().scale

    class Parent(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0
            self.child = Child(self)

        def forward(self, x):
            self.scale += 1
            return self.child(x)

    parent = Parent()
    return [call(parent, inputs()) for _ in range(2)]


@STATEFUL
def weak_set_of_seen_modules(call):
    seen: weakref.WeakSet[nn.Module] = weakref.WeakSet()
    module = nn.Linear(4, 4)

    def once(x):
        if module not in seen:
            seen.add(module)
            return module(x) * 2
        return module(x)

    return [call(once, torch.ones(2, 4)) for _ in range(2)], len(seen)


@STATEFUL
def threads_inside(call):
    def threaded(x):
        results = {}
        workers = [threading.Thread(target=lambda n=n: results.update({n: x * n})) for n in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return [results[n] for n in range(3)]

    return call(threaded, inputs())


@STATEFUL
def lock_around_a_counter(call):
    lock, total = threading.Lock(), torch.zeros(4)

    def guarded(x):
        with lock:
            total.add_(x.sum(0))
        return total * 1

    return [call(guarded, inputs()) for _ in range(2)], total, lock.locked()


@STATEFUL
def thread_local_counter(call):
    local = threading.local()

    def count(x):
        local.count = getattr(local, "count", 0) + 1
        return x * local.count

    return [call(count, inputs()) for _ in range(2)], local.count
