"""What every program may use: tensors, numbers, text, containers and the statements of the language."""

from ..grammar import Feature

CORE = Feature(
    "core",
    expressions="""
tensor: <tensor> + <tensor>
tensor: <tensor> - <int>
tensor: <tensor> * <float>
tensor: <int> - <tensor>
tensor: torch.relu(<tensor>)
tensor: <tensor>.clamp(-<k>, 3)
tensor: <tensor>.abs()
tensor: -<tensor>
tensor: torch.where(<tensor> > <float>, <tensor>, <tensor>)
tensor: torch.maximum(<tensor>, <tensor>)
tensor: <tensor>.clone()
tensor: <tensor>[:, 1:2]
tensor: <tensor>[..., -1:]
tensor: <tensor>.sum(0, keepdim=True)
tensor: <tensor>.mean()
tensor: <tensor>.view(<tensor>.shape)
tensor: <tensor>.t().t()
tensor: <tensor>.detach()
tensor: (<tensor> if <bool> else <tensor>)
tensor: sum(<tensors>, start=<tensor>)
tensor: torch.zeros_like(<tensor>)
tensor: torch.full((2, 3), <float>)
tensor: torch.tensor(<float>)
int: <k>
int: <k>
int: <int> + <k>
int: <int> * <k> % 7
int: -<int>
int: <int> // 2
int: len(<ints>)
int: len(<str>)
int: len(<table>)
int: len(<tensors>)
int: len(log)
int: <tensor>.dim()
int: <tensor>.shape[-1]
int: <tensor>.numel()
int: sum(<ints>)
int: max(<ints>, default=<k>)
int: <table>.get(<key>, <k>)
int: int(<bool>)
int: (<int> if <bool> else <int>)
int: <int> ^ <k>
int: <int> << 1 & 15
int: len(<tensor>)
float: <f>
float: <f>
float: <float> + <int>
float: <float> * <f>
float: float(<int>)
float: abs(<float>)
float: <int> / 2
float: min(<float>, <f>)
bool: <int> > <k>
bool: <int> == <int>
bool: <float> < <float>
bool: not <bool>
bool: <bool> and <bool>
bool: <bool> or <bool>
bool: <k> <= <int> < 5
bool: <key> in <table>
bool: <int> in <ints>
bool: <tensor> is <tensor>
bool: <tensor>.shape == <tensor>.shape
bool: bool(<ints>)
bool: <str> < <str>
bool: isinstance(<int>, bool)
bool: len(log) % 2 == 0
bool: any(v > 1 for v in <ints>)
bool: all(<ints>)
bool: <tensor>.requires_grad
str: <w>
str: <str> + <w>
str: f'{<int>}-{<str>}'
str: f'{<float>:.2f}'
str: f'{<str>!r:>6}'
str: f'{<int>:0{<k>}d}'
str: str(<int>)
str: repr(<ints>)
str: <str>.upper()
str: ','.join(map(str, <ints>))
str: '%s/%d' % (<str>, <int>)
str: '{:>{}}'.format(<str>, <k>)
str: <str> * <k>
str: <str>.replace('a', 'z')
str: type(<tensor>).__name__
str: str(<tensor>.dtype)
ints: [<int>, <int>]
ints: [v * 2 for v in <ints>]
ints: [v for v in <ints> if v % 2]
ints: <ints> + <ints>
ints: <ints>[:]
ints: <ints>[::-1]
ints: sorted(<ints>, key=lambda v: v % 2, reverse=<bool>)
ints: <ints>[<k>:]
ints: list(range(<k>))
ints: sorted(<ints>, key=lambda v: (-v % 3, v))
ints: list(<table>.values())
ints: [i + len(w) for i, w in enumerate(<table>)]
ints: [a * b for a, b in zip(<ints>, <ints>)]
ints: [*<ints>, <int>]
ints: list(<tensor>.shape)
ints: sorted({v % 3 for v in <ints>})
table: {<key>: <int>}
table: {**<table>, <key>: <int>}
table: {w: v for w, v in zip('abc', <ints>)}
table: dict(a=<int>, b=<int>)
table: <table> | {<key>: <int>}
table: dict(sorted(<table>.items()))
table: {w: v + 1 for w, v in <table>.items() if v}
tensors: [<tensor>, <tensor>]
tensors: [t * <float> for t in <tensors>]
tensors: [*<tensors>, <tensor>]
tensors: <tensors>[:1]
tensors: [x + v for v in <ints>]
func: (lambda t: t * <float> + <int>)
func: (lambda t, k=<int>: t + k)
func: torch.relu
""",
    statements="""
<=tensor> = <tensor>

<=tensor> = <tensor>

<=int> = <int>

<=str> = <str>

<=ints> = <ints>

<=table> = <table>

<=tensors> = <tensors>

<=func> = <func>

<=tensor> = <func>(<tensor>)

<$tensor>.add_(<int>)

<$tensor>.mul_(<float>)

<$tensor>[0] = <float>

<$tensor>[:, 1:2] += <int>

log.append(<int>)

log.append(<str>)

log.append(<bool>)

log.append(<tensor>)

log.append((<int>, <float>))

log.append(<tensor> is <tensor>)

print(<str>, <int>)

print(f'{<int>=}', end=';')

if <bool>:
    <body>
else:
    <body>

if <tensor>.sum() > <k> + 0.37:
    <body>
else:
    <body>

if (<tensor> > <float>).any():
    <body>

for <+int> in range(<k>):
    <body>

for <+int> in <ints>:
    <body>

for <+int>, <+tensor> in enumerate(<tensors>):
    <body>
else:
    <body>

for <+str> in <table>:
    <body>

for <+tensor> in <tensor>:
    <body>

<=float> = <tensor>.sum().item()

<=int> = int((<tensor> > <float>).sum())

<=ints> = (<tensor> > 0).long().flatten().tolist()

<$ints>.append(<int>)

<$ints>.extend(<ints>)

<$ints>.insert(0, <int>)

<+ints> = [*<ints>]
<$ints>[-1:] = [<int>, <int>]

<+ints> = <ints>
<$ints> += [<int>]

del <$ints>[:1]

<$ints>.sort(key=lambda v: -v)

<$ints>.sort(key=lambda v: v // 2, reverse=<bool>)

<$ints>.reverse()

<$table>[<key>] = <int>

<$table>.update(b=<int>)

log.append(<$table>.pop(<key>, None))

log.append(<$table>.setdefault(<key>, <int>))

<$tensors>.append(<tensor>)

<$tensors>[0] = <tensor>

<+int> = <int>
<$int> += 1

loop:
if <bool>:
    continue

loop:
if <int> > 2:
    break

loop:
if <tensor>.sum() > 2.37:
    break

handler:
log.append(type(error).__name__)

handler:
log.append(str(error)[:60])

handler:
log.append(repr(error.__context__)[:60])

handler:
raise

handler:
raise ValueError('again') from error
""",
)
