"""Places of state in tensors, modules and torch itself, and in containers of many kinds."""

import os

import torch

from .guard_slots import add_slot


def put_back() -> None:
    """Set what slots change in torch and in the process to where it started."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(1)
    torch.set_anomaly_enabled(False)
    torch.backends.mkldnn.set_flags(True)  # type: ignore[no-untyped-call]  # torch has no types here
    vars(torch.nn.modules.module)["_global_forward_hooks"].clear()
    os.environ.pop("PLUMBLINE_FUZZ_SLOT", None)


# -- tensors -----------------------------------------------------------------------------------------------------------

add_slot(
    "tensor_kind",
    (
        "total = total + (1.0 if kept.is_leaf else 2.0)",
        "total = total + (1.0 if kept.is_conj() else 2.0)",
        "total = total + (1.0 if kept.is_complex() else 2.0)",
        "total = total + (1.0 if kept.device.type == 'cpu' else 2.0)",
        "total = total + (1.0 if isinstance(kept, torch.nn.Parameter) else 2.0)",
        "total = total + (1.0 if type(kept) is torch.Tensor else 2.0)",
        "total = total + (1.0 if kept.is_neg() else 2.0)",
        "total = total + kept.element_size()",
        "total = total + (1.0 if kept.is_inference() else 2.0)",
        "total = total + (1.0 if kept.layout == torch.strided else 2.0)",
        "total = total + (1.0 if kept.is_contiguous(memory_format=torch.channels_last) else 2.0)",
    ),
    "kept = torch.ones(2, 2, 2, 2)",
    "kept = torch.nn.Parameter(torch.ones(2, 2, 2, 2))",
    "kept = torch.ones(2, 2, 2, 2, dtype=torch.complex64)",
    "kept = torch.ones(2, 2, dtype=torch.complex64).conj()",
    "kept = torch.ones(2, 2, dtype=torch.complex64).conj().imag",
    "kept = torch.ones(2, 2, device='meta')",
    "kept = torch.ones(2, 2, 2, 2).to(memory_format=torch.channels_last)",
    "kept = torch.eye(2).to_sparse()",
    "kept = torch.ones(2, 2).as_subclass(Sub)",
    "kept = made_in_inference()",
    "kept = torch.ones(2, 2, requires_grad=True) * 2",
    setup="class Sub(torch.Tensor):\n    pass\n\n\ndef made_in_inference():\n    with torch.inference_mode():\n"
    "        return torch.ones(2, 2)",
)
add_slot(
    "gradient_of_a_tensor",
    "total = total + (1.0 if leaf.grad is None else leaf.grad)",
    "leaf.grad = None",
    "leaf.grad = torch.ones(1, dtype=torch.float32, device='cpu')",
    "leaf.grad = torch.full((1,), 3.0, dtype=torch.float32, device='cpu')",
    setup="leaf = torch.zeros(1, requires_grad=True, dtype=torch.float32, device='cpu')",
)
add_slot(
    "requires_grad_flipped",
    "total = total + (1.0 if leafy.requires_grad else 2.0)",
    "leafy.requires_grad_(True)",
    "leafy.requires_grad_(False)",
    setup="leafy = torch.zeros(1, requires_grad=True)",
)
add_slot(
    "data_of_a_tensor",
    "total = total + held",
    "held.data = torch.ones(1, device='cpu')",
    "held.data = torch.full((1,), 2.0, device='cpu')",
    "held.data = torch.ones(1, dtype=torch.float64, device='cpu')",
    "held.data = torch.ones(2, 1, device='cpu')",
    setup="held = torch.ones(1, device='cpu')",
)
add_slot(
    "attribute_of_a_tensor",
    "total = total + tagged.tag",
    "tagged.tag = 1.0",
    "tagged.tag = 2.0",
    setup="tagged = torch.ones(1)\ntagged.tag = 1.0",
)
add_slot(
    "overlapping_tensors",
    "left.mul_(2)\ntotal = total + right",
    "left, right = torch.ones(3), torch.ones(3)",
    "left = right = torch.ones(3)",
    "left = torch.ones(3); right = left[:]",
    "left = torch.ones(6)[:3]; right = left",
    setup="left, right = torch.ones(3), torch.ones(3)",
    moving=True,
    rewound=False,
)
add_slot("dtype_object", "total = total.to(wanted)", "wanted = torch.float32", "wanted = torch.float64")
add_slot(
    "generator_state", "total = total + torch.rand(1)", "torch.manual_seed(0)", "torch.manual_seed(1)", moving=True
)

# -- modules -----------------------------------------------------------------------------------------------------------

add_slot(
    "submodule_replaced",
    "total = total + tree.leaf(total)",
    "tree.leaf = leaf_one",
    "tree.leaf = leaf_two",
    "tree.leaf = torch.nn.Identity()",
    needs="tree",
)
add_slot(
    "submodule_training",
    "total = total + tree.leaf(total)",
    "tree.leaf.train(True)",
    "tree.leaf.train(False)",
    needs="tree",
)
add_slot(
    "submodules_added",
    "for part in tree.parts:\n    total = part(total)",
    "tree.parts = torch.nn.ModuleList([leaf_one])",
    "tree.parts = torch.nn.ModuleList([leaf_one, leaf_two])",
    "tree.parts = torch.nn.ModuleList()",
    needs="tree",
)
add_slot(
    "sequence_of_modules",
    "total = tree.chain(total)",
    "tree.chain = torch.nn.Sequential(leaf_one)",
    "tree.chain = torch.nn.Sequential(leaf_one, leaf_two)",
    "tree.chain = torch.nn.Sequential(leaf_one); tree.chain[0] = leaf_two",
    needs="tree",
)
add_slot(
    "forward_of_an_instance",
    "total = total + tree.leaf(total)",
    "vars(leaf_one).pop('forward', None)",
    "leaf_one.forward = nine_times",
    setup="def nine_times(value):\n    return value * 9",
    needs="tree",
)
add_slot(
    "forward_of_a_class",
    "total = total + tree.leaf(total)",
    "Leaf.forward = forward_one",
    "Leaf.forward = forward_two",
    setup="forward_one = Leaf.forward\n\n\ndef forward_two(self, value):\n    return value * 8",
    needs="tree",
)
for _kind, _hook in (
    ("forward_pre_hook", "lambda module, args: (args[0] * 3,)"),
    ("forward_hook", "lambda module, args, out: out * 3"),
    ("backward_hook", "lambda module, before, after: None"),
):
    _held = f"_{_kind}s"
    add_slot(
        f"inner_{_kind}",
        "total = total + tree.leaf(total)",
        f"leaf_one.{_held}.clear()",
        f"leaf_one.{_held}[7] = {_kind}",
        setup=f"{_kind} = {_hook}",
        needs="tree",
    )
_ALL_HOOKS = "torch.nn.modules.module._global_forward_hooks"
add_slot(
    "hook_of_all_modules",
    "total = total + tree.leaf(total)",
    f"{_ALL_HOOKS}.clear()",
    f"{_ALL_HOOKS}[0] = hook_of_all",
    setup="def hook_of_all(module, args, out):\n    return out * 3",
    needs="tree",
)
add_slot(
    "parameter_kinds",
    "total = total + (tree.leaf.gain.sum() if tree.leaf.gain is not None else 0)",
    "leaf_one.gain = gain_one; gain_one.requires_grad_(True)",
    "leaf_one.gain = None",
    "leaf_one.gain = gain_two",
    "leaf_one.gain = gain_one; gain_one.requires_grad_(False)",
    setup="gain_one, gain_two = leaf_one.gain, torch.nn.Parameter(torch.full((1,), 5.0))",
    needs="tree",
)
add_slot(
    "buffer_kinds",
    "total = total + tree.leaf.level",
    "leaf_one.level = torch.zeros(1)",
    "leaf_one.level = torch.ones(1)",
    "leaf_one.level = torch.zeros(1, dtype=torch.float64)",
    needs="tree",
)
add_slot(
    "parameters_walked",
    "for parameter in tree.parameters():\n    total = total + parameter.sum()",
    "tree._parameters.pop('late', None)",
    "tree.late = torch.nn.Parameter(torch.full((1,), 4.0))",
    needs="tree",
)
add_slot(
    "named_modules_walked",
    "total = total + len(list(tree.named_modules()))",
    "tree._modules.pop('later', None)",
    "tree.later = torch.nn.Identity()",
    needs="tree",
)
add_slot(
    "tied_parameters",
    "total = total + (1.0 if tree.leaf.gain is tree.other.gain else 2.0)",
    "tree.other.gain = leaf_one.gain",
    "tree.other.gain = other_gain",
    setup="other_gain = tree.other.gain",
    needs="tree",
)
add_slot(
    "module_class",
    "total = total + tree.leaf(total)",
    "leaf_one.__class__ = Leaf",
    "leaf_one.__class__ = OtherLeaf",
    setup="class OtherLeaf(Leaf):\n    def forward(self, value):\n        return value - 4",
    needs="tree",
)

# -- torch's own state -------------------------------------------------------------------------------------------------

add_slot(
    "default_device",
    "total = total + (1.0 if torch.ones(1).device.type == 'cpu' else 2.0)",
    "torch.set_default_device(None)",
    "torch.set_default_device('meta')",
    always=True,
)
add_slot(
    "autocast",
    "total = total + (torch.ones(2, 2) @ torch.ones(2, 2)).sum()",
    "torch.set_autocast_enabled('cpu', False); torch.set_autocast_dtype('cpu', torch.bfloat16)",
    "torch.set_autocast_enabled('cpu', True); torch.set_autocast_dtype('cpu', torch.bfloat16)",
    "torch.set_autocast_enabled('cpu', True); torch.set_autocast_dtype('cpu', torch.float16)",
    always=True,
)
add_slot(
    "deterministic",
    "total = total + (1.0 if torch.are_deterministic_algorithms_enabled() else 2.0)",
    "torch.use_deterministic_algorithms(False)",
    "torch.use_deterministic_algorithms(True)",
    always=True,
)
add_slot(
    "matmul_precision",
    "total = total + (1.0 if torch.get_float32_matmul_precision() == 'highest' else 2.0)",
    "torch.set_float32_matmul_precision('highest')",
    "torch.set_float32_matmul_precision('high')",
)
add_slot(
    "threads",
    ("total = total + 1", "total = total + torch.get_num_threads()"),
    "torch.set_num_threads(1)",
    "torch.set_num_threads(2)",
)
add_slot(
    "anomaly",
    "total = total + (1.0 if torch.is_anomaly_enabled() else 2.0)",
    "torch.set_anomaly_enabled(False)",
    "torch.set_anomaly_enabled(True)",
)
add_slot(
    "backend_flag",
    "total = total + (1.0 if torch.backends.mkldnn.enabled else 2.0)",
    "torch.backends.mkldnn.set_flags(True)",
    "torch.backends.mkldnn.set_flags(False)",
)

# -- containers --------------------------------------------------------------------------------------------------------

add_slot(
    "default_dictionary",
    "total = total + counts['new']",
    "counts.clear(); counts.default_factory = int",
    "counts.clear(); counts.default_factory = five",
    "counts.clear(); counts['new'] = 7",
    setup="import collections\n\n\ndef five():\n    return 5\n\n\ncounts = collections.defaultdict(int)",
    moving=True,
)
add_slot(
    "counter",
    "total = total + tally['a'] + len(tally)",
    "tally.clear(); tally['a'] = 1",
    "tally.clear(); tally['a'] = 2",
    "tally.clear()",
    setup="import collections\n\ntally = collections.Counter(a=1)",
)
add_slot(
    "dictionary_subclass",
    (
        "total = total + (table['a'] if 'a' in table else 9.0)",
        "total = total + len(table)",
        "total = total + table.extra",
        "for key in table:\n    total = total * 2 + (1.0 if key == 'a' else 3.0)",
    ),
    "table.clear(); table.update(a=1.0); table.extra = 1.0",
    "table.clear(); table.update(a=2.0); table.extra = 1.0",
    "table.clear(); table.extra = 1.0",
    "table.clear(); table.update(a=1.0); table.extra = 2.0",
    "table.clear(); table.update(b=1.0, a=1.0); table.extra = 1.0",
    setup="class Table(dict):\n    pass\n\n\ntable = Table(a=1.0)\ntable.extra = 1.0",
)
add_slot(
    "missing_method",
    "total = total + lacking['zz']",
    "Lacking.__missing__ = missing_one",
    "Lacking.__missing__ = missing_two",
    setup="class Lacking(dict):\n    pass\n\n\n"
    "missing_one, missing_two = lambda self, key: 1.0, lambda self, key: 2.0\n"
    "Lacking.__missing__ = missing_one\nlacking = Lacking()",
)
add_slot(
    "ordered_dictionary",
    "for key, value in ordered.items():\n    total = total * 2 + value",
    "ordered = collections.OrderedDict(a=1.0, b=2.0)",
    "ordered = collections.OrderedDict(b=2.0, a=1.0)",
    "ordered = collections.OrderedDict(a=1.0, b=2.0); ordered.move_to_end('a')",
    setup="import collections\n\nordered = collections.OrderedDict(a=1.0, b=2.0)",
)
add_slot(
    "deque",
    ("total = total + len(line) * 2 + line[0]", "line.append(3.0)\ntotal = total + line[0]"),
    "line = collections.deque([1.0, 2.0])",
    "line = collections.deque([1.0, 2.0], maxlen=2)",
    "line = collections.deque([2.0])",
    setup="import collections\n\nline = collections.deque([1.0, 2.0])",
    moving=True,
    rewound=False,
)
add_slot(
    "frozen_set",
    "total = total + (1.0 if 3 in frozen else 2.0)",
    "frozen = frozenset({1})",
    "frozen = frozenset({3})",
    "frozen = {3}",
)
add_slot(
    "set_in_place",
    ("total = total + (1.0 if 'a' in names else 2.0)", "total = total + len(names)"),
    "names.clear(); names.add('a')",
    "names.clear()",
    "names.update('ab')",
    setup="names = {'a'}",
)
add_slot(
    "dictionary_view",
    "total = total + (1.0 if 'b' in view else 2.0) + len(view)",
    "viewed.pop('b', None)",
    "viewed['b'] = 1",
    setup="viewed = {'a': 1}\nview = viewed.keys()",
)
add_slot(
    "mapping_proxy",
    "total = total + (proxy['a'] if 'a' in proxy else 9.0)",
    "proxied['a'] = 1.0",
    "proxied['a'] = 2.0",
    "proxied.pop('a', None)",
    setup="import types\n\nproxied = {'a': 1.0}\nproxy = types.MappingProxyType(proxied)",
)
add_slot(
    "iterator",
    "total = total + next(stream)",
    "stream = iter([1.0, 2.0])",
    "stream = iter([3.0])",
    "stream = iter((6.0,))",
    moving=True,
    rewound=False,
)
add_slot(
    "range_object",
    "for number_ in span:\n    total = total * 2 + number_",
    "span = range(3)",
    "span = range(1, 3)",
    "span = range(4, 0, -2)",
)
add_slot(
    "slice_object",
    "total = total + sum([1.0, 2.0, 4.0][cut])",
    "cut = slice(0, 1)",
    "cut = slice(0, 2)",
    "cut = slice(None, None, 2)",
)
add_slot(
    "other_numbers",
    "total = total + (abs(odd) if not isinstance(odd, bytes) else len(odd))",
    "odd = 1j",
    "odd = 2j",
    "odd = complex(0.0, -1.0)",
    "odd = b'ab'",
    "odd = 1",
)
add_slot(
    "keys_of_many_types", "total = total + mixed[1]", "mixed = {1: 1.0}", "mixed = {True: 2.0}", "mixed = {1.0: 3.0}"
)
add_slot(
    "list_of_tensors",
    "for tensor in several:\n    total = total + tensor.sum()",
    "several[:] = [torch.ones(1)]",
    "several[:] = [torch.ones(1), torch.ones(2)]",
    "several[:] = []",
    setup="several = [torch.ones(1)]",
)
add_slot(
    "dictionary_of_tensors",
    "total = total + sum(value.sum() for value in group.values())",
    "group = {'a': torch.ones(1)}",
    "group = {'a': torch.ones(1), 'b': torch.ones(2)}",
    "group = {}",
)
add_slot(
    "none_and_falsy",
    "total = total + (1.0 if empty else 2.0) + (1.0 if empty is None else 2.0)",
    "empty = None",
    "empty = 0",
    "empty = ''",
    "empty = []",
    "empty = [0]",
    "empty = False",
)
add_slot(
    "environment_variable",
    "total = total + (1.0 if os.environ.get('PLUMBLINE_FUZZ_SLOT') == 'a' else 2.0)",
    "os.environ['PLUMBLINE_FUZZ_SLOT'] = 'a'",
    "os.environ['PLUMBLINE_FUZZ_SLOT'] = 'b'",
    "os.environ.pop('PLUMBLINE_FUZZ_SLOT', None)",
    setup="import os\n\nos.environ['PLUMBLINE_FUZZ_SLOT'] = 'a'",
)
add_slot(
    "attribute_of_a_python_module",
    "total = total + fuzz_library.level",
    "fuzz_library.level = 1.0",
    "fuzz_library.level = 2.0",
    setup="import types\n\nfuzz_library = types.ModuleType('fuzz_library')\nfuzz_library.level = 1.0",
)
add_slot(
    "function_of_a_python_module",
    "total = fuzz_functions.go(total)",
    "fuzz_functions.go = torch.sin",
    "fuzz_functions.go = torch.cos",
    "fuzz_functions.go = go_up",
    setup="def go_up(value):\n    return value + 1\n\n\nimport types\n\n"
    "fuzz_functions = types.ModuleType('fuzz_functions')\nfuzz_functions.go = torch.sin",
)
