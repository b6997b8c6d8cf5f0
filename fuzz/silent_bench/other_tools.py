"""SilentBench for other tools: the programs as a folder of pytest files, and what a tool said, read from JUnit XML."""

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .bench_cases import DATA, PROGRAMS


def export_programs(folder: Path) -> int:
    """Write every program as `test_<class>.py`, and the data beside them; return how many files there are.

    Raises UserError if the folder holds files already: they may be the user's.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError("is not an empty folder", where=str(folder), hint="name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    files = [file for file in sorted(PROGRAMS.glob("*.py")) if file.name != "__init__.py"]
    for file in files:
        shutil.copyfile(file, folder / f"test_{file.name}")
    shutil.copyfile(DATA, folder / DATA.name)
    return len(files)


def flagged_tests(junit: Path) -> dict[str, bool]:
    """Return case name -> whether its test failed, from the JUnit XML that `pytest --junitxml` writes.

    A test with parameters, or under several variants, is flagged if one of them failed; a skipped one did not run.
    Raises UserError for a file that cannot be read.
    """
    try:
        root = ElementTree.parse(junit).getroot()
    except (OSError, ElementTree.ParseError) as error:
        hint = "write it by pytest --junitxml=FILE"
        raise UserError("is not a JUnit file", where=str(junit), why=str(error)[:80], hint=hint) from None
    flagged: dict[str, bool] = {}
    for test in root.iter("testcase"):
        if test.find("skipped") is not None:
            continue
        name = test.get("name", "").partition("[")[0].removeprefix("test_")
        failed = test.find("failure") is not None or test.find("error") is not None
        flagged[name] = flagged.get(name, False) or failed
    return flagged
