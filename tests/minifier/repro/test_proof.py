import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.failure_signature import FailureSignature
from plumbline.minifier.repro.proof import ScriptFile, check_place, prove
from plumbline.minifier.repro.repro_script import Script

WRONG = FailureSignature("WRONG", "values", band="gross")


def written(tmp_path, text, blob=None):
    return ScriptFile(tmp_path / "repro.py", Script(text, blob))


def test_a_script_that_reproduces_each_time_is_proved(tmp_path):
    proof = prove(written(tmp_path, "raise SystemExit(1)"), 2, WRONG)
    assert (proof.holds, proof.count) == (True, 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [0, 2, 125])
def test_any_other_status_is_no_proof_and_is_told(tmp_path, status):
    proof = prove(written(tmp_path, f"print('it said this'); raise SystemExit({status})"), 2, WRONG)
    assert (proof.holds, proof.count) == (False, 0)
    assert f"status {status}: it said this" in proof.sentence


def test_a_native_death_proves_a_native_death_only(tmp_path):
    dies = written(tmp_path, "import os; os.abort()")
    assert prove(dies, 1, FailureSignature("CRASH", "exceptions", "run", "SIGABRT")).holds
    assert not prove(dies, 1, WRONG).holds


def test_inputs_lie_beside_the_script_in_the_proof_and_in_place(tmp_path):
    text = "import pathlib; raise SystemExit(pathlib.Path('repro.inputs.pt').read_bytes() == b'abc')"
    script = written(tmp_path / "new" / "folder", text, b"abc")
    assert prove(script, 1, WRONG).holds
    script.put_in_place()
    assert sorted(file.name for file in (tmp_path / "new" / "folder").iterdir()) == ["repro.inputs.pt", "repro.py"]


def test_inputs_of_an_earlier_script_are_removed(tmp_path):
    written(tmp_path, "one", b"abc").put_in_place()
    written(tmp_path, "two").put_in_place()
    assert [file.name for file in tmp_path.iterdir()] == ["repro.py"]


def test_checking_a_place_leaves_nothing(tmp_path):
    check_place(tmp_path / "new" / "folder" / "repro.py")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.py").mkdir()
    with pytest.raises(UserError, match="directory"):
        check_place(tmp_path / "x.py")
