"""Modes of torch and settings of the process that a call leaves otherwise than the program does."""

import builtins
import collections
import contextvars
import copyreg
import csv
import decimal
import gc
import importlib
import io
import linecache
import locale
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings

import numpy
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from support.planted_kinds.planted_scene import PlantedScene, and_then, floats, instead, planted, scene

VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("a variable of a kind", default=0)


def twice(x):
    return x * 2


def left(change, read) -> PlantedScene:
    """A program that changes nothing, and a compiler that leaves something changed."""
    return scene(twice, and_then(lambda x: change()), floats(4), seen=lambda y: read())


def lost(change, read) -> PlantedScene:
    """A program that changes something for good, and a compiler that drops it."""

    def program(x):
        change()
        return x * 2

    return scene(program, instead(twice), floats(4), seen=lambda y: read())


@planted("modes")
def grad_mode_is_left_off() -> PlantedScene:
    return left(lambda: torch.set_grad_enabled(False), torch.is_grad_enabled)


@planted("modes")
def grad_mode_is_not_set() -> PlantedScene:
    return lost(lambda: torch.set_grad_enabled(False), torch.is_grad_enabled)


@planted("modes")
def autocast_is_left_on() -> PlantedScene:
    return left(lambda: torch.set_autocast_enabled("cpu", True), lambda: torch.is_autocast_enabled("cpu"))


@planted("modes")
def the_dtype_of_autocast_is_left() -> PlantedScene:
    return left(lambda: torch.set_autocast_dtype("cpu", torch.half), lambda: torch.get_autocast_dtype("cpu"))


@planted("modes")
def the_cache_of_autocast_is_left_off() -> PlantedScene:
    return left(lambda: torch.set_autocast_cache_enabled(False), torch.is_autocast_cache_enabled)


@planted("modes")
def the_default_dtype_is_left() -> PlantedScene:
    return left(lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype)


@planted("modes")
def the_default_dtype_is_not_set() -> PlantedScene:
    return lost(lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype)


@planted("modes")
def the_default_device_is_left() -> PlantedScene:
    return left(lambda: torch.set_default_device("meta"), lambda: torch.get_default_device().type)


@planted("modes")
def deterministic_algorithms_are_left_on() -> PlantedScene:
    return left(lambda: torch.use_deterministic_algorithms(True), torch.are_deterministic_algorithms_enabled)


@planted("modes")
def deterministic_algorithms_only_warn() -> PlantedScene:
    return left(
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        torch.is_deterministic_algorithms_warn_only_enabled,
    )


@planted("modes")
def filling_of_new_memory_is_left_off() -> PlantedScene:
    def change():
        torch.utils.deterministic.fill_uninitialized_memory = False

    return left(change, lambda: torch.utils.deterministic.fill_uninitialized_memory)


@planted("modes")
def anomaly_mode_is_left_on() -> PlantedScene:
    return left(lambda: torch.autograd.set_detect_anomaly(True), torch.is_anomaly_enabled)


@planted("modes")
def anomaly_mode_does_not_look_for_nan() -> PlantedScene:
    return left(lambda: torch.autograd.set_detect_anomaly(False, check_nan=False), torch.is_anomaly_check_nan_enabled)


@planted("modes")
def the_precision_of_products_is_left() -> PlantedScene:
    return left(lambda: torch.set_float32_matmul_precision("medium"), torch.get_float32_matmul_precision)


@planted("modes")
def the_number_of_threads_is_left() -> PlantedScene:
    return left(lambda: torch.set_num_threads(torch.get_num_threads() + 1), torch.get_num_threads)


@planted("modes")
def warnings_are_always_given() -> PlantedScene:
    return left(lambda: torch.set_warn_always(True), torch.is_warn_always_enabled)


@planted("modes")
def tiny_numbers_are_flushed_from_now_on() -> PlantedScene:
    def seen(y):
        try:
            return (torch.full((1,), 1e-40) * 1).tolist()
        finally:
            torch.set_flush_denormal(False)

    return scene(twice, and_then(lambda x: torch.set_flush_denormal(True)), floats(4), seen=seen)


@planted("modes")
def an_override_of_functions_is_left_on() -> PlantedScene:
    mode = torch.overrides.BaseTorchFunctionMode()

    def seen(y):
        depth = torch._C._len_torch_function_stack()
        for _ in range(depth):
            torch._C._pop_torch_function_stack()
        return depth

    return scene(twice, and_then(lambda x: torch._C._push_on_torch_function_stack(mode)), floats(4), seen=seen)


@planted("modes")
def hooks_for_saved_tensors_are_left_on() -> PlantedScene:
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda one: one * 3, lambda one: one)

    def seen(y):
        x = torch.ones(1, requires_grad=True)
        (x * x.clone()).sum().backward()
        while torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
            torch._C._autograd._pop_saved_tensors_default_hooks()
        return x.grad.tolist()

    return scene(twice, and_then(lambda x: hooks.__enter__()), floats(4), seen=seen)


@planted("modes")
def saved_tensors_are_hooked_no_more() -> PlantedScene:
    def program(x, w):
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one * 3, lambda one: one):
            return x * w

    x, w = floats(4).requires_grad_(), floats(4).requires_grad_()

    def seen(y):
        return torch.autograd.grad(y.sum(), x)[0].tolist()

    return scene(program, instead(lambda x, w: x * w), x, w, seen=seen)


@planted("modes")
def inference_mode_ends_too_early() -> PlantedScene:
    def program(x):
        with torch.inference_mode():
            return x * 2

    return scene(program, instead(lambda x: (x * 2).detach()), floats(4), seen=lambda y: y.is_inference())


@planted("modes")
def the_fast_path_of_transformers_is_left_off() -> PlantedScene:
    before = torch.backends.mha.get_fastpath_enabled()

    def seen(y):
        found = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(before)
        return found

    change = and_then(lambda x: torch.backends.mha.set_fastpath_enabled(not before))
    return scene(twice, change, floats(4), seen=seen)


@planted("modes")
def a_library_of_kernels_is_left_off() -> PlantedScene:
    def seen(y):
        found = torch.backends.mkldnn.enabled
        torch.backends.mkldnn.enabled = True
        return found

    def change(x):
        torch.backends.mkldnn.enabled = False

    return scene(twice, and_then(change), floats(4), seen=seen)


@planted("modes")
def which_attention_is_allowed_is_left() -> PlantedScene:
    def seen(y):
        found = torch.backends.cuda.flash_sdp_enabled()
        torch.backends.cuda.enable_flash_sdp(True)
        return found

    change = and_then(lambda x: torch.backends.cuda.enable_flash_sdp(False))
    return scene(twice, change, floats(4), seen=seen)


@planted("modes")
def how_tensors_are_printed_is_left() -> PlantedScene:
    def seen(y):
        found = repr(torch.tensor(1 / 3))
        torch.set_printoptions(profile="default")
        return found

    return scene(twice, and_then(lambda x: torch.set_printoptions(precision=9)), floats(4), seen=seen)


@planted("modes")
def distributions_check_their_arguments_from_now_on() -> PlantedScene:
    base = torch.distributions.Distribution
    base.set_default_validate_args(False)
    return left(lambda: base.set_default_validate_args(True), lambda: base._validate_args)


@planted("modes")
def distributions_check_their_arguments_no_more() -> PlantedScene:
    base = torch.distributions.Distribution
    base.set_default_validate_args(True)
    return left(lambda: base.set_default_validate_args(False), lambda: base._validate_args)


@planted("modes")
def a_hook_of_all_modules_is_left() -> PlantedScene:
    calls, handles = [], []

    def change(x):
        handles.append(torch.nn.modules.module.register_module_forward_hook(lambda *given: calls.append(1)))

    def seen(y):
        torch.nn.Identity()(floats(2))
        for handle in handles:
            handle.remove()
        return bool(calls)

    return scene(twice, and_then(change), floats(4), seen=seen)


@planted("modes")
def a_hook_of_all_optimizers_is_left() -> PlantedScene:
    calls, handles = [], []

    def change(x):
        handles.append(register_optimizer_step_post_hook(lambda *given: calls.append(1)))

    def seen(y):
        torch.optim.SGD([floats(2).requires_grad_()], 0.1).step()
        for handle in handles:
            handle.remove()
        return bool(calls)

    return scene(twice, and_then(change), floats(4), seen=seen)


@planted("modes")
def the_swapping_of_parameters_is_left_on() -> PlantedScene:
    def seen(y):
        found = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(False)
        return found

    change = and_then(lambda x: torch.__future__.set_swap_module_params_on_conversion(True))
    return scene(twice, change, floats(4), seen=seen)


# -- the process -------------------------------------------------------------------------------------------------------


@planted("process")
def an_environment_variable_is_left() -> PlantedScene:
    name = "A_VARIABLE_OF_A_KIND"
    return left(lambda: os.environ.update({name: "1"}), lambda: os.environ.get(name))


@planted("process")
def an_environment_variable_is_not_set() -> PlantedScene:
    name = "A_VARIABLE_OF_A_KIND"
    return lost(lambda: os.environ.update({name: "1"}), lambda: os.environ.get(name))


@planted("process")
def the_working_folder_is_left() -> PlantedScene:
    return left(lambda: os.chdir("/"), os.getcwd)


@planted("process")
def the_working_folder_is_not_changed() -> PlantedScene:
    return lost(lambda: os.chdir("/"), os.getcwd)


@planted("process")
def the_search_path_is_longer() -> PlantedScene:
    return left(lambda: sys.path.append("/nowhere"), lambda: len(sys.path))


@planted("process")
def the_mask_of_new_files_is_left() -> PlantedScene:
    before = os.umask(0o22)
    os.umask(before)

    def seen(y):
        return os.umask(before)

    return scene(twice, and_then(lambda x: os.umask(0o77 if before != 0o77 else 0o22)), floats(4), seen=seen)


@planted("process")
def the_recursion_limit_is_lower() -> PlantedScene:
    return left(lambda: sys.setrecursionlimit(sys.getrecursionlimit() - 7), sys.getrecursionlimit)


@planted("process")
def the_switch_interval_is_left() -> PlantedScene:
    return left(lambda: sys.setswitchinterval(0.123), sys.getswitchinterval)


@planted("process")
def the_most_digits_of_an_integer_are_left() -> PlantedScene:
    return left(lambda: sys.set_int_max_str_digits(5000), sys.get_int_max_str_digits)


@planted("process")
def the_collector_is_left_off() -> PlantedScene:
    return left(gc.disable, gc.isenabled)


@planted("process")
def when_the_collector_comes_is_left() -> PlantedScene:
    return left(lambda: gc.set_threshold(7, 7, 7), gc.get_threshold)


@planted("process")
def a_callback_of_the_collector_is_left() -> PlantedScene:
    def callback(phase, information):
        pass

    def seen(y):
        found = callback in gc.callbacks
        while callback in gc.callbacks:
            gc.callbacks.remove(callback)
        return found

    return scene(twice, and_then(lambda x: gc.callbacks.append(callback)), floats(4), seen=seen)


@planted("process")
def a_filter_of_warnings_is_left() -> PlantedScene:
    def seen(y):
        try:
            warnings.warn("a kind", UserWarning, stacklevel=1)
        except UserWarning:
            return "raised"
        return "warned"

    return scene(twice, and_then(lambda x: warnings.simplefilter("error")), floats(4), seen=seen)


@planted("process")
def the_precision_of_decimals_is_left() -> PlantedScene:
    def change():
        decimal.getcontext().prec = 7

    return left(change, lambda: str(decimal.Decimal(1) / 3))


@planted("process")
def the_precision_of_decimals_is_not_set() -> PlantedScene:
    def change():
        decimal.getcontext().prec = 7

    return lost(change, lambda: str(decimal.Decimal(1) / 3))


@planted("process")
def the_locale_is_left() -> PlantedScene:
    other = "C" if locale.setlocale(locale.LC_CTYPE) != "C" else "C.UTF-8"
    return left(lambda: locale.setlocale(locale.LC_ALL, other), lambda: locale.setlocale(locale.LC_CTYPE))


@planted("process")
def a_context_variable_is_not_set() -> PlantedScene:
    def seen(y):
        found = VARIABLE.get()
        VARIABLE.set(0)
        return found

    def program(x):
        VARIABLE.set(5)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_context_variable_has_another_value() -> PlantedScene:
    def seen(y):
        found = VARIABLE.get()
        VARIABLE.set(0)
        return found

    def program(x):
        VARIABLE.set(5)
        return x * 2

    return scene(program, and_then(lambda x: VARIABLE.set(6)), floats(4), seen=seen)


@planted("process")
def numpy_raises_from_now_on() -> PlantedScene:
    return left(lambda: numpy.seterr(divide="raise"), numpy.geterr)


@planted("process")
def how_arrays_are_printed_is_left() -> PlantedScene:
    return left(lambda: numpy.set_printoptions(precision=3), lambda: numpy.get_printoptions()["precision"])


@planted("process")
def a_handler_of_exceptions_is_left() -> PlantedScene:
    def change():
        sys.excepthook = print

    return left(change, lambda: sys.excepthook is print)


@planted("process")
def how_results_are_displayed_is_left() -> PlantedScene:
    def change():
        sys.displayhook = print

    return left(change, lambda: sys.displayhook is print)


@planted("process")
def a_handler_of_threads_exceptions_is_left() -> PlantedScene:
    def change():
        threading.excepthook = print

    return left(change, lambda: threading.excepthook is print)


@planted("process")
def a_handler_of_a_signal_is_left() -> PlantedScene:
    return left(
        lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN,
    )


@planted("process")
def standard_output_goes_elsewhere() -> PlantedScene:
    class Elsewhere:
        """Takes text."""

        def write(self, text):
            return len(text)

        def flush(self):
            pass

    def change():
        sys.stdout = Elsewhere()

    return left(change, lambda: type(sys.stdout).__name__)


@planted("process")
def logging_is_switched_off() -> PlantedScene:
    return left(lambda: logging.disable(logging.CRITICAL), lambda: logging.root.manager.disable)


@planted("process")
def the_level_of_logging_is_left() -> PlantedScene:
    return left(lambda: logging.root.setLevel(3), lambda: logging.root.level)


@planted("process")
def a_handler_of_logging_is_left() -> PlantedScene:
    handler = logging.NullHandler()
    return left(lambda: logging.root.addHandler(handler), lambda: handler in logging.root.handlers)


@planted("process")
def a_logger_of_the_programs_is_not_set() -> PlantedScene:
    logger = logging.Logger("a kind")

    def program(x):
        logger.setLevel(10)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=lambda y: logger.level)


@planted("process")
def a_filter_of_a_logger_is_lost() -> PlantedScene:
    logger = logging.Logger("a kind")

    def program(x):
        logger.addFilter(lambda record: False)
        return x * 2

    return scene(program, instead(twice), floats(4), seen=lambda y: len(logger.filters))


@planted("process")
def a_default_time_out_is_left() -> PlantedScene:
    def seen(y):
        found = socket.getdefaulttimeout()
        socket.setdefaulttimeout(None)
        return found

    return scene(twice, and_then(lambda x: socket.setdefaulttimeout(5.0)), floats(4), seen=seen)


@planted("process")
def the_largest_field_of_a_table_is_left() -> PlantedScene:
    def seen(y):
        return csv.field_size_limit(131072)

    return scene(twice, and_then(lambda x: csv.field_size_limit(77)), floats(4), seen=seen)


@planted("process")
def a_way_to_pickle_is_not_registered() -> PlantedScene:
    class Pickled:
        """Has no way of its own."""

    def seen(y):
        return Pickled in copyreg.dispatch_table and bool(copyreg.dispatch_table.pop(Pickled))

    def program(x):
        copyreg.pickle(Pickled, lambda one: (Pickled, ()))
        return x * 2

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_module_is_replaced() -> PlantedScene:
    def seen(y):
        found = "a_module_of_a_kind" in sys.modules
        sys.modules.pop("a_module_of_a_kind", None)
        return found

    def program(x):
        sys.modules["a_module_of_a_kind"] = sys
        return x * 2

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_finder_of_modules_is_left() -> PlantedScene:
    class Finder:
        """Finds nothing."""

        def find_spec(self, name, path=None, target=None):
            return None

    def seen(y):
        found = [one for one in sys.meta_path if isinstance(one, Finder)]
        for one in found:
            sys.meta_path.remove(one)
        return len(found)

    def change(x):
        sys.meta_path.append(Finder())
        importlib.invalidate_caches()

    return scene(twice, and_then(change), floats(4), seen=seen)


@planted("process")
def a_tracer_is_left() -> PlantedScene:
    def tracer(frame, event, argument):
        return None

    before = sys.gettrace()

    def seen(y):
        found = sys.gettrace() is tracer
        sys.settrace(before)
        return found

    return scene(twice, and_then(lambda x: sys.settrace(tracer)), floats(4), seen=seen)


@planted("process")
def a_builtin_is_replaced() -> PlantedScene:

    def seen(y):
        found = hasattr(builtins, "a_builtin_of_a_kind")
        if found:
            del builtins.a_builtin_of_a_kind
        return found

    def program(x):
        builtins.a_builtin_of_a_kind = 1
        return x * 2

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_line_of_source_is_forgotten() -> PlantedScene:
    def seen(y):
        return linecache.getline("<a kind>", 1), linecache.cache.pop("<a kind>", None) is not None

    def program(x):
        linecache.cache["<a kind>"] = (4, None, ["one\n"], "<a kind>")
        return x * 2

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_file_is_not_written() -> PlantedScene:

    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "text")

    def program(x):
        with open(path, "w") as file:
            file.write("1")
        return x * 2

    def seen(y):
        return os.path.exists(path), folder.name != ""

    return scene(program, instead(twice), floats(4), seen=seen)


@planted("process")
def a_position_in_a_file_is_another() -> PlantedScene:

    file = io.StringIO("one\ntwo\nthree\n")

    def program(x, file):
        file.readline()
        return x * 2

    return scene(program, and_then(lambda x, file: file.readline()), floats(4), file, seen=lambda y: file.readline())


@planted("process")
def a_counter_of_the_program_counts_twice() -> PlantedScene:
    counter = collections.Counter()

    def program(x):
        counter["calls"] += 1
        return x * 2

    def change(x):
        counter["calls"] += 1

    return scene(program, and_then(change), floats(4), seen=lambda y: dict(counter))
