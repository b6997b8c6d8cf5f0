"""Tensors and modules: state of modules, hooks, aliases, gradients, dtypes, modes."""

from ..grammar import Feature

TORCH_FEATURES: tuple[Feature, ...] = (
    Feature(
        "module",
        setup="""
import torch.nn as nn


class Net(nn.Module):
    factor = 2

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        with torch.no_grad():
            self.lin.weight.copy_(torch.eye(3) * 2)
            self.lin.bias.fill_(1.0)
        self.register_buffer('steps', torch.zeros(()))
        self.register_buffer('mean', torch.zeros(3), persistent=False)
        self.calls = 0
        self.modes = []
        self.act = nn.ReLU()
        self.extra = None

    def forward(self, t, scale=None):
        self.calls += 1
        self.steps += 1
        self.mean = self.mean * 0.5 + t.detach().mean(0) * 0.5
        self.modes.append(self.training)
        if scale is not None:
            t = t * scale
        if self.extra is not None:
            t = self.extra(t)
        return self.act(self.lin(t)) * self.factor


net = Net()
""",
        expressions="""
tensor: net(<tensor>).detach()
tensor: net(<tensor>, scale=<float>)
tensor: net.forward(<tensor>)
tensor: net.lin.weight
tensor: net.mean
tensor: net.steps
int: net.calls
int: len(net.modes)
int: len(list(net.parameters()))
bool: net.training
bool: hasattr(net, 'extra')
bool: isinstance(net.lin, nn.Linear)
str: repr([name for name, _ in net.named_buffers()])
str: type(net.act).__name__
str: repr(net)
func: net
func: net.act
zoo: net
zoo: net.lin
ints: [p.numel() for p in net.parameters()]
""",
        statements="""
net.calls += 1

net.factor = <int>

net.steps.zero_()

net.mean = <tensor>.detach().sum(0)

net.train(<bool>)

log.append(net.state_dict()['steps'])

try:
    <=tensor> = net(<tensor>)
    <body>
    log.append(<tensor>[torch.tensor([<int>])])
except IndexError as error:
    log.append(net.calls)
    <body>

with torch.no_grad():
    net.lin.weight.mul_(<float>)
    <body>

for <+str>, <+tensor> in net.named_parameters():
    log.append(<$str>)
    <body>

log.append([type(m).__name__ for m in net.modules()])

net.extra = <func>
""",
        changes="""
net.eval()
net.train()
net.act = nn.Tanh()
net.factor = 5
Net.factor = 7
net.extra = nn.Dropout(0.5)
net.extra = None
net.lin = nn.Linear(3, 3, bias=False).requires_grad_(False).apply(lambda m: m.weight.data.fill_(0.5))
net.lin.weight.data.mul_(2)
net.steps = torch.tensor(5.0)
net.requires_grad_(False)
Net.forward = lambda self, t, scale=None: t + 1
net.register_forward_hook(lambda m, args, out: out + 1)
net.lin.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
net.double().float()
net.act.inplace = True
""",
    ),
    Feature(
        "layers",
        setup="""
import torch.nn as nn
torch.manual_seed(0)
norm = nn.BatchNorm1d(3)
drop = nn.Dropout(0.5)
stack = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.25))
parts = nn.ModuleList([nn.Linear(3, 3), nn.Identity()])
named = nn.ModuleDict({'a': nn.Tanh(), 'b': nn.LayerNorm(3)})
params = nn.ParameterList([nn.Parameter(torch.ones(3))])
""",
        expressions="""
tensor: norm(<tensor> + torch.zeros(2, 3)).detach()
tensor: drop(<tensor>)
tensor: stack(<tensor> + torch.zeros(2, 3)).detach()
tensor: parts[<k> % 2](<tensor> + torch.zeros(3)).detach()
tensor: named[<key> if <key> in named else 'a'](<tensor> + torch.zeros(3)).detach()
tensor: norm.running_mean
tensor: params[0].detach()
int: int(norm.num_batches_tracked)
int: len(stack)
int: len(parts)
bool: 'a' in named
bool: drop.training
str: repr(list(named))
zoo: norm
zoo: stack[0]
zoo: params
tensors: [m(torch.ones(2, 3)).detach() for m in parts]
""",
        statements="""
<=tensor> = norm(<tensor> + torch.zeros(2, 3)).detach()

for <+layer> in stack:
    <=tensor> = <$layer>(torch.ones(2, 3)).detach()
    <body>

for <+str>, <+layer> in named.items():
    log.append(<$str>)

try:
    <=tensor> = norm(<tensor> + torch.zeros(2, 3)).detach()
    <body>
    log.append(<tensor>[torch.tensor([<int>])])
except IndexError as error:
    log.append(int(norm.num_batches_tracked))
    <body>

drop.p = 0.25

norm.reset_running_stats()
""",
        changes="""
norm.eval()
norm.train()
drop.eval()
drop.p = 0.0
stack.eval()
stack.append(nn.Tanh())
parts.append(nn.ReLU())
named['c'] = nn.ReLU()
norm.momentum = None
stack[1] = nn.Identity()
del named['b']
params.append(nn.Parameter(torch.zeros(3)))
""",
    ),
    Feature(
        "aliases",
        setup="""
base = torch.zeros(4, 3)
view = base[:2]
saved = [view, base]
""",
        variables={"base": "tensor", "view": "tensor"},
        expressions="""
tensor: base[1:3]
tensor: view.view(3, 2).view(2, 3)
tensor: <tensor>.expand_as(<tensor>) if <bool> else base[:2]
tensor: <tensor>.as_strided((1, 3), (0, 1)) if <bool> else view
tensor: saved[0]
tensor: base.narrow(0, <k> % 2, 2)
tensor: base.unbind(0)[<k>]
tensor: torch.split(base, 2)[1]
bool: <tensor>._is_view()
bool: <tensor>._base is <tensor>
bool: <tensor>.data_ptr() == <tensor>.data_ptr()
bool: <tensor>.is_contiguous()
int: <tensor>.storage_offset()
""",
        statements="""
<=tensor> = base[<k> % 2]
<$tensor>.add_(1)
log.append(base.sum())

base.fill_(<float>)

view[0] += <int>

base[1:3].mul_(2).add_(1)

saved[0] = <tensor>

<+tensor> = <tensor>
<$tensor>.data = torch.ones(2, 3)

torch.add(<tensor>, 1, out=base[:2])

base.copy_(torch.arange(12.0).view(4, 3))

base.t().add_(<int>)

base.resize_(base.shape)

<+tensor>, <+tensor> = base.chunk(2)
<$tensor>.zero_()

<$tensor>.unsqueeze_(0).squeeze_(0)
""",
        changes="""
base[0] = 7
view = base[1:3]
view = torch.ones(2, 3)
saved = [x0, x1]
base = torch.ones(4, 3)
base = torch.arange(12.0).view(3, 4).t()
""",
    ),
    Feature(
        "gradients",
        setup="""
weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
SEEN = []


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, k):
        ctx.k = k
        return t * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.k, None
""",
        expressions="""
tensor: <tensor> * weight
tensor: Doubled.apply(weight, <int>)
tensor: torch.autograd.grad((weight * <tensor>).sum(), weight)[0]
bool: weight.grad is None
bool: (weight * 2).requires_grad
bool: torch.is_grad_enabled()
tensor: weight.detach()
zoo: weight
""",
        statements="""
(<tensor> * weight).sum().backward()

log.append(weight.grad)

weight.grad = None

with torch.no_grad():
    weight.add_(<int>)

<+loss> = (Doubled.apply(weight, 3) * <tensor>).sum()
<body>
<$loss>.backward()

try:
    <body>
    weight.add_(1)
except RuntimeError as error:
    log.append(str(error)[:40])
    <body>

<+live> = (<tensor> * weight)
<$live>.register_hook(lambda g: SEEN.append(g.sum()))
<$live>.sum().backward()

torch.set_grad_enabled(<bool>)
log.append(torch.is_grad_enabled())
torch.set_grad_enabled(True)

log.append(<tensor>.grad_fn is None)
""",
        changes="""
weight.grad = None
weight.requires_grad_(False)
weight = torch.ones(3, requires_grad=True)
weight.data.zero_()
""",
    ),
    Feature(
        "dtypes",
        setup="""
whole_numbers = torch.tensor([3, -1, 2])
mask = torch.tensor([True, False, True])
half = torch.tensor([1.5, 2.0], dtype=torch.float16)
""",
        expressions="""
tensor: whole_numbers.float()
tensor: <tensor>.double().float()
tensor: mask.float() * <tensor>
tensor: <tensor>.masked_fill(mask, <float>)
tensor: <tensor>.to(torch.float32)
tensor: <tensor>.type_as(x)
int: int(whole_numbers[<k> % 3])
int: whole_numbers.sum().item()
ints: whole_numbers.tolist()
bool: bool(mask[<k> % 3])
bool: <tensor>.dtype is torch.float32
bool: <tensor>.is_floating_point()
str: str(torch.result_type(<tensor>, <int>))
zoo: half
zoo: whole_numbers
zoo: mask
tensor: whole_numbers[mask].float().sum()
""",
        statements="""
log.append(whole_numbers // 2)

log.append(whole_numbers % 3 + <int>)

log.append(whole_numbers / <int>)

whole_numbers.add_(<int>)

mask.logical_not_()

try:
    <body>
    whole_numbers.mul_(<float>)
    <body>
except RuntimeError as error:
    log.append(str(error))

log.append(half * <int>)

log.append(mask & (whole_numbers > <int>))

log.append(1 - whole_numbers)

log.append(whole_numbers << 1)

log.append(torch.tensor([<int>, <int>]).float() / <float>)

log.append(<tensor>.argmax())

log.append(<tensor>.max(-1))

log.append(torch.nonzero(mask))

log.append(whole_numbers[mask])

log.append(<tensor>.to(torch.int64).bitwise_and(3))

log.append(torch.arange(<int> % 6))

log.append(torch.unique(whole_numbers))
""",
        changes="""
whole_numbers = torch.tensor([0, 0, 5])
whole_numbers = whole_numbers.int()
mask = torch.tensor([False, False, False])
""",
    ),
    Feature(
        "numbers_that_vary",
        setup="""
rate = 0.5
width = 2
ratios = [0.1, 0.2]
""",
        expressions="""
float: rate
float: ratios[0]
int: width
tensor: <tensor> * rate + width
tensor: <tensor> ** width
tensor: torch.full((2, 3), rate)
tensor: torch.zeros(width % 4, 3).sum(0)
tensor: <tensor>.clamp(max=rate)
tensor: <tensor>.repeat(1, width % 3 + 1)[:, :3]
tensor: F.pad(<tensor>, (0, width % 2))[..., :3]
tensor: <tensor>.roll(width, -1)
tensor: torch.arange(width % 9 + 3)[:3] + <tensor>
ints: list(range(width % 9))
bool: rate > 1
int: round(rate * 4)
""",
        statements="""
rate_now = rate * <float>
<=tensor> = <tensor> / (abs(rate_now) + 1)

for <+int> in range(width % 5):
    <body>

log.append((type(rate).__name__, type(width).__name__, hasattr(rate, '__len__'), hasattr(width, '__add__')))

log.append(rate.is_integer() if isinstance(rate, float) else width.bit_length())

log.append(getattr(width, 'real', None))

log.append(f'{rate:.3f} {width:03d}' if isinstance(rate, float) else str(rate))

log.append(divmod(width, 3))

log.append(hash(rate) == hash(float(rate)))

log.append(-width // 2)

log.append({width: 'w', rate: 'r'})

log.append(<str>[width % 2:])
""",
        changes="""
rate = 0.75
rate = 1.25
rate = -2.0
width = 3
width = 4
width += 1
rate *= 1.5
ratios[0] += 0.25
rate = 2
""",
    ),
    Feature(
        "hooks",
        setup="""
import torch.nn as nn
HOOKED = []
block = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU())
with torch.no_grad():
    block[0].weight.copy_(torch.eye(3))


def note_hook(module, args, output):
    HOOKED.append(type(module).__name__)
    return output + 1


handle = block.register_forward_hook(note_hook)
""",
        expressions="""
tensor: block(<tensor> + torch.zeros(3)).detach()
int: len(HOOKED)
zoo: handle
tensor: block[0](<tensor> + torch.zeros(3)).detach()
""",
        statements="""
log.append(HOOKED[-1:])

<=tensor> = block(<tensor> + torch.zeros(3)).detach()

<+hook> = block[1].register_forward_pre_hook(lambda m, args: (args[0] - <int>,))
<=tensor> = block(<tensor> + torch.zeros(3)).detach()
<$hook>.remove()

block._forward_hooks.clear()
""",
        changes="""
handle.remove()
handle = block[0].register_forward_hook(note_hook)
HOOKED.clear()
note_hook.__code__ = (lambda module, args, output: output - 1).__code__
block.register_forward_hook(lambda m, a, o: o * 2, prepend=True)
block.register_forward_pre_hook(lambda m, a, k: (a, k), with_kwargs=True)
""",
    ),
    Feature(
        "conjugates",
        setup="""
pairs = torch.complex(torch.arange(3.0), torch.ones(3)).conj()
""",
        expressions="""
bool: pairs.is_conj()
bool: pairs.imag.is_neg()
bool: pairs.resolve_conj() is pairs
tensor: pairs.imag.sum() * <tensor>
tensor: (pairs * <float>).real
tensor: torch.func.jvp(lambda t: (t * <float>).sum() * t, (<tensor>,), (<tensor>,))[1]
""",
        statements="""
pairs.mul_(2)
<body>

plain_pairs = pairs.resolve_conj()
plain_pairs[0] = <float>
log.append(pairs[0].real)
""",
        changes="""
pairs = torch.complex(torch.ones(4), torch.arange(4.0))
pairs = pairs.conj()
pairs = torch.complex(torch.ones(2), torch.ones(2)).conj()[1:]
""",
    ),
)
