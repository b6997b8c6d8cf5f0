"""Training programs and scientific programs as people write them, tiny: what stock captures whole is one graph here."""

import copy
import dataclasses
import itertools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn

from support.programs import Corpus, check
from support.validated import check_stages

corpus = Corpus()
program = corpus.program


def with_model(kind, *inputs, train=True):
    """Return a maker of (seeded model, inputs...)."""

    def make():
        torch.manual_seed(3)
        return (kind().train(train), *(value.clone() for value in inputs))

    return make


def wave(*shape):
    return torch.linspace(-2, 2, math.prod(shape)).sin().reshape(shape)


def perceptron(sizes=(4, 8, 1), act=nn.Tanh):
    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), act()]
    return nn.Sequential(*layers[:-1])


# --- graphs, points and sets


class MessagePassing(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, width), nn.GRUCell(width, width)

    def forward(self, x, edges):
        source, target = edges
        messages = F.relu(self.message(torch.cat([x[source], x[target]], dim=-1)))
        total = torch.zeros_like(x).index_add(0, target, messages)
        degree = torch.zeros(x.size(0), dtype=x.dtype).scatter_add_(0, target, torch.ones(target.numel()))
        return self.update(total / degree.clamp(min=1).unsqueeze(-1), x)


EDGES = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 2, 0]])


@program(make=with_model(lambda: nn.ModuleList([MessagePassing(), MessagePassing()]), wave(4, 4), EDGES), backward=True)
def message_passing(layers, x, edges):
    for layer in layers:
        x = layer(x, edges) + x
    return x.mean(0)


@program(make=with_model(lambda: nn.Linear(4, 3), wave(4, 4), EDGES), backward=True)
def graph_convolution(linear, x, edges):
    adjacency = torch.eye(x.size(0))
    adjacency[edges[0], edges[1]] = 1.0
    scale = adjacency.sum(1).pow(-0.5)
    return scale[:, None] * adjacency * scale[None, :] @ linear(x)


class GraphAttention(nn.Module):
    def __init__(self, width=4, heads=2):
        super().__init__()
        self.linear = nn.Linear(width, width * heads, bias=False)
        self.a = nn.Parameter(torch.randn(2, 1, heads, width) * 0.3)
        self.heads = heads

    def forward(self, x, edges):
        h = self.linear(x).view(-1, self.heads, x.size(-1))
        scores = F.leaky_relu(((h * self.a[0]).sum(-1))[edges[0]] + ((h * self.a[1]).sum(-1))[edges[1]], 0.2)
        top = torch.full((x.size(0), self.heads), -math.inf).scatter_reduce(
            0, edges[1][:, None].expand_as(scores), scores, reduce="amax"
        )
        weights = (scores - top[edges[1]]).exp()
        total = torch.zeros(x.size(0), self.heads).index_add_(0, edges[1], weights)
        weights = weights / (total[edges[1]] + 1e-9)
        return torch.zeros_like(h).index_add_(0, edges[1], h[edges[0]] * weights.unsqueeze(-1)).mean(1)


@program(make=with_model(GraphAttention, wave(4, 4), EDGES), backward=True)
def graph_attention(model, x, edges):
    return model(x, edges)


class PointNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.matrix, self.head = nn.Linear(8, 9), nn.Linear(8, 2)

    def forward(self, points):
        batch = points.size(0)
        matrix = self.matrix(self.transform(points).max(2)[0])
        matrix = matrix + torch.eye(3, requires_grad=True).view(1, 9).repeat(batch, 1)
        points = torch.bmm(matrix.view(-1, 3, 3), points)
        features = torch.max(self.transform(points), 2, keepdim=False)[0]
        identity = torch.eye(3)[None]
        square = matrix.view(-1, 3, 3)
        penalty = torch.mean(torch.norm(torch.bmm(square, square.transpose(2, 1)) - identity, dim=(1, 2)))
        return F.log_softmax(self.head(features), dim=1), penalty


@program(make=with_model(PointNetwork, wave(2, 3, 5)), backward=True)
def point_network(model, points):
    scores, penalty = model(points)
    return F.nll_loss(scores, torch.tensor([0, 1])) + 0.001 * penalty


@program(
    make=with_model(lambda: nn.ModuleDict({"phi": perceptron((3, 8, 8)), "rho": perceptron((8, 4, 1))}), wave(2, 5, 3)),
    backward=True,
)
def deep_sets(parts, x):
    lengths = torch.tensor([5, 3])
    mask = torch.arange(x.size(1))[None] < lengths[:, None]
    return parts["rho"]((parts["phi"](x) * mask.unsqueeze(-1)).sum(1))


def frequencies(x, count=3):
    found = [x]
    for power in 2.0 ** torch.linspace(0, count - 1, count):
        for function in (torch.sin, torch.cos):
            found.append(function(x * power))
    return torch.cat(found, -1)


@program(make=with_model(lambda: perceptron((21, 16, 4), nn.ReLU), wave(2, 3), wave(2, 3)), backward=True)
def radiance_field(model, origins, directions, near=0.5, far=2.0, count=4):
    depths = torch.linspace(near, far, count)
    depths = depths + torch.rand(*origins.shape[:-1], count) * (far - near) / count
    points = origins[..., None, :] + directions[..., None, :] * depths[..., :, None]
    raw = model(frequencies(points.reshape(-1, 3))).reshape(*points.shape[:-1], 4)
    colour, density = torch.sigmoid(raw[..., :3]), F.relu(raw[..., 3])
    distances = torch.cat([depths[..., 1:] - depths[..., :-1], torch.full_like(depths[..., :1], 1e10)], -1)
    alpha = 1.0 - torch.exp(-density * distances)
    ones = torch.ones_like(alpha[..., :1])
    passed = torch.cumprod(torch.cat([ones, 1.0 - alpha + 1e-10], -1), -1)[..., :-1]
    weights = alpha * passed
    return (weights[..., None] * colour).sum(-2), (weights * depths).sum(-1)


# --- ways of learning


def pair_of_networks():
    return nn.ModuleDict({"generator": perceptron((2, 8, 4)), "critic": perceptron((4, 8, 1))})


@program(make=with_model(pair_of_networks, wave(3, 4)), backward=True, rounding=True)
def gradient_penalty(networks, real):
    fake = networks["generator"](torch.randn(real.size(0), 2)).detach()
    epsilon = torch.rand(real.size(0), 1)
    mixed = (epsilon * real + (1 - epsilon) * fake).requires_grad_(True)
    scores = networks["critic"](mixed)
    (gradients,) = torch.autograd.grad(
        outputs=scores, inputs=mixed, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )
    penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    return networks["critic"](fake).mean() - networks["critic"](real).mean() + 10 * penalty


@program(make=with_model(lambda: perceptron((4, 6, 1)), wave(2, 3, 4), wave(2, 3, 1)), backward=True, rounding=True)
def model_agnostic_meta_learning(model, inputs, targets):
    losses = []
    for x, y in zip(inputs, targets, strict=True):
        weights = dict(model.named_parameters())
        for _ in range(2):
            loss = F.mse_loss(torch.func.functional_call(model, weights, (x,)), y)
            gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
        losses.append(F.mse_loss(torch.func.functional_call(model, weights, (x,)), y))
    return torch.stack(losses).mean()


@program(make=with_model(lambda: perceptron((4, 6, 1)), wave(5, 4)))
def per_sample_gradients(model, x):
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, sample):
        return torch.func.functional_call(model, weights, (sample[None],)).sum()

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)


class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = perceptron((4, 6, 3))
        self.target = copy.deepcopy(self.online)
        for parameter in self.target.parameters():
            parameter.requires_grad = False

    @torch.no_grad()
    def update(self, decay=0.9):
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.data.mul_(decay).add_(fast.data, alpha=1 - decay)

    def forward(self, x):
        self.update()
        with torch.no_grad():
            goal = F.normalize(self.target(x + 0.1), dim=-1)
        return 2 - 2 * (F.normalize(self.online(x), dim=-1) * goal).sum(-1).mean()


@program(make=with_model(Averaged, wave(3, 4)), backward=True, rounding=True)
def exponential_moving_average(model, x):
    return model(x)


@program(make=with_model(lambda: perceptron((4, 6, 3)), wave(4, 4)), backward=True)
def contrastive_loss(model, x):
    z = F.normalize(torch.cat([model(x), model(x + 0.1 * torch.randn_like(x))]), dim=1)
    similarity = z @ z.T / 0.5
    similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    partner = torch.arange(len(z)).roll(len(x))
    return F.cross_entropy(similarity, partner)


@program(
    make=with_model(
        lambda: nn.ModuleDict({"policy": perceptron((4, 8, 2)), "value": perceptron((4, 8, 1))}), wave(6, 4), wave(6)
    ),
    backward=True,
)
def clipped_policy_loss(networks, states, rewards):
    values = networks["value"](states).squeeze(-1)
    advantages, running = [], torch.zeros(())
    for t in reversed(range(len(rewards))):
        following = values[t + 1].detach() if t + 1 < len(rewards) else 0.0
        delta = rewards[t] + 0.99 * following - values[t].detach()
        running = delta + 0.99 * 0.95 * running
        advantages.insert(0, running)
    advantages = torch.stack(advantages)
    returns = advantages + values.detach()
    log_probabilities = networks["policy"](states).log_softmax(-1)
    actions = torch.arange(len(states)) % 2
    chosen = log_probabilities.gather(1, actions[:, None]).squeeze(1)
    ratio = (chosen - chosen.detach() * 0.9).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    surrogate = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).mean()
    return -surrogate.mean() + 0.5 * F.mse_loss(values, returns) - 0.01 * entropy


class Pendulum:
    """A differentiable environment; state: angle and speed."""

    def __init__(self, mass=1.0, step=0.05):
        self.mass, self.step_size = mass, step
        self.elapsed = 0

    def reset(self, count):
        self.elapsed = 0
        return torch.stack([torch.linspace(-1, 1, count), torch.zeros(count)], -1)

    def step(self, state, torque):
        angle, speed = state.unbind(-1)
        speed = speed + (-9.81 * torch.sin(angle) + torque.squeeze(-1) / self.mass) * self.step_size
        angle = angle + speed * self.step_size
        self.elapsed += 1
        return torch.stack([angle, speed], -1), -(angle**2 + 0.1 * speed**2), self.elapsed >= 5


@program(make=lambda: (*with_model(lambda: perceptron((2, 8, 1)))(), Pendulum()), backward=True)
def rollout_in_an_environment(policy, environment):
    state, total, done = environment.reset(3), 0.0, False
    while not done:
        state, reward, done = environment.step(state, policy(state))
        total = total + reward
    return -total.mean()


@program(
    make=with_model(
        lambda: nn.ModuleDict({"q": perceptron((4, 8, 2)), "old": perceptron((4, 8, 2))}), wave(5, 4), wave(5, 4)
    ),
    backward=True,
)
def temporal_difference_loss(networks, states, following):
    actions, done = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.0, 0, 1, 0, 0])
    with torch.no_grad():
        best = networks["q"](following).argmax(1, keepdim=True)
        goal = 1.0 + 0.9 * networks["old"](following).gather(1, best).squeeze(1) * (1 - done)
    found = networks["q"](states)[torch.arange(len(states)), actions]
    return F.smooth_l1_loss(found, goal)


@program(make=with_model(lambda: perceptron((4, 6, 1)), wave(5, 4), wave(5, 1)), rounding=True)
def whole_training_step_by_hand(model, x, y):
    loss = F.mse_loss(model(x), y)
    gradients = torch.autograd.grad(loss, tuple(model.parameters()))
    with torch.no_grad():
        norm = torch.sqrt(sum(g.pow(2).sum() for g in gradients))
        scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.sub_(0.1 * gradient * scale)
    return loss.detach(), norm


class Coupling(nn.Module):
    def __init__(self, swap):
        super().__init__()
        self.net, self.swap = perceptron((2, 8, 4)), swap

    def forward(self, x, reverse=False):
        a, b = x.chunk(2, -1) if not self.swap else x.chunk(2, -1)[::-1]
        scale, shift = self.net(a).chunk(2, -1)
        scale = torch.tanh(scale)
        b = (b - shift) * torch.exp(-scale) if reverse else b * torch.exp(scale) + shift
        return torch.cat((b, a) if self.swap else (a, b), -1), (-scale if reverse else scale).sum(-1)


def couplings():
    return nn.ModuleList(Coupling(index % 2 == 1) for index in range(3))


@program(make=with_model(couplings, wave(5, 4)), backward=True)
def normalizing_flow(layers, x):
    total = x.new_zeros(x.shape[0])
    for layer in layers:
        x, log_determinant = layer(x)
        total = total + log_determinant
    for layer in list(layers)[::-1]:
        back, _ = layer(x, reverse=True)
    prior = -0.5 * (x**2 + math.log(2 * math.pi))
    return -(prior.sum(-1) + total).mean() + 0 * back.sum()


@program(make=with_model(lambda: nn.Linear(4, 6), wave(5, 4)), backward=True)
def distributions_and_divergences(encoder, x):
    mean, scale = encoder(x).chunk(2, -1)
    posterior = torch.distributions.Normal(mean, F.softplus(scale))
    sample = posterior.rsample()
    divergence = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0))
    categorical = torch.distributions.Categorical(logits=sample)
    return divergence.sum(-1).mean() + categorical.entropy().mean()


@program(make=with_model(lambda: perceptron((2, 8, 1)), wave(6, 2)), backward=True, rounding=True)
def physics_informed_loss(model, points):
    x = points.clone().requires_grad_(True)
    u = model(x)
    first = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)[0][:, 0]
    return ((first[:, 1] - 0.1 * second) ** 2).mean()


# --- science


@program(wave(2, 3), torch.eye(2))
def kalman_filter(measurements, covariance):
    dt, state = 0.1, torch.zeros(2)
    transition, observed = torch.tensor([[1.0, dt], [0.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    noise, found = 0.01 * torch.eye(2), []
    for z in measurements.flatten():
        state, covariance = transition @ state, transition @ covariance @ transition.T + noise
        innovation = observed @ covariance @ observed.T + 0.1
        gain = covariance @ observed.T @ torch.linalg.inv(innovation)
        state = state + (gain @ (z - observed @ state).unsqueeze(-1)).squeeze(-1)
        covariance = (torch.eye(2) - gain @ observed) @ covariance
        found.append(state)
    return torch.stack(found), covariance


@program(wave(8))
def heat_equation(u):
    for _ in range(4):
        padded = F.pad(u[None, None], (1, 1), mode="replicate")[0, 0]
        u = u + 0.2 * (padded[2:] - 2 * u + padded[:-2])
    return u


@program(make=with_model(lambda: perceptron((2, 8, 2)), wave(3, 2)), backward=True)
def neural_differential_equation(field, y, steps=3, h=0.1):
    def slope(t, state):
        return field(state) * (1 + t)

    path = [y]
    for n in range(steps):
        t = n * h
        k1 = slope(t, y)
        k2 = slope(t + h / 2, y + h / 2 * k1)
        k3 = slope(t + h / 2, y + h / 2 * k2)
        k4 = slope(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    return torch.stack(path)


@program(wave(4, 3), wave(4, 3))
def verlet_integration(positions, velocities):
    def forces(x):
        difference = x[:, None] - x[None]
        squared = difference.square().sum(-1) + torch.eye(len(x))
        pull = (squared**-3 - 0.5 * squared**-6).masked_fill(torch.eye(len(x), dtype=torch.bool), 0)
        return (pull.unsqueeze(-1) * difference).sum(1)

    force = forces(positions)
    for _ in range(3):
        positions = positions + 0.01 * velocities + 0.5e-4 * force
        following = forces(positions)
        velocities = velocities + 0.5e-2 * (force + following)
        force = following
    return positions, velocities, 0.5 * velocities.square().sum()


@program(make=lambda: (wave(4, 4) @ wave(4, 4).T + 4 * torch.eye(4), wave(4)))
def conjugate_gradients(matrix, b):
    x = torch.zeros_like(b)
    residual = b - matrix @ x
    direction, squared = residual, residual.dot(residual)
    for _ in range(3):
        product = matrix @ direction
        alpha = squared / direction.dot(product)
        x, residual = x + alpha * direction, residual - alpha * product
        before, squared = squared, residual.dot(residual)
        direction = residual + squared / before * direction
    return x


@program(wave(5, 4), wave(6, 4))
def optimal_transport(a, b):
    cost, strength = torch.cdist(a, b).pow(2), 0.5
    f, g = torch.zeros(len(a)), torch.zeros(len(b))
    for _ in range(5):
        f = -strength * torch.logsumexp((g[None] - cost) / strength - math.log(len(b)), 1)
        g = -strength * torch.logsumexp((f[:, None] - cost) / strength - math.log(len(a)), 0)
    return (torch.exp((f[:, None] + g[None] - cost) / strength) * cost).sum()


@program(wave(6, 2))
def clustering(points, count=2, rounds=3):
    centres = points[:count].clone()
    for _ in range(rounds):
        nearest = torch.cdist(points, centres).argmin(1)
        members = F.one_hot(nearest, count).to(points.dtype)
        centres = (members.T @ points) / members.sum(0).clamp(min=1)[:, None]
    return centres, nearest


@program(torch.tensor(0.3), wave(4))
def random_walk_sampler(start, noise):
    def energy(x):
        return 0.25 * x**4 - x**2

    x, accepted = start, []
    for jump in noise.unbind():
        proposal = x + 0.5 * jump
        take = torch.rand(()) < torch.exp(energy(x) - energy(proposal))
        x = torch.where(take, proposal, x)
        accepted.append(take)
    return x, torch.stack(accepted).float().mean()


@program(wave(16))
def spectral_filter(signal):
    spectrum = torch.fft.rfft(signal * torch.hann_window(16))
    cut = torch.fft.rfftfreq(16) < 0.3
    return torch.fft.irfft(spectrum * cut, n=16), spectrum.abs().pow(2).sum()


MAKES_LEAVES = ("point_network", "gradient_penalty", "physics_informed_loss")  # captured, and not traced: run eagerly


@corpus.parametrize()
def test_program(program):
    check(program)


@pytest.mark.slow
@corpus.parametrize()
def test_program_through_our_own_tracing(program):
    settings = program.settings | {"backend": "aot_eager"}
    eager = int(program.function.__name__ in MAKES_LEAVES)
    check(dataclasses.replace(program, rounding=True, settings=settings, eager=eager))


@pytest.mark.cc
@corpus.parametrize()
def test_every_stage_agrees(program):
    check_stages(program)
