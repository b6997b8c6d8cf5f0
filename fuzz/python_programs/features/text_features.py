"""Text and numbers: methods of strings, formats, whole numbers, fractions, decimals and the mathematical modules."""

from ..grammar import Feature

TEXT_FEATURES: tuple[Feature, ...] = (
    Feature(
        "string_methods",
        setup="SENTENCE = 'the quick brown  fox'",
        expressions="""
str: SENTENCE.title()
str: <str>.capitalize() + <str>.casefold()
str: <str>.ljust(<k> + 4, '.') + <str>.rjust(5)
str: <str>.zfill(<k> + 3)
str: <str>.strip('ab ') or 'empty'
str: <str>.expandtabs(2)
str: <str>.translate(str.maketrans('abc', 'xyz', ' '))
str: <str>.removeprefix('a').removesuffix('b')
str: '-'.join(SENTENCE.split(None, <k>))
str: repr(SENTENCE.rsplit(' ', <k>))
str: repr(<str>.rpartition('b'))
str: repr('a\\nb\\r\\nc'.splitlines(<bool>))
str: <str>.replace('a', '<>', <k>)
str: chr(ord('a') + <k>)
str: SENTENCE[<int>:<int>:2]
str: repr(<str>)[1:-1]
str: ''.join(reversed(<str>))
str: max(<str>, default='none')
int: SENTENCE.find(<str>)
int: SENTENCE.count(<str>)
int: SENTENCE.rfind('o', 0, <int>)
int: len(SENTENCE.split(<w> or None))
int: SENTENCE.index('quick')
bool: <str>.isalnum()
bool: <str>.isidentifier()
bool: <str>.islower() or <str>.isupper()
bool: <str>.isspace()
bool: <str> in SENTENCE
bool: <str> <= <str> != 'a'
bool: SENTENCE.endswith(('fox', <str>))
bool: '5'.isdecimal() and <str>.isascii()
ints: [ord(c) for c in <str>]
ints: [SENTENCE.index(c) for c in 'eq']
zoo: SENTENCE.split()
""",
        statements="""
try:
    log.append(SENTENCE.index(<str> + '!'))
    <body>
except ValueError as error:
    log.append(str(error))

try:
    log.append(<str> + <int>)
except TypeError as error:
    log.append(str(error))

try:
    log.append(<str>[<int>])
    <body>
except IndexError as error:
    log.append(str(error))

try:
    log.append(int(<str>, 16))
except ValueError as error:
    log.append(str(error))

try:
    log.append(float(<str>))
except ValueError as error:
    log.append(str(error))

try:
    log.append(','.join(<ints>))
except TypeError as error:
    log.append(str(error))

for <+str> in SENTENCE.partition('quick'):
    <body>

<+str> = <str>
<$str> += <w>
<$str> *= 2
log.append(<$str>)
""",
        changes="""
SENTENCE = 'other words'
SENTENCE = ''
""",
    ),
    Feature(
        "formats",
        setup="""
width_of = 7


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __format__(self, spec):
        return f'${self.amount:{spec or ".1f"}}'

    def __str__(self):
        return 'money'

    def __repr__(self):
        return 'Money()'


money = Money(2.5)
""",
        expressions="""
str: f'{money} {money!r} {money!s:>8}'
str: f'{money:.3f}'
str: f'{<int>:>{width_of}}|{<int>:<5}|{<int>:^+7}'
str: f'{<int>:,}{<int>:_}{<int>:b}{<int>:o}{<int>:X}'
str: f'{<float> % 9:{width_of}.{<k>}f}'
str: f'{<float> % 9:.1%}{<float> % 9:g}'
str: f'{<int> + 1 = }'
str: f'{<ints>!r:>12}'
str: f'{{}}{<int>}}}'
str: f'{(lambda v: v * 2)(<int>)}'
str: f'{<tensor>.shape[0]:03d}'
str: '{0[0]}-{1.amount}-{name!r}'.format([<int>], money, name=<str>)
str: '{:{fill}^{size}}'.format(<str>, fill='*', size=width_of)
str: '{!s:5}{!r}'.format(<str>, <str>)
str: '%-5s|%5.2f|%+d|%x|%%' % (<str>, <float> % 9, <int>, abs(<int>))
str: '%(a)s-%(b)05d' % {'a': <str>, 'b': <int>}
str: '%*d' % (width_of, <int>)
str: '%r' % [<int>, <str>]
str: format(<bool>, 'd')
str: format(<str>, f'>{width_of}')
str: '{:e}'.format(<int>)
str: str.format('{}', money)
str: '{a}{b}'.format_map({'a': <int>, 'b': <str>})
""",
        statements="""
print(f'{<int>:>4}', money, sep='|')

try:
    log.append(format(<str>, '5d'))
    <body>
except ValueError as error:
    log.append(str(error))

try:
    log.append('{} {}'.format(<int>))
except IndexError as error:
    log.append(str(error))

try:
    log.append('%d' % <str>)
except TypeError as error:
    log.append(str(error))

try:
    log.append('{a.nothing}'.format(a=<int>))
except AttributeError as error:
    log.append(str(error))

log.append(f'{<tensor>.sum():.2f}')

log.append(f'{<tensor>.shape}')
""",
        changes="""
width_of = 9
money = Money(10)
Money.__format__ = lambda self, spec: 'formatted ' + spec
money.amount = 4.0
""",
    ),
    Feature(
        "whole_numbers",
        setup="COUNT = 12",
        variables={"COUNT": "int"},
        expressions="""
int: (<int>).bit_length()
int: (<int>).bit_count()
int: int.from_bytes((<int>).to_bytes(8, 'little', signed=True), 'little', signed=True)
int: (<int>).__add__(<int>)
int: ~<int>
int: <int> & <int> | <int>
int: <int> >> <k>
int: -<int> % 5
int: -<int> // 3
int: int('-12') + int(<float> % 9)
int: int('ff', 16) % 7
int: round(<int> * 15, -1)
int: abs(-<int>) ** <k> % 1000
int: pow(<int>, <k>, 5)
int: divmod(-<int>, 4)[1]
int: (<int>).numerator + (<int>).denominator
int: sum(range(<int> % 9))
int: bool(<int>) + True
int: COUNT.real
int: hash(<int>)
float: (<int>).__truediv__(2)
float: <int> / (COUNT or 1)
bool: (<int>).__lt__(<int>) is True
bool: <int> == float(<int>)
bool: isinstance(True, int)
bool: (<int>).is_integer() if hasattr(<int>, 'is_integer') else True
str: bin(<int>) + oct(<int>) + hex(<int>)
str: repr((<int>).as_integer_ratio())
str: repr((<int>).to_bytes(3, 'big', signed=True))
str: str(10 ** 20 + <int>)
""",
        statements="""
try:
    log.append((<int>).to_bytes(1, 'big'))
    <body>
except OverflowError as error:
    log.append(str(error))

try:
    log.append(<int> % COUNT)
except ZeroDivisionError as error:
    log.append(str(error))

try:
    log.append(1 << <int>)
except ValueError as error:
    log.append(str(error))

try:
    log.append((<int>).nothing)
except AttributeError as error:
    log.append(str(error))

<+int> = <int>
<$int> //= 2
<$int> <<= 1
<$int> ^= 3
<$int> &= 7
log.append(<$int>)

log.append(torch.full((2,), <int> % 9) // (COUNT or 1))

log.append((<int>).__add__('a'))
""",
        changes="""
COUNT = 5
COUNT += 3
COUNT = 0
COUNT = True
""",
    ),
    Feature(
        "real_numbers",
        setup="""
import cmath
import math
import statistics
from decimal import Decimal, localcontext
from fractions import Fraction
third = Fraction(1, 3)
price = Decimal('1.10')
turn = complex(0, 1)
""",
        expressions="""
float: math.hypot(<int>, 2)
float: math.atan2(<int>, 1.5)
float: math.fsum(<ints>)
float: math.copysign(<int>, -1.0)
float: math.fmod(<int>, 3)
float: math.exp(-abs(<int>))
float: math.log(abs(<int>) + 1, 2)
float: math.degrees(<int>)
float: math.dist((0, <int>), (1, 2))
float: float(third + <int>)
float: float(price * <int>)
float: abs(turn * <int>)
float: (turn ** 2).real
float: statistics.mean([<int>, 2, 4])
float: <float>.__round__(1) if math.isfinite(<float>) else 0.5
float: float.fromhex('0x1.8p1')
int: math.comb(6, <k>) + math.perm(4, <k>)
int: math.ceil(<int> / 3) + math.trunc(-<int> / 2)
int: math.lcm(<k> + 1, 4)
int: third.numerator
int: int(price)
bool: math.isclose(<float>, <float>, abs_tol=0.5)
bool: math.isfinite(<float>)
bool: third < Fraction(<int>, 4)
bool: price == Decimal('1.1')
bool: turn == 1j
str: str(third * <int> + Fraction('1/2'))
str: str(price + Decimal(<int>))
str: str(price.quantize(Decimal('0.1')))
str: repr(Fraction(<k>, 4))
str: repr(cmath.polar(turn))[:8]
str: str(turn * <int> + 2)
str: repr(math.frexp(<int>))
str: repr(math.modf(<int> / 2))
str: (<int> / 4).hex()
str: repr((<int> / 4).as_integer_ratio())
str: repr(divmod(<int> + 0.5, 2))
zoo: third
zoo: turn
""",
        statements="""
try:
    log.append(math.sqrt(-<int>))
    <body>
except ValueError as error:
    log.append(str(error))

try:
    log.append(Fraction(1, <int>))
except ZeroDivisionError as error:
    log.append(str(error))

try:
    log.append(<float> / <int>)
    log.append(1.5 // <int>)
except ZeroDivisionError as error:
    log.append(str(error))

try:
    log.append(math.exp(1000 + <int>))
except OverflowError as error:
    log.append(str(error))

try:
    log.append(int(float('nan')))
except ValueError as error:
    log.append(str(error))

log.append(statistics.median(<ints> or [1]))

log.append(x * float(third))

log.append(round(2.5) + round(-0.5) + round(<float> % 7, 2))

with localcontext() as <+context>:
    <$context>.prec = 4
    log.append(str(Decimal(1) / Decimal(7)))
    <body>

log.append(turn < 1)
""",
        changes="""
third = Fraction(2, 7)
price = Decimal('-3.25')
turn = complex(1, -2)
third = 0.25
""",
    ),
    Feature(
        "regular_expressions",
        setup="""
import re
from string import Formatter, ascii_lowercase, capwords
PAIR = re.compile(r'(\\w+)=(\\d*)')
""",
        expressions="""
str: re.sub('[aeiou]', lambda m: m.group().upper(), <str>)
str: re.escape(<str> + '.')
str: PAIR.sub(r'\\2:\\1', 'a=1 b=2')
str: capwords(<str>)
str: ascii_lowercase[<k>:<int>]
int: len(re.findall('a|b', <str>))
int: PAIR.groups
bool: re.fullmatch('[ab ]*', <str>) is not None
bool: bool(PAIR.search(<str>))
zoo: re.split('[ -]+', <str> + '-x y')
zoo: PAIR.findall('a=1,bc=,d=30')
zoo: [m.groups() for m in PAIR.finditer('q=4 r=5')]
""",
        statements="""
<+match> = PAIR.match('key=12')
log.append((<$match>[1], <$match>.span(2), <$match>.groups(), <$match>.start()))
<body>

try:
    re.compile('(' + <str>)
    <body>
except re.error as error:
    log.append(str(error))

for <+match> in re.finditer('[a-z]', <str>):
    log.append(<$match>.group())
    <body>

log.append([part[1] for part in Formatter().parse('{a} {b:>3}')])
""",
        changes="""
PAIR = re.compile('(x)(y)?')
PAIR = re.compile(r'(\\w)=(\\d)', re.IGNORECASE)
""",
    ),
)
