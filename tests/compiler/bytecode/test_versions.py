"""The table of opcodes, the rules and the tables of liveness against what each version of Python says of itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.compiler.bytecode import liveness, resume_code
from plumbline.compiler.bytecode.versions import OPCODES, RUNNING
from support import opcode_lists
from support.interpreters import VERSIONS, Version, required
from support.opcode_lists import as_text, running_opcodes, stored_opcodes, stored_path

each_version = pytest.mark.parametrize("version", VERSIONS, ids=str)


@each_version
def test_the_table_is_the_stored_list(version: Version) -> None:
    assert frozenset(stored_opcodes(version)) == OPCODES[version]


def test_the_stored_list_is_the_running_interpreter() -> None:
    assert as_text(running_opcodes()) == stored_path(RUNNING).read_text(encoding="utf-8")


@each_version
def test_the_stored_lists_are_the_other_interpreters(version: Version, tmp_path: Path) -> None:
    script = tmp_path / "tests" / "support" / "opcode_lists.py"
    stored = tmp_path / stored_path(version).relative_to(opcode_lists.DATA.parents[3])
    script.parent.mkdir(parents=True)
    stored.parent.mkdir(parents=True)
    script.write_text(Path(opcode_lists.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([required(version), str(script)], check=True, timeout=60)
    assert stored.read_text(encoding="utf-8") == stored_path(version).read_text(encoding="utf-8")


@each_version
def test_everything_that_touches_a_slot_is_known(version: Version) -> None:
    """An opcode on a fast slot that liveness or renumbering does not know would lose a local."""
    slots = {name for name in OPCODES[version] if "FAST" in name or "DEREF" in name or "CLOSURE" in name}
    slots |= {"MAKE_CELL"}
    in_cells = {name for name in slots if "DEREF" in name or name == "MAKE_CELL"}
    doubles = {"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}
    assert slots - in_cells <= liveness._READS | doubles | {"STORE_FAST"}
    assert slots - doubles - {"LOAD_CLASSDEREF"} <= resume_code._SLOT_OPCODES


@each_version
def test_what_always_jumps_or_leaves_is_known(version: Version) -> None:
    stored = stored_opcodes(version)
    jumps = {name for name in stored if name.startswith("JUMP_") and "_IF_" not in name}
    assert jumps <= liveness._ALWAYS_JUMPS
    assert all(stored[name].jump == "relative" for name in jumps)  # continuations move code without changing it
    assert not [name for name, facts in stored.items() if facts.jump == "absolute"]
    leaves = {name for name in stored if name.startswith(("RETURN_", "RERAISE", "RAISE"))} - {"RETURN_GENERATOR"}
    assert leaves == liveness._LEAVES & set(stored)


def test_caches_of_the_prologue_are_the_listed_ones() -> None:
    stored = stored_opcodes(RUNNING)
    for name in ("BINARY_SUBSCR", "UNPACK_SEQUENCE", "LOAD_FAST", "LOAD_CONST", "STORE_FAST", "JUMP_FORWARD", "RESUME"):
        assert resume_code._cache_entries(name) == stored[name].caches


def test_lists_are_written_for_every_version_we_support() -> None:
    assert set(OPCODES) == set(VERSIONS)
    assert sys.version_info[:2] in OPCODES
