"""Run a function while an exception is being handled, without raising it: its traceback and context stay."""

from collections.abc import Callable

from .instruction import decode
from .resume_code import HANDLED, ResumeLayout, make_resume_function


def _handler(run: Callable[[], object]) -> object:
    try:
        raise RuntimeError
    except BaseException:
        return run()


def _body() -> ResumeLayout:
    """Return the layout of the handler's body, which the function is entered at."""
    names = [instruction.name for instruction in decode(_handler.__code__).instructions]
    return ResumeLayout(names.index("POP_TOP", names.index("PUSH_EXC_INFO")) + 1, (HANDLED,), (), ("run",))


_ENTER = make_resume_function(decode(_handler.__code__), _body(), {}, handed=True)


def run_handling(exception: BaseException, run: Callable[[], object]) -> object:
    """Return run(), during which `sys.exc_info` shows the exception, as in an `except` block."""
    handed = [(exception, run)]
    del exception, run  # where run() raises it again, its traceback holds this frame
    return _ENTER(handed)
