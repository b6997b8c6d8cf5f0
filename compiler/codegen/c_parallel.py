"""Sharing a kernel between threads: one outermost loop is cut into equal runs, by torch's own OpenMP pool.

Results never depend on the number of threads: only kept points are shared out, no reduction is cut.  The pool is
entered by GOMP's own calls through the address table, so there is one pool in the process, torch's, and
`torch.set_num_threads` holds for our kernels too.  With one thread the kernel is an ordinary call.
"""

from __future__ import annotations

from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Extent, Size, count_text, floor_quotient, hint_of
from .c_functions.c_library import Library
from .kernel_plan import POINTS_PER_THREAD
from .kernel_shape import KernelShape

_WRAPPER = """struct {name}_job {{ void **p;{field} int failed; }};
static void {name}_thread(void *data) {{
  struct {name}_job *job = data;
  {name}_run(job->p{given}, ((int (*)(void))plumbline_functions[{number}])(),
    ((int (*)(void))plumbline_functions[{count}])(), &job->failed);
}}
static int {name}(void **p{taken}) {{{sizes}
  struct {name}_job job = {{p{value}, 0}};
  int threads = ((int (*)(void))plumbline_functions[{most}])();
  if (threads > {limit}) threads = {limit};
  if (threads > 1)
    ((void (*)(void (*)(void *), void *, unsigned, unsigned))plumbline_functions[{start}])(
      {name}_thread, &job, threads, 0);
  else {name}_run(p{value}, 0, 1, &job.failed);
  return job.failed;
}}"""


def wrapper_text(name: str, library: Library, shape: KernelShape, limit: int, sizes: str) -> str:
    """Return `static int <name>(void **p)`, which runs `<name>_run(p, thread, threads, error)` in as many threads.

    sizes: the C lines that name dynamic sizes, from the array z that such kernels take behind p; else empty.
    """
    most = floor_quotient(shape.points, POINTS_PER_THREAD)
    bound: Extent | str = min(hint_of(most), limit) if limit else most
    if isinstance(most, Size):
        bound = f"smaller(smaller({most}, {limit or 1 << 16}), 65536)"
    return _WRAPPER.format(
        name=name,
        number=library.address("omp_get_thread_num"),
        count=library.address("omp_get_num_threads"),
        most=library.address("omp_get_max_threads"),
        start=library.address("GOMP_parallel"),
        limit=bound,
        field=" const long long *z;" if sizes else "",
        given=", job->z" if sizes else "",
        taken=", const long long *z" if sizes else "",
        value=", z" if sizes else "",
        sizes=f"\n{sizes}" if sizes else "",
    )


def range_text(symbol: Symbol, lanes: int) -> str:
    """Return the C declarations of `begin` and `end`: this thread's share, whole vector steps."""
    steps = count_text(floor_quotient(symbol.size + lanes - 1, lanes))
    share = f"const long long begin = {lanes}LL * ({steps} * thread / threads)"
    last = f"{lanes}LL * ({steps} * (thread + 1) / threads)"
    return f"  {share}, last = {last}, end = last < {symbol.size} ? last : {symbol.size};"
