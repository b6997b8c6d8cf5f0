"""Every rule that capture knows: the modules that fill the tables, and the families of callables, in one written order.

Importing a rule module fills the tables of `rule_tables`, `classes.CONSTRUCTORS` and `tensor`; a callable registered
twice fails there, so the order of the modules has no meaning. A family answers for callables that are not fixed
objects; a test asserts that no two answer for the same callable, so a family may be added anywhere in the list.
"""

from types import ModuleType

from . import identities, wrap
from .library import (
    builtin_calls,
    cached_functions,
    conversion_calls,
    copying,
    environment,
    functional_calls,
    itertools_calls,
    logging_calls,
    numpy_arrays,
    numpy_calls,
    numpy_values,
    objects_by_content,
    pure_calls,
    reflection_calls,
    single_dispatch,
    twin_calls,
)
from .python import outer_iterators, outer_views, texts, thread_locals
from .python.objects import captured_classes, classes
from .rule_tables import CALL_RULES, CallFamily, CallRule
from .torch import (
    attention_calls,
    autograd_functions,
    collective_calls,
    constant_results,
    control_flow,
    distribution_calls,
    gradients,
    marks_inside,
    modes,
    modules,
    scripted_functions,
    stateless_calls,
    tensor_state,
    torch_calls,
    transforms,
)
from .torch.numbers import python_draws
from .torch.overrides import override_blocks, override_calls, subclass_values

RULE_MODULES: tuple[ModuleType, ...] = (
    wrap,  # real objects of Python's own types
    outer_iterators,  # iterators that come from outside
    outer_views,  # views of dictionaries that come from outside
    thread_locals,  # threading.local from outside
    identities,  # id(), thread numbers
    classes,  # object.__new__
    captured_classes,  # class statements, type(name, bases, namespace), namedtuple
    torch_calls,  # operations of the graph, torch's questions and settings
    tensor_state,  # what changes a tensor itself: data, requires_grad
    gradients,  # torch.autograd.grad, backward, hooks
    autograd_functions,  # torch.autograd.Function, checkpoints
    transforms,  # torch.func
    control_flow,  # torch.cond, while_loop
    attention_calls,  # flex_attention
    subclass_values,  # as_subclass
    override_calls,  # __torch_function__ of tensors
    override_blocks,  # blocks that switch it off, modes
    modes,  # blocks: devices, inference mode, the default dtype
    modules,  # hooks of all modules
    stateless_calls,  # torch.func.functional_call
    scripted_functions,  # torch.jit.script
    distribution_calls,  # torch.distributions' lazy properties
    numpy_arrays,  # NumPy arrays from outside
    numpy_values,  # NumPy scalars and arrays from outside
    numpy_calls,  # NumPy's functions, torch.tensor
    objects_by_content,  # matches, `list[int]`, finfo from outside
    builtin_calls,  # Python's builtins
    conversion_calls,  # numbers, math
    texts,  # str, repr, format
    functional_calls,  # functools, operator
    itertools_calls,  # itertools
    copying,  # copy.copy, copy.deepcopy
    cached_functions,  # functools.lru_cache
    single_dispatch,  # functools.singledispatch
    logging_calls,  # logging
    python_draws,  # random
    environment,  # os.environ
    reflection_calls,  # inspect, vars, frames
    pure_calls,  # functions of the standard library that run now
    twin_calls,  # functions in C whose Python text is evaluated
)

CALL_FAMILIES: tuple[CallFamily, ...] = (
    torch_calls.exporter_question_rule,  # whether torch.onnx exports
    autograd_functions.operator_rule,  # operators, and what is allowed in graphs, with a backward in Python
    torch_calls.graph_function_rule,  # torch's functions and those marked with allow_in_graph or disallow_in_graph
    constant_results.constant_result_rule,  # functions under assume_constant_result
    control_flow.loop_rule,  # torch's map and scan
    marks_inside.allowing_rule,  # allow_in_graph, called in captured code
    torch_calls.tensor_descriptor_rule,  # methods of C classes looked up on the class: torch.Tensor.add, list.append
    override_blocks.descriptor_rule,  # reading an attribute of tensors, as overrides are given it
    torch_calls.tensor_function_rule,  # methods of torch.Tensor written in Python, looked up on the class
    torch_calls.mark_on_sizes_rule,  # stock's marks that sizes stay as they are
    torch_calls.stock_settings_rule,  # blocks that change stock's settings
    transforms.transformed_function_rule,  # what vmap(f), grad(f) gave outside the compiled code
    autograd_functions.native_apply_rule,  # `Function.apply` where torch has it in C
    collective_calls.collective_rule,  # what functional collectives ask about groups
    numpy_calls.numpy_function_rule,  # NumPy's pure functions and ufuncs
    builtin_calls.dictionary_from_keys_rule,  # dict.fromkeys: a new object at every look-up
    itertools_calls.chain_from_iterable_rule,  # chain.from_iterable: a new object at every look-up
    reflection_calls.subclasses_rule,  # C.__subclasses__: a new object at every look-up
    single_dispatch.dispatch_rule,  # f.dispatch of a functools.singledispatch function
    python_draws.drawing_rule,  # methods of random.Random that draw a number
    pure_calls.pure_method_rule,  # bound methods of immutable objects: patterns, dates
    twin_calls.python_twin_rule,  # functions in C that the standard library has in Python too
)


def call_rule(function: object) -> CallRule | None:
    """Return the rule for calling a known object, None if there is none."""
    registered = CALL_RULES.get(id(function))
    if registered is not None:
        return registered[1]
    for family in CALL_FAMILIES:
        rule = family(function)
        if rule is not None:
            return rule
    return None
