"""Classes and their methods that change between calls, or that answer in their own way."""

import torch


class Settings:
    factor = 3.0


def test_local_class_attribute_changes_between_calls():
    """The second call must see factor = 10."""

    class Local:
        factor = 3.0

    scale = torch.compile(lambda x: x * Local.factor)
    scale(torch.tensor([4.0]))
    Local.factor = 10.0
    scale(torch.tensor([4.0]))


def test_global_class_attribute_changes_between_calls():
    """As above with a class at module level."""
    Settings.factor = 3.0
    scale = torch.compile(lambda x: x * Settings.factor)
    scale(torch.tensor([4.0]))
    Settings.factor = 10.0
    scale(torch.tensor([4.0]))


def test_method_added_between_super_and_base():
    """super() finds the method of the middle class once it has one."""

    class Base:
        def gain(self):
            return 1.0

    class Middle(Base):
        pass

    class Leaf(Middle):
        def total(self):
            return super().gain()

    leaf = Leaf()
    run = torch.compile(lambda x: x + leaf.total())
    run(torch.zeros(1))
    Middle.gain = lambda self: 4.0
    run(torch.zeros(1))


def test_special_method_replaced():
    """Offset.__add__ is another function in the second call."""

    class Offset:
        def __add__(self, other):
            return 1.0

    offset = Offset()
    run = torch.compile(lambda x: x + (offset + 1))
    run(torch.zeros(1))
    Offset.__add__ = lambda self, other: 5.0
    run(torch.zeros(1))


def test_classmethod_overridden_below():
    """A classmethod given to the subclass after the first call."""

    class Base:
        @classmethod
        def gain(cls):
            return 1.0

    class Leaf(Base):
        pass

    leaf = Leaf()
    run = torch.compile(lambda x: x + leaf.gain())
    run(torch.zeros(1))
    Leaf.gain = classmethod(lambda cls: 2.0)
    run(torch.zeros(1))


def test_method_replaced_on_the_instance():
    """A function in the instance's dictionary hides the method of the class."""

    class Gain:
        def value(self):
            return 1.0

    gain = Gain()
    run = torch.compile(lambda x: x * gain.value())
    run(torch.ones(1))
    gain.value = lambda: 6.0
    run(torch.ones(1))


def test_property_replaced():
    """A property of the class is another one in the second call."""

    class Gain:
        @property
        def value(self):
            return 1.0

    gain = Gain()
    run = torch.compile(lambda x: x * gain.value)
    run(torch.ones(1))
    Gain.value = property(lambda self: 6.0)
    run(torch.ones(1))


def test_class_of_an_object_changes():
    """The object's __class__ is assigned between calls."""

    class Small:
        def value(self):
            return 1.0

    class Large:
        def value(self):
            return 9.0

    thing = Small()
    run = torch.compile(lambda x: x * thing.value())
    run(torch.ones(1))
    thing.__class__ = Large
    run(torch.ones(1))


def test_class_that_lies_about_its_class():
    """isinstance asks __class__, type() does not."""

    class Real:
        pass

    class Pretender:
        @property
        def __class__(self):
            return Real

    thing = Pretender()

    def choose(x):
        return x + 1 if isinstance(thing, Real) else x - 1

    torch.compile(choose)(torch.zeros(2))


def test_metaclass_answers_isinstance():
    """__instancecheck__ of the metaclass is asked for a tensor."""

    class Answer(type):
        def __instancecheck__(cls, value):
            return isinstance(value, torch.Tensor) and value.dim() == 2

    class Matrix(metaclass=Answer):
        pass

    def choose(x):
        return x + 1 if isinstance(x, Matrix) else x - 1

    torch.compile(choose)(torch.zeros(2, 2))


def test_class_list_is_appended_to():
    """The class's list grows by one each call."""

    class Recorder(torch.nn.Module):
        items = []

        def forward(self, x):
            Recorder.items.append(x)
            return x * 2

    model = Recorder()
    model.forward = torch.compile(model.forward)
    model(torch.zeros(2))
    model(torch.ones(2))


def test_getattr_fallback_removed():
    """__getattr__ is taken away from the class; the class attribute answers instead."""

    class Loose:
        def __getattr__(self, name):
            return 8.0

    loose = Loose()
    run = torch.compile(lambda x: x * loose.gain)
    run(torch.ones(1))
    Loose.gain = 2.0
    run(torch.ones(1))


def test_equality_is_not_identity():
    """`in` asks __eq__, which says yes to everything."""

    class Anything:
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    values = [Anything()]

    def choose(x):
        return x + 1 if 5 in values else x - 1

    torch.compile(choose)(torch.zeros(2))
