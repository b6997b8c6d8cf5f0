"""Make torch's CUDA build load without CUDA's libraries: stand-ins for them, in which every function says "no device".

    python tests/support/gpu_stubs.py ENVIRONMENT/lib/python3.12/site-packages/torch/lib

Where an index has only CUDA builds of a release, `pip install --no-deps torch==2.15.0` fetches half a gigabyte in place
of several, and this makes it usable on the CPU.  Needs `readelf`, `nm` and `gcc`.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

NO_DEVICE = 100  # cudaErrorNoDevice, and CUDA_ERROR_NO_DEVICE
GPU_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
SYSTEM = "libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1 libpthread.so.0 libdl.so.2 librt.so.1"


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed_libraries(libraries: list[Path]) -> set[str]:
    """Return the libraries of CUDA that these need and that do not lie beside them."""
    named = {
        name for path in libraries for name in re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", str(path)))
    }
    return {name for name in named - {path.name for path in libraries} if GPU_LIBRARY.match(name)}


def library_of_versions(libraries: list[Path]) -> dict[str, str]:
    """Return which library has the symbols of a version, by its name."""
    found: dict[str, str] = {}
    for path in libraries:
        library = ""
        for line in output("readelf", "-VW", str(path)).splitlines():
            if file := re.search(r"File: (\S+)", line):
                library = file[1]
            if library and (version := re.search(r"Name: (\S+)", line)):
                found[version[1]] = library
    return found


def symbols(path: Path | str, which: str) -> list[tuple[str, str]]:
    """Return names and versions ("" without one) of the undefined or defined symbols of a library."""
    lines = [line.split()[-1] for line in output("nm", "-D", f"--{which}-only", str(path)).splitlines() if line]
    parts = [line.partition("@") for line in lines]
    return [(name, version.lstrip("@")) for name, _, version in parts]


def missing_symbols(libraries: list[Path]) -> dict[str, set[str]]:
    """Return the names that nobody here defines, by version; torch finds those of Python when it is imported."""
    system = [output("gcc", f"-print-file-name={name}").strip() for name in SYSTEM.split()]
    defined = {name for path in [*libraries, *system] for name, _ in symbols(path, "defined")}
    missing = defaultdict(set)
    for path in libraries:
        for name, version in symbols(path, "undefined"):
            if name not in defined and re.match(r"(?!_?Py)[A-Za-z_]\w*$", name):
                missing[version].add(name)
    return missing


def make_stub(target: Path, names: dict[str, set[str]]) -> None:
    """Make one library; names: its functions, by the version of their symbols."""
    with TemporaryDirectory() as folder:
        source, versions = Path(folder, "stub.c"), Path(folder, "stub.map")
        functions = sorted(set().union(*names.values()))
        source.write_text("".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in functions))
        named = [
            f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in names.items() if version and of
        ]
        versions.write_text("".join(named))
        script = [f"-Wl,--version-script,{versions}"] if named else []
        flags = ("-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{target.name}")
        output("gcc", *flags, *script, "-o", str(target), str(source))


def main(folder: Path) -> None:
    libraries = sorted({*folder.glob("*.so*"), *folder.parent.glob("_C*.so")})
    missing, owners = missing_symbols(libraries), library_of_versions(libraries)
    for index, library in enumerate(sorted(needed_libraries(libraries))):
        names = {version: of for version, of in missing.items() if owners.get(version) == library}
        make_stub(
            folder / library, names if index else {**names, "": missing[""]}
        )  # who has the others does not matter
        print(library)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
