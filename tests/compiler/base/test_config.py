"""Settings: the environment, over it `plumbline.config`, over it the arguments of a call."""

import copy
import dataclasses
import re

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UnknownOption, UserError
from plumbline.compiler.base.options import Options, describe_options, options_from_environment


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    for name, _, _ in describe_options():
        monkeypatch.delenv(f"PLUMBLINE_{name.upper()}", raising=False)
    plumbline.reset()


def forms(run):
    """Return how many specialisations five different numbers make."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = run(backend)
    for word in ("a", "bb", "ccc", "dddd", "eeeee"):
        assert compiled(torch.ones(1), word).item() == len(word)
    return len(graphs)


def scaled(x, word):
    return x * len(word)


def test_every_option_is_an_attribute_with_its_default():
    for field in dataclasses.fields(Options):
        assert getattr(plumbline.config, field.name) == field.default
        assert field.name in dir(plumbline.config)
    assert "recompile_limit=8" in repr(plumbline.config)


def test_patch_holds_inside_its_block_and_for_captures_made_there():
    compiled = []

    def run(backend):
        compiled.append(plumbline.compile(scaled, backend=backend))
        return compiled[-1]

    with plumbline.config.patch(recompile_limit=2):
        assert plumbline.config.recompile_limit == 2
        assert forms(run) == 2
    assert plumbline.config.recompile_limit == 8
    assert forms(run) == 5


def test_a_setting_holds_for_what_was_wrapped_before():
    compiled = plumbline.compile(scaled, backend="eager")
    with plumbline.config.patch(recompile_limit=1):
        for word in ("a", "bb", "ccc"):
            compiled(torch.ones(1), word)
    from plumbline.compiler.base.events import Captured, recording

    with recording() as events:
        compiled(torch.ones(1), "dddd")
    assert not [event for event in events if isinstance(event, Captured)]


@pytest.mark.parametrize(
    "arguments",
    [((), {"recompile_limit": 3}), (({"recompile_limit": 3},), {}), (("recompile_limit", 3), {})],
    ids=["keywords", "mapping", "name and value"],
)
def test_the_three_ways_to_write_a_patch(arguments):
    with plumbline.config.patch(*arguments[0], **arguments[1]):
        assert plumbline.config.recompile_limit == 3


def test_patch_as_a_decorator_and_nested():
    @plumbline.config.patch(recompile_limit=3)
    def inside():
        with plumbline.config.patch(recompile_limit=4, verify=True):
            assert (plumbline.config.recompile_limit, plumbline.config.verify) == (4, True)
        return plumbline.config.recompile_limit

    assert inside() == inside() == 3
    assert (plumbline.config.recompile_limit, plumbline.config.verify) == (8, False)


def test_what_was_patched_is_restored_after_an_error():
    with pytest.raises(KeyError), plumbline.config.patch(strict=True):
        raise KeyError("user's")
    assert plumbline.config.strict is False


def test_assigning_and_forgetting():
    plumbline.config.recompile_limit = 5
    try:
        assert forms(lambda backend: plumbline.compile(scaled, backend=backend)) == 5
        assert plumbline.config.recompile_limit == 5
    finally:
        del plumbline.config.recompile_limit
    assert plumbline.config.recompile_limit == 8


def test_arguments_win_over_settings_and_settings_over_the_environment(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_RECOMPILE_LIMIT", "4")
    assert plumbline.config.recompile_limit == 4
    assert forms(lambda backend: plumbline.compile(scaled, backend=backend)) == 4
    with plumbline.config.patch(recompile_limit=3):
        assert forms(lambda backend: plumbline.compile(scaled, backend=backend)) == 3
        assert forms(lambda backend: plumbline.compile(scaled, backend=backend, options={"recompile_limit": 2})) == 2
        assert forms(lambda backend: plumbline.compile(scaled, backend=backend, recompile_limit=1)) == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("recompile_limits", "did you mean recompile_limit"),
        ("cache_size_limt", "did you mean cache_size_limit"),
        ("triton.cudagraph", "did you mean triton.cudagraphs"),
        ("trace.outputcode", "did you mean trace.output_code"),
        ("assume_static_by_default", "set dynamic_shapes"),
        ("log_level", "PLUMBLINE_LOGS"),
        ("zzz", "one of: recompile_limit"),
    ],
)
def test_an_unknown_name_is_answered_with_the_right_one(name, hint):
    for ask in (
        lambda: getattr(plumbline.config, name),
        lambda: setattr(plumbline.config, name, 1),
        lambda: plumbline.config.patch({name: 1}).__enter__(),
        lambda: plumbline.compile(scaled, options={name: 1}),
        lambda: delattr(plumbline.config, name),
    ):
        with pytest.raises(UnknownOption, match=re.escape(hint)):
            ask()
    assert not hasattr(plumbline.config, name)


def test_python_may_ask_the_settings_for_what_it_likes():
    assert not hasattr(plumbline.config, "__wrapped__")
    assert copy.deepcopy(plumbline.config) is copy.copy(plumbline.config) is plumbline.config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recompile_limit", "8"),
        ("recompile_limit", True),
        ("strict", 1),
        ("dynamic_shapes", "yes"),
        ("compiler", None),
        ("save_budget", 1.5),
        ("save_budget", -1),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name, value):
    with pytest.raises(UserError, match=f"option {name} cannot be"):
        plumbline.config.patch({name: value}).__enter__()
    with pytest.raises(UserError, match=f"option {name} cannot be"):
        plumbline.compile(scaled, options={name: value})


def test_environment_values_are_read_by_type_and_by_torchs_names():
    read = options_from_environment(
        {
            "PLUMBLINE_BUNDLE_LIMIT": "3",
            "TORCH_COMPILE_DEBUG": "1",
            "TORCHDYNAMO_DYNAMIC_SHAPES": "0",
            "PLUMBLINE_SAVE_BUDGET": "0.5",
            "PLUMBLINE_CC": "tcc",
        }
    )
    assert (read.bundle_limit, read.debug, read.dynamic_shapes, read.save_budget, read.compiler) == (
        3,
        True,
        False,
        0.5,
        "tcc",
    )
    with pytest.raises(UserError, match="PLUMBLINE_BUNDLE_LIMIT='many'"):
        options_from_environment({"PLUMBLINE_BUNDLE_LIMIT": "many"})


@pytest.mark.parametrize(
    ("theirs", "value", "ours", "held"),
    [
        ("cache_size_limit", 3, "recompile_limit", 3),
        ("debug_dir_root", "here", "record_directory", "here"),
        ("optimize_ddp", False, "ddp_stages", False),
        ("suppress_errors", False, "strict", True),
        ("trace.enabled", True, "debug", True),
        ("triton.cudagraphs", True, "cuda_graphs", True),
        ("trace.guards", False, "debug_files", "-guards"),
        ("trace.graph_diagram", True, "debug_files", "graph_diagram"),
    ],
)
def test_a_name_of_torchs_is_the_option_that_it_is_here(theirs, value, ours, held):
    before = getattr(plumbline.config, theirs)
    assert before != value
    with plumbline.config.patch({theirs: value}):
        assert getattr(plumbline.config, theirs) == value
        assert getattr(plumbline.config, ours) == held
    setattr(plumbline.config, theirs, value)
    try:
        assert getattr(plumbline.config, ours) == held
        assert Options().replace(**{theirs: value}) == Options().replace(**{ours: held})
    finally:
        delattr(plumbline.config, theirs)
    assert getattr(plumbline.config, theirs) == before


def test_sections_are_attributes_too():
    assert plumbline.config.triton.cudagraphs is False
    plumbline.config.triton.cudagraphs = False
    assert "guards" in dir(plumbline.config.trace)
    with plumbline.config.patch({"triton.cudagraphs": True}):
        assert plumbline.config.cuda_graphs is True
    with pytest.raises(UnknownOption, match="triton"):
        plumbline.config.triton = 1


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("name", ["fallback_random", "verbose", "guard_nn_modules"])
def test_what_always_holds_may_be_set_and_changes_nothing(name, value):
    setattr(plumbline.config, name, value)
    assert getattr(plumbline.config, name) is True


def test_files_of_the_debug_folder_are_named_one_by_one():
    with plumbline.config.patch(debug_files="-guards"):
        plumbline.config.trace.output_code = False
        try:
            assert set(plumbline.config.debug_files.split(",")) == {"-guards", "-output_code"}
        finally:
            del plumbline.config.debug_files
    with pytest.raises(UserError, match="no file of the debug folder"):
        plumbline.config.debug_files = "everything"
