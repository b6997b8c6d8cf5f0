"""The table in `tests/faq/README.md`: which test shows which statement of the documents; running this file writes it.

The statement of a test is the first line of its docstring.
"""

import ast
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "faq"
PAGE = FOLDER / "README.md"

HEAD = """# The documents, statement by statement

The documents are the `torch.compile` FAQ in two editions (1: of PyTorch 2.1, 2: a later one) and the page on
fine-grained tracing (P). A row is a statement or an example, in short words, and the test that shows it for plumbline;
where editions differ, the one in which more works is the goal. For `torch.compile` and `torch._dynamo` read
`plumbline`. `python tests/support/faq_table.py` writes this page. What only a GPU can run is in `gpu_only.toml`.
"""

# (heading, documents, file, tests: how their names go on after `test_`); a heading may need several files.
SECTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("Does it support training?", "1 2", "capture", "forward_and_optimizer"),
    (
        "Does it support training?",
        "1 2",
        "training_and_stages",
        "each_segment forward_and_backward the_pair backward_runs",
    ),
    ("Do you support distributed code?", "1 2", "distributed", ""),
    ("Do I still need to export whole graphs?", "1 2", "training_and_stages", "most_models a_whole_graph"),
    ("Why is my code crashing?", "1 2", "capture", "each_backend"),
    ("Why is my code crashing?", "1 2", "training_and_stages", "the_first_backend backend_"),
    ("Why is compilation slow?", "1 2", "examples", "slow_"),
    ("Why is compilation slow?", "1 2", "training_and_stages", "each_file a_function_is_compiled the_profiler"),
    ("Why are you recompiling in production?", "1 2", "examples", "production_"),
    ("How are you speeding up my code?", "1 2", "speed_and_answers", "operations_ memory_ generated_"),
    ("Why am I not seeing speedups?", "1 2", "examples", "speedups_"),
    ("Why am I not seeing speedups?", "1 2", "speed_and_answers", "what_an_extension few_breaks explain_"),
    ("Why didn't my code recompile when I changed it?", "1 2", "examples", "changed_"),
    (
        "Why didn't my code recompile when I changed it?",
        "1 2",
        "speed_and_answers",
        "sizes_ of_several what_was_compiled",
    ),
    ("Why am I getting incorrect results?", "1 2", "examples", "incorrect_"),
    ("Why am I getting incorrect results?", "1 2", "speed_and_answers", "random_ wrong_ a_backend_that without_"),
    ("Why am I getting OOMs?", "1 2", "speed_and_answers", "dynamic_shapes"),
    (
        "Does torch.func work?",
        "1 2",
        "transforms_of_functions",
        "transform_ what_eager grad_of vmap_of without_capture other_ linearize_",
    ),
    (
        "Does torch.func work? Limitations",
        "1",
        "transforms_of_functions",
        "inputs_ arguments_ side_ questions_ a_stride a_storage",
    ),
    ("The escape hatch", "1 2", "transforms_of_functions", "allow_ what_is_allowed in_place the_state"),
    ("Does NumPy work?", "1 2", "numpy_sixty", ""),
    ("Does NumPy work?", "1 2", "numpy_statements", ""),
    ("Fine-grained tracing", "1 2 P", "fine_grained_tracing", ""),
    ("Settings and modes that the documents name", "1 2 P", "examples", "settings_"),
    ("Settings and modes that the documents name", "1 2 P", "training_and_stages", "every_setting an_unknown modes_"),
)


def named_in(file: str) -> dict[str, str]:
    """Return the tests of a file in their order, each with its statement; empty where there is none."""
    tree = ast.parse((FOLDER / f"test_{file}.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: (ast.get_docstring(node) or "").partition("\n")[0] for node in functions}


def rows() -> list[tuple[str, str, str, str, str]]:
    """Return (heading, documents, statement, file, test) of every row; raises LookupError for a name without a test."""
    found = []
    for heading, documents, file, names in SECTIONS:
        tests = named_in(file)
        for start in names.split() or [""]:
            chosen = [name for name in tests if name.startswith(f"test_{start}")]
            if not chosen:
                raise LookupError(f"no test of test_{file}.py begins with test_{start}")
            found += [(heading, documents, tests[name], file, name) for name in chosen]
    return found


def page() -> str:
    """Return the text of the page."""
    lines, last = [HEAD], ""
    for heading, documents, statement, file, name in rows():
        if heading != last:
            lines += [f"## {heading}", "", "| in | statement | test |", "|---|---|---|"]
            lines[-4] = ("\n" if last else "") + lines[-4]
            last = heading
        statement = statement.rstrip(".").replace("|", "\\|")
        lines.append(f"| {documents} | {statement} | `test_{file}.py::{name}` |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
