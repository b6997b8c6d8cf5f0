import pytest

from plumbline.minifier.repro.issue_text import issue_text

HEAD = '"""1 operator that torch:inductor gets wrong.\n\nWRONG: values differ\n\nRun:  it\n\ntorch 2.13.0, Linux\n"""\n'
PROGRAM = "if __name__ == '__program__':\n    import torch\n    f(1)\n\nx = 5\n"
GRAPH = "def forward(x):\n    # x: f32[2]\n    return (x,)\n\ndef inputs():\n    return (1,)\n"
GRAPH += "\ndef build_graph():\n    pass\n"


@pytest.mark.parametrize(
    ("body", "there", "not_there"),
    [(PROGRAM, "import torch\nf(1)", "x = 5"), (GRAPH, "# x: f32[2]", "build_graph")],
    ids=["program", "graph"],
)
def test_an_issue_has_the_verdict_the_program_and_the_versions(tmp_path, body, there, not_there):
    script = tmp_path / "repro.py"
    script.write_text(HEAD + body)
    text = issue_text(script)
    assert text.startswith("# 1 operator that torch:inductor gets wrong\n\n    WRONG: values differ\n")
    assert there in text
    assert not_there not in text
    assert "    torch 2.13.0, Linux" in text
