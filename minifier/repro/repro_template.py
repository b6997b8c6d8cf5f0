"""The fixed parts of a repro script; plain text, so that the script depends on nothing but torch and the judge."""

BUILD_GRAPH = '''
def load_inputs():
    """Read the input values from the file beside this script; they are part of the failure."""
    file = pathlib.Path(__file__).with_name(INPUTS_FILE)
    if not file.is_file():
        raise CannotTest(f"{file} is missing: keep it beside this script")
    if hashlib.sha256(file.read_bytes()).hexdigest() != INPUTS_SHA256:
        raise CannotTest(f"{file} is not the file that was written with this script")
    return torch.load(file, weights_only=True)


class CannotTest(Exception):
    """This machine or this copy of the script cannot say whether the failure is there."""


def build_graph(function=None):
    """Return `forward` as a torch.fx graph, call by call, so that the compiler gets exactly what it got before."""
    (definition,) = ast.parse(inspect.getsource(function or forward)).body
    graph = torch.fx.Graph()
    nodes = {argument.arg: graph.placeholder(argument.arg) for argument in definition.args.args}

    def value(part):
        if isinstance(part, ast.Name) and part.id in nodes:
            return nodes[part.id]
        if isinstance(part, (ast.Tuple, ast.List)):
            items = [value(item) for item in part.elts]
            return items if isinstance(part, ast.List) else tuple(items)
        if isinstance(part, ast.Dict):
            return {value(key): value(item) for key, item in zip(part.keys, part.values)}
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "slice":
            return slice(*(value(item) for item in part.args))
        return eval(compile(ast.Expression(part), "<graph>", "eval"), globals())

    for line in definition.body:
        if isinstance(line, ast.Return):
            graph.output(value(line.value))
            break
        name, call = line.targets[0].id, line.value
        args = [value(item) for item in call.args]
        kwargs = {item.arg: value(item.value) for item in call.keywords}
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(on, ast.Name) and on.id in nodes:
            kind, target, args = "call_method", call.func.attr, [nodes[on.id], *args]
        else:
            kind, target = "call_function", value(call.func)
        nodes[name] = graph.create_node(kind, target, tuple(args), kwargs, name)
    return torch.fx.GraphModule(torch.nn.Module(), graph)

'''

_STOCK = '''
def compile_graph():
    """Compile the graph with stock torch's @BACKEND@, without any cache of graphs, drawing as eager does."""
    import torch._dynamo
    import torch._functorch.config
    import torch._inductor.config
    from torch._inductor import compile_fx

    patches = {"fallback_random": True, "fx_graph_cache": False}
    if OPTIONS["mode"] or OPTIONS["options"]:
        mode = OPTIONS["mode"] or (None if OPTIONS["options"] else "default")
        patches.update(torch._TorchCompileInductorWrapper(mode, OPTIONS["options"], None).config)
    settings = torch._inductor.config.patch(patches)
    with settings, torch._functorch.config.patch(enable_autograd_cache=False):
        @COMPILE@

    def run(*args):
        with torch._inductor.config.patch(patches):
            return @RUN@

    return run

'''
_STOCK_INNER = _STOCK.replace(
    "@COMPILE@",
    """graph = build_graph()
        backward = any(node.name.startswith("tangents_") for node in graph.graph.nodes if node.op == "placeholder")
        facts = {"is_backward": True} if backward else {}
        compiled = compile_fx.compile_fx_inner(graph, inputs(), **facts)""",
).replace("@RUN@", 'compiled(list(args)) if getattr(compiled, "_boxed_call", False) else compiled(*args)')
_STOCK_OUTER = _STOCK.replace(
    "@COMPILE@",
    """backend = "@BACKEND@"
        if backend == "inductor":
            compiled = compile_fx.compile_fx(build_graph(), inputs(), config_patches=patches)
        else:
            compiled = torch._dynamo.lookup_backend(backend)(build_graph(), list(inputs()))""",
).replace("@RUN@", "compiled(*args)")

_OURS = '''
def compile_graph():
    """Compile the graph with plumbline's @BACKEND@."""
    from plumbline.minifier.graphs.plumbline_graphs import PlumblineGraphs
    from plumbline.oracle.harness.compilers import CompileRequest

    request = CompileRequest(mode=OPTIONS["mode"], options=OPTIONS["options"])
    return PlumblineGraphs().compile(build_graph(), inputs(), "@BACKEND@", "@AFTER@", request)

'''

COMPILE = {
    ("torch", True): _STOCK_INNER,
    ("torch", False): _STOCK_OUTER,
    ("plumbline", True): _OURS,
    ("plumbline", False): _OURS,
}
"""By compiler, and whether the graph goes to the inner compiler of inductor (ATen, after autograd)."""

MAIN = '''
def reproduce():
    """Return (exit status, sentence): 1 the failure is there, 0 it is not, 2 another one is, 125 cannot test."""
    try:
        from plumbline.minifier.reduce.graph_judge import GraphRules, judge_graph
        from plumbline.minifier.failure_signature import FailureSignature
    except ImportError as error:
        return 125, f"cannot test: {error}; install plumbline, it judges the values"
    rules = GraphRules(RULES["grad"], frozenset(RULES["ignore"]), RULES["gradients"])
    try:
        configure()
        with torch.set_grad_enabled(rules.grad):
            forward(*inputs())
    except Exception as error:
        return 125, f"cannot test: without a compiler it raises {type(error).__name__}: {error}"
    report = judge_graph(forward, compile_graph, inputs(), rules)
    if report.signature is None:
        return 0, f"does not reproduce: {report.sentence}"
    if not FailureSignature(**EXPECTED).matches(report.signature):
        return 2, f"fails in another way: {report.signature.sentence()}: {report.sentence}"
    return 1, f"reproduces: {report.sentence}"


def test_repro():
    """Strict xfail: turns red on the day this is fixed (and when it fails in another way)."""
    status, sentence = reproduce()
    if status == 125:
        pytest.skip(sentence)
    if status == 2:
        raise RuntimeError(sentence)
    assert status == 0, sentence


try:
    import pytest
except ImportError:
    pass
else:
    test_repro = pytest.mark.xfail(strict=True, raises=AssertionError, reason=EXPECTED["aspect"])(test_repro)

if __name__ == "__main__":
    status, sentence = reproduce()
    print(sentence)
    sys.exit(status)
'''
