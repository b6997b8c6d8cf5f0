"""A property or `__getattribute__` of a module's class that raised AttributeError ended the look-up: `__getattr__`, of
the class or of the module itself, was not asked, and a module's own came after that of its class."""

import types

import pytest

import plumbline

LOG = []


class Answering(types.ModuleType):
    def __getattr__(self, name):
        LOG.append(f"class {name}")
        if name == "refused":
            raise AttributeError("the class has none")
        return name + "!"


class WithProperty(types.ModuleType):
    @property
    def computed(self):
        LOG.append("property")
        raise AttributeError("not now")


class Hiding(types.ModuleType):
    def __getattribute__(self, name):
        if name in ("computed", "refused"):
            LOG.append(f"hidden {name}")
            raise AttributeError("hidden")
        return super().__getattribute__(name)


class AnsweringWithProperty(WithProperty, Answering):
    pass


class AnsweringAndHiding(Hiding, Answering):
    pass


def of_the_module(name):
    LOG.append(f"module {name}")
    if name == "refused":
        raise AttributeError("the module has none")
    return name + "?"


CLASSES = [Answering, WithProperty, Hiding, AnsweringWithProperty, AnsweringAndHiding, types.ModuleType]
FORMS = {
    "attribute": "module.{}",
    "getattr": "getattr(module, '{}')",
    "default": "getattr(module, '{}', 'default')",
    "hasattr": "hasattr(module, '{}')",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("has_own", [False, True])
@pytest.mark.parametrize("kind", CLASSES)
def test_who_is_asked_and_in_which_order(kind, has_own, form):
    module = kind("made_module")
    module.value = 3
    if has_own:
        vars(module)["__getattr__"] = of_the_module
    for name in ("computed", "refused", "value"):
        program = f"""
def step(x):
    try:
        return x, {FORMS[form].format(name)}
    except Exception as error:
        return x, type(error), str(error)
"""
        eager, captured = {"module": module}, {"module": module}
        exec(program, eager)
        exec(program, captured)
        compiled = plumbline.compile(captured["step"], backend="eager")
        for x in range(3):
            assert outcome(compiled, x) == outcome(eager["step"], x), (name, x)


def test_a_module_that_is_given_one_later():
    module = types.ModuleType("made_module")

    def step():
        try:
            return module.computed
        except AttributeError as error:
            return str(error)

    compiled = plumbline.compile(step, backend="eager")
    assert compiled() == "module 'made_module' has no attribute 'computed'"
    module.__getattr__ = of_the_module
    assert compiled() == "computed?"


def outcome(step, x):
    LOG.clear()
    return step(x), list(LOG)
