import threading

import pytest

from plumbline.compiler.base.options import Options
from plumbline.compiler.stored.graph_store import GraphStore, describe, description_of, key_of_plain
from plumbline.compiler.stored.plain_data import NotPlain

KEY = key_of_plain("a graph")
CONTENT = ("form", (1, 2.5, None, b"code"))


@pytest.fixture
def store(tmp_path):
    return GraphStore.of(Options(cache_directory=str(tmp_path)))


def test_an_entry_is_found_by_its_key_alone(store):
    assert store.find(KEY) is None
    assert store.keep(KEY, CONTENT) == ""
    assert store.find(KEY) == CONTENT
    assert store.find(key_of_plain("another graph")) is None


def test_keys_tell_every_part_apart():
    keys = {key_of_plain(*parts) for parts in [("a", "b"), ("ab",), ("a", ("b",)), (("a", "b"),), ("b", "a"), ()]}
    assert len(keys) == 6


@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[:20], lambda c: b"", lambda c: b"x" + c[1:]])
def test_a_damaged_entry_is_none(store, damage):
    store.keep(KEY, CONTENT)
    path = store.disk.path(KEY)
    path.write_bytes(damage(path.read_bytes()))
    assert store.find(KEY) is None
    assert store.keep(KEY, CONTENT) == ""
    assert store.find(KEY) == CONTENT


def test_an_entry_under_another_key_is_none(store):
    other = key_of_plain("another graph")
    store.keep(other, CONTENT)
    whole = store.disk.path(other).read_bytes()
    store.disk.keep_content(KEY, whole)
    assert store.find(KEY) is None


def test_what_is_no_entry_is_none_although_it_is_whole(store):
    for content in (b"", b"text", b"\x80\x05K\x01."):
        store.disk.keep_content(KEY, content)
        assert store.find(KEY) is None


def test_a_folder_that_cannot_be_written_gives_the_reason(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = GraphStore.of(Options(cache_directory=str(tmp_path / "file")))
    assert "file" in store.keep(KEY, CONTENT)
    assert store.find(KEY) is None


def test_readers_beside_writers_find_a_whole_entry_or_none(store):
    contents = [("form", number, b"x" * 5000 * number) for number in range(1, 4)]
    wrong: list[object] = []

    def write(content: object) -> None:
        for _ in range(20):
            store.keep(KEY, content)

    def read() -> None:
        for _ in range(60):
            found = store.find(KEY)
            if found is not None and found not in contents:
                wrong.append(found)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    store.keep(KEY, contents[0])
    assert store.find(KEY) == contents[0]


def test_what_nobody_has_described_is_not_plain():
    def compiled() -> None:
        raise AssertionError

    with pytest.raises(NotPlain, match="operator by operator"):
        description_of(compiled)
    describe(compiled, lambda: "described")
    assert description_of(compiled) == "described"


def test_what_has_no_weak_references_was_not_described():
    class Call:
        __slots__ = ()

        def __call__(self) -> None: ...

    with pytest.raises(NotPlain):
        description_of(Call())
