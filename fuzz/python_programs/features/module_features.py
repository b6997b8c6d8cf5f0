"""Modules of torch: registries, buffers, hooks, modes, state dictionaries, and what users change between calls."""

from ..grammar import Feature

MODULE_FEATURES: tuple[Feature, ...] = (
    Feature(
        "parameter_containers",
        setup="""
import torch.nn as nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(2)])
        self.named = nn.ParameterDict({'a': nn.Parameter(torch.ones(3)), 'b': nn.Parameter(torch.zeros(3))})
        self.blocks = nn.ModuleList(nn.Identity() for _ in range(2))
        self.table = nn.ModuleDict([('relu', nn.ReLU()), ('tanh', nn.Tanh())])

    def forward(self, t, which='relu'):
        for row in self.rows:
            t = t + row
        for block in self.blocks[::-1]:
            t = block(t)
        return self.table[which](t * self.named['a'])


mixed_module = Mixed()
""",
        expressions="""
tensor: mixed_module(<tensor> + torch.zeros(3)).detach()
tensor: mixed_module(torch.ones(2, 3), which='tanh').detach()
tensor: mixed_module.rows[0].detach()
int: len(mixed_module.rows)
int: len(mixed_module.blocks)
zoo: list(mixed_module.named)
zoo: [name for name, _ in mixed_module.named_parameters()]
zoo: [type(m).__name__ for m in mixed_module.children()]
bool: 'a' in mixed_module.named
bool: mixed_module.rows[-1].requires_grad
""",
        statements="""
for <+str>, <+param> in mixed_module.named.items():
    log.append((<$str>, <$param>.sum().item()))
    <body>

mixed_module.rows.append(nn.Parameter(torch.ones(3)))

mixed_module.named['c'] = nn.Parameter(torch.ones(3))

with torch.no_grad():
    mixed_module.rows[0].add_(<int>)

try:
    log.append(mixed_module.table[<w>])
except KeyError as error:
    log.append(error.args)
""",
        changes="""
mixed_module.blocks.append(nn.Hardtanh())
mixed_module.rows[0] = nn.Parameter(torch.zeros(3))
mixed_module.table['relu'] = nn.Sigmoid()
mixed_module.blocks.insert(0, nn.Tanh())
mixed_module.requires_grad_(False)
del mixed_module.named['b']
""",
    ),
    Feature(
        "buffers",
        setup="""
import torch.nn as nn


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', torch.zeros(3))
        self.register_buffer('scratch', torch.ones(3), persistent=False)
        self.register_buffer('maybe', None)
        self.register_parameter('bias', None)
        self.history = []

    def forward(self, t):
        self.total.add_(t.detach().sum(0))
        self.scratch = t.detach().mean(0)
        if self.maybe is None:
            self.maybe = torch.ones(3)
        else:
            self.maybe = self.maybe + 1
        self.history.append(t.shape[0])
        return t + self.maybe


running = Running()
""",
        expressions="""
tensor: running(<tensor> + torch.zeros(3))
tensor: running.total
tensor: running.scratch
int: len(running.history)
zoo: sorted(running.state_dict())
zoo: [name for name, _ in running.named_buffers()]
bool: running.bias is None
bool: running.maybe is None
""",
        statements="""
running.total.zero_()

running.scratch = <tensor>.detach().sum(0)

running.maybe = None

try:
    running.total = <int>
    <body>
except TypeError as error:
    log.append(str(error))

log.append(running.state_dict()['total'])

try:
    running.register_buffer('total', torch.ones(1))
except KeyError as error:
    log.append(str(error))
""",
        changes="""
running.total = torch.ones(3)
running.maybe = torch.zeros(3)
running = Running()
running.history.clear()
running.load_state_dict({'total': torch.full((3,), 5.0)}, strict=False)
running.bias = nn.Parameter(torch.ones(3))
del running.scratch; running.scratch = torch.ones(3)
""",
    ),
    Feature(
        "module_hooks",
        setup="""
import torch.nn as nn
FIRED = []


def before(module, args):
    FIRED.append('before')
    return (args[0] + 1,)


def before_with_keywords(module, args, kwargs):
    FIRED.append(sorted(kwargs))
    return args, {**kwargs, 'scale': 2.0}


def after(module, args, output):
    FIRED.append(type(module).__name__)
    return output * 2


class Scaled(nn.Module):
    def forward(self, t, scale=1.0):
        return t * scale


hooked_module = nn.Sequential(Scaled(), nn.ReLU())
removable = hooked_module[0].register_forward_pre_hook(before)
""",
        expressions="""
tensor: hooked_module(<tensor>)
tensor: hooked_module[0](<tensor>, scale=<float>)
tensor: hooked_module[0].forward(<tensor>)
int: len(FIRED)
""",
        statements="""
<+handle> = hooked_module.register_forward_hook(after)
<=tensor> = hooked_module(<tensor>)
<$handle>.remove()

<+handle> = hooked_module[0].register_forward_pre_hook(before_with_keywords, with_kwargs=True)
<=tensor> = hooked_module[0](<tensor>, scale=<float>)
<body>
<$handle>.remove()

with hooked_module[1].register_forward_hook(after):
    <=tensor> = hooked_module(<tensor>)
    <body>

log.append(FIRED[-2:])
""",
        changes="""
removable.remove()
hooked_module[1].register_forward_hook(after)
hooked_module[0].register_forward_pre_hook(before_with_keywords, with_kwargs=True)
hooked_module[0] = Scaled()
FIRED.clear()
hooked_module.register_forward_hook(lambda m, a, o: None)
""",
    ),
    Feature(
        "module_modes",
        setup="""
import torch.nn as nn


class Switching(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3, momentum=0.5)
        self.flips = 0

    def train(self, mode=True):
        self.flips += 1
        return super().train(mode)

    def forward(self, t):
        return self.norm(self.drop(t)) if self.training else self.norm(t) - 1


switching = Switching()
""",
        expressions="""
tensor: switching(<tensor> + torch.zeros(2, 3)).detach()
int: switching.flips
int: int(switching.norm.num_batches_tracked)
bool: switching.training
bool: switching.drop.training
tensor: switching.norm.running_mean
""",
        statements="""
switching.train(<bool>)

switching.eval()
<=tensor> = switching(torch.ones(2, 3)).detach()
switching.train()

switching.norm.eval()

switching.drop.p = <float> % 1

was_training = switching.training
switching.training = not was_training
<body>
switching.training = was_training
""",
        changes="""
switching.eval()
switching.train()
switching.norm.eval()
switching.drop = nn.Identity()
switching.norm.momentum = None
switching.norm.track_running_stats = False
""",
    ),
    Feature(
        "named_members",
        setup="""
import torch.nn as nn


class Inner(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.arange(float(size)))

    def forward(self, t):
        return t * self.weight

    def extra_repr(self):
        return f'size={self.size}'


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Inner(3)
        self.second = Inner(3)
        self.again = self.first

    def forward(self, t):
        for name, child in self.named_children():
            t = child(t) + len(name)
        return t


outer_module = Outer()
""",
        expressions="""
tensor: outer_module(<tensor> + torch.zeros(3)).detach()
tensor: sum(p.sum() for p in outer_module.parameters()).detach()
zoo: [name for name, _ in outer_module.named_modules()]
zoo: [name for name, _ in outer_module.named_modules(remove_duplicate=False)]
zoo: dict(outer_module.named_parameters()).keys()
int: sum(1 for _ in outer_module.modules())
int: outer_module.get_submodule('second').size
bool: outer_module.again is outer_module.first
str: repr(outer_module.first)
tensor: outer_module.get_parameter('first.weight').detach()
""",
        statements="""
outer_module.apply(lambda m: log.append(type(m).__name__))

for <+param> in outer_module.parameters():
    log.append(<$param>.requires_grad)
    <body>

try:
    log.append(outer_module.third)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    log.append(outer_module.get_submodule('first.nothing'))
except AttributeError as error:
    log.append(str(error))

outer_module.first.size = <int>
""",
        changes="""
outer_module.third = Inner(3)
outer_module.again = Inner(3)
del outer_module.again
outer_module.first.weight.data.fill_(2.0)
outer_module.second = outer_module.first
setattr(outer_module, 'first', nn.Identity())
""",
    ),
    Feature(
        "state_dictionaries",
        setup="""
import copy
import torch.nn as nn
linear = nn.Linear(3, 3)
with torch.no_grad():
    linear.weight.copy_(torch.eye(3))
    linear.bias.zero_()
saved_state = copy.deepcopy(linear.state_dict())
other_state = {'weight': torch.ones(3, 3), 'bias': torch.arange(3.0)}
""",
        expressions="""
tensor: linear(<tensor> + torch.zeros(3)).detach()
tensor: linear.state_dict()['weight']
tensor: torch.func.functional_call(linear, other_state, (torch.ones(2, 3),))
int: len(saved_state)
bool: linear.state_dict()['weight'].data_ptr() == linear.weight.data_ptr()
zoo: list(linear.state_dict())
""",
        statements="""
linear.load_state_dict(saved_state)

linear.load_state_dict(other_state)
<=tensor> = linear(torch.ones(2, 3)).detach()

try:
    linear.load_state_dict({'weight': torch.ones(3, 3)})
    <body>
except RuntimeError as error:
    log.append('missing' in str(error).lower())

saved_state['bias'] = torch.full((3,), <float>)

<+module> = copy.deepcopy(linear)
log.append(<$module>(torch.ones(3)).detach())
""",
        changes="""
linear.load_state_dict(other_state)
linear.load_state_dict(saved_state)
linear.load_state_dict(other_state, assign=True)
linear.weight = nn.Parameter(torch.zeros(3, 3))
other_state['weight'] = torch.zeros(3, 3)
""",
    ),
    Feature(
        "tied_weights",
        setup="""
import torch.nn as nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(3, 3, bias=False)
        self.decode = nn.Linear(3, 3, bias=False)
        self.decode.weight = self.encode.weight

    def forward(self, t, *, tied=True):
        hidden = self.encode(t)
        return self.decode(hidden) if tied else F.linear(hidden, self.encode.weight.t())


tied = Tied()
with torch.no_grad():
    tied.encode.weight.copy_(torch.eye(3) * 2)
""",
        expressions="""
tensor: tied(<tensor> + torch.zeros(3)).detach()
tensor: tied(torch.ones(2, 3), tied=<bool>).detach()
bool: tied.encode.weight is tied.decode.weight
int: len(list(tied.parameters()))
""",
        statements="""
with torch.no_grad():
    tied.decode.weight.mul_(<float>)

tied(torch.ones(2, 3)).sum().backward()
log.append(tied.encode.weight.grad)
tied.zero_grad()

tied.encode.weight.grad = None
""",
        changes="""
tied.decode.weight = nn.Parameter(torch.ones(3, 3))
tied.encode.weight = tied.decode.weight
tied.encode = tied.decode
tied.encode.weight.data = torch.zeros(3, 3)
tied.encode.weight.requires_grad_(False)
""",
    ),
    Feature(
        "calls_of_modules",
        setup="""
import torch.nn as nn
ROUTES = []


class Overridden(nn.Module):
    def __call__(self, t, *args, **kwargs):
        ROUTES.append('call')
        return super().__call__(t, *args, **kwargs) + 1

    def forward(self, t, *rest, flag=False, **options):
        ROUTES.append(('forward', len(rest), flag, sorted(options)))
        return t * (2 if flag else 3)

    def helper(self, t):
        return self.forward(t, flag=True)


class Attributed(nn.Module):
    def __getattr__(self, name):
        if name == 'virtual':
            return 7
        return super().__getattr__(name)

    def __len__(self):
        return 0

    def forward(self, t):
        return t + self.virtual


overridden = Overridden()
attributed = Attributed()
""",
        expressions="""
tensor: overridden(<tensor>)
tensor: overridden(<tensor>, <int>, flag=<bool>, extra=1)
tensor: overridden(t=<tensor>) if <bool> and not True else x
tensor: overridden.helper(<tensor>)
tensor: attributed(<tensor>)
tensor: nn.Module.__call__(overridden, <tensor>)
int: attributed.virtual
int: len(ROUTES)
bool: bool(attributed)
func: overridden
func: attributed.forward
""",
        statements="""
log.append(ROUTES[-2:])

try:
    log.append(attributed.nothing)
    <body>
except AttributeError as error:
    log.append(str(error))

try:
    overridden()
except TypeError as error:
    log.append(str(error))

overridden.scale = <int>
log.append(overridden.scale)
""",
        changes="""
Overridden.__call__ = nn.Module.__call__
Overridden.forward = lambda self, t, *rest, flag=False, **options: t
overridden.forward = lambda t, *rest, **options: t - 5
Attributed.virtual = 1
ROUTES.clear()
attributed.virtual = 9
""",
    ),
    Feature(
        "tensor_attributes",
        setup="""
noted_tensor = torch.ones(2, 3)
noted_tensor.label = 'first'
noted_tensor.parts = [x1]


class Noted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.weight.decay = 0.5

    def forward(self, t):
        return t * self.weight.decay


noted_module = Noted()
""",
        variables={"noted_tensor": "tensor"},
        expressions="""
str: noted_tensor.label
bool: hasattr(<tensor>, 'label')
zoo: getattr(<tensor>, 'label', 'none')
tensor: noted_tensor.parts[0]
tensor: noted_module(<tensor>)
float: noted_module.weight.decay
int: len(noted_tensor.__dict__)
""",
        statements="""
noted_tensor.label = <str>

noted_tensor.count = getattr(noted_tensor, 'count', 0) + 1
log.append(noted_tensor.count)

noted_tensor.parts.append(<tensor>)

<+tensor> = noted_tensor * 2
log.append(hasattr(<$tensor>, 'label'))
<$tensor>.label = <str>
log.append(<$tensor>.label)

try:
    log.append(<tensor>.unknown)
    <body>
except AttributeError as error:
    log.append(str(error))

noted_module.weight.decay = <float>
""",
        changes="""
noted_tensor.label = 5
noted_tensor.parts = [x0]
noted_module.weight.decay = 2.0
noted_tensor = x0.clone(); noted_tensor.label = 'second'; noted_tensor.parts = [x0, x1]
noted_tensor.count = 10
""",
    ),
    Feature(
        "settings_of_modules",
        setup="""
import torch.nn as nn


class Configured(nn.Module):
    kind = 'plain'
    factors = {'plain': 1.0, 'large': 3.0}

    def __init__(self):
        super().__init__()
        self.rate = 0.5
        self.steps = 2
        self.verbose = False
        self.name_of = 'configured'
        self.options = {'shift': 1, 'on': True}
        self.choices = ['add', 'scale']
        self.activation = F.relu

    def forward(self, t):
        for _ in range(self.steps):
            t = t * self.rate
        for choice in self.choices:
            t = t + self.options['shift'] if choice == 'add' else t * self.factors[self.kind]
        if self.verbose:
            print(self.name_of, tuple(t.shape))
        return self.activation(t) if self.options['on'] else t


configured = Configured()
""",
        expressions="""
tensor: configured(<tensor>)
float: configured.rate
int: configured.steps
str: configured.kind
zoo: configured.options
""",
        statements="""
configured.rate = <float>

configured.options['shift'] += <int>

configured.verbose = <bool>

configured.choices.append('add')

configured.kind = 'large'
<=tensor> = configured(<tensor>)
configured.__dict__.pop('kind', None)
""",
        changes="""
configured.rate = 0.25
configured.steps = 3
configured.steps += 1
configured.rate *= 2
configured.verbose = True
configured.name_of = 'renamed'
configured.options['on'] = False
configured.choices = ['scale']
configured.choices.reverse()
configured.activation = torch.tanh
Configured.kind = 'large'
Configured.factors['large'] = 0.5
""",
    ),
    Feature(
        "backward_state",
        setup="""
import torch.nn as nn
leaf = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
optimizer = torch.optim.SGD([leaf], lr=0.1, momentum=0.9)
GRADIENTS = []
""",
        expressions="""
tensor: (<tensor> * leaf).detach()
bool: leaf.grad is None
bool: leaf.is_leaf
int: len(GRADIENTS)
float: optimizer.param_groups[0]['lr']
""",
        statements="""
(x * leaf).sum().backward()

optimizer.zero_grad()
((x + <int>) * leaf).pow(2).mean().backward()
optimizer.step()
<body>

<+grad> = torch.autograd.grad((leaf * <tensor>).sum(), leaf)[0]
log.append(<$grad>)

live = leaf * 2
live.retain_grad()
live.sum().backward()
log.append(live.grad)

with torch.enable_grad():
    hooked_live = leaf * x
    hooked_live.register_hook(lambda g: GRADIENTS.append(g.shape))
    <body>
    hooked_live.sum().backward()

optimizer.param_groups[0]['lr'] = abs(<float>)

log.append(leaf.grad)

with torch.no_grad():
    leaf.clamp_(-5, 5)
""",
        changes="""
leaf.grad = None
optimizer.param_groups[0]['lr'] = 0.5
leaf.requires_grad_(False)
leaf.requires_grad_(True)
optimizer.zero_grad(set_to_none=False)
GRADIENTS.clear()
""",
    ),
)
