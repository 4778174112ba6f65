"""Installs PyTorch from PyPI without CUDA's libraries, for tests on the processor.

PyPI's wheels of PyTorch for Linux on x86-64 are built for CUDA, and need some gigabytes of NVIDIA's libraries to be imported at all.
This installs the wheel alone and its dependencies in pure Python, and then compiles an empty library for each one that is missing:
its functions answer 100, which is `cudaErrorNoDevice`. PyTorch then finds no device, and works on the processor.

    python torch_without_cuda.py torch==2.15.0

It needs `cc` and `nm` and `readelf` (binutils). Where the wheel needs no missing library (macOS, Linux on arm64), it compiles nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

FOR_CUDA = re.compile(r"nvidia|cuda|triton", re.IGNORECASE)
PRESENT = re.compile(r"^(lib(c|m|dl|rt|z|pthread|stdc\+\+|gcc_s|quadmath|gomp)\.so|ld-linux)")


def main(requirement: str) -> None:
    pip("install", "--no-deps", requirement)
    name = re.split(r"[=<>~!]", requirement)[0]
    forget_cuda(name)
    pip("install", *pure_dependencies(name))
    if sys.platform != "linux":
        return
    folder = library_folder(name)
    libraries = sorted(folder.glob("*.so*"))
    missing = missing_libraries(libraries)
    symbols = undefined_symbols(libraries)
    for position, library in enumerate(sorted(missing)):
        versions = {version: symbols.pop(version, set()) for version in missing[library]}
        # Symbols without a version do not say which library they are from: any one will do.
        unversioned = symbols.pop("", set()) if position == 0 else set()
        compile_stub(folder / library, versions, unversioned)
    print(f"{len(missing)} libraries of CUDA are empty stand-ins: {' '.join(sorted(missing))}")


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def forget_cuda(name: str) -> None:
    """Takes CUDA out of the requirements of what is installed, so that later installations do not bring it."""
    files = importlib.metadata.files(name) or []
    metadata = next(Path(str(file.locate())) for file in files if file.name == "METADATA")
    lines = metadata.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not (line.startswith("Requires-Dist:") and FOR_CUDA.search(line))]
    metadata.write_text("".join(kept), encoding="utf-8")


def pure_dependencies(name: str) -> list[str]:
    """What the distribution needs on this platform, extras apart."""
    requirements = (line.partition(";") for line in importlib.metadata.requires(name) or [])
    return [requirement.strip() for requirement, _, marker in requirements if "extra" not in marker]


def library_folder(name: str) -> Path:
    found = importlib.util.find_spec(name)  # does not import it
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "lib"


def missing_libraries(libraries: list[Path]) -> dict[str, list[str]]:
    """Libraries that are needed and not here, each with the symbol versions that are wanted of it."""
    ours = {library.name for library in libraries if not is_stub(library)}
    missing: dict[str, list[str]] = defaultdict(list)
    for library in libraries:
        for needed in re.findall(r"NEEDED\).*\[(.*)\]", output("readelf", "-d", str(library))):
            if needed not in ours and not PRESENT.match(needed):
                missing[needed]
        file = ""
        for line in output("readelf", "-V", str(library)).splitlines():
            if found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif (found := re.search(r"Name: (\S+)", line)) and file in missing and found[1] not in missing[file]:
                missing[file].append(found[1])
    return missing


def undefined_symbols(libraries: list[Path]) -> dict[str, set[str]]:
    """Functions that the libraries use and none of them defines, by symbol version ("" where they have none)."""
    undefined, defined = defaultdict(set), set()
    for library in libraries:
        for line in output("nm", "-D", str(library)).splitlines():
            *_, kind, symbol = line.split()
            name, _, version = symbol.partition("@")
            if kind not in "Uwv" and not is_stub(library):
                defined.add(name)
            elif kind == "U" and re.fullmatch(r"\w+", name) and not name.startswith("_Z"):
                undefined[version.lstrip("@")].add(name)
    return {version: names - defined for version, names in undefined.items()}


def compile_stub(path: Path, versions: dict[str, set[str]], unversioned: set[str]) -> None:
    functions = sorted(set().union(unversioned, *versions.values()))
    source = "int mingle_stand_in;\n" + "".join(map(definition, functions))
    script = "".join(
        f"{version} {{ {'global: ' + '; '.join(sorted(names)) + ';' if names else ''} }};\n" for version, names in versions.items()
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stub.c").write_text(source)
        (Path(folder) / "stub.map").write_text(script)
        command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", str(path), f"-Wl,-soname,{path.name}", f"{folder}/stub.c"]
        subprocess.run(command + ([f"-Wl,--version-script,{folder}/stub.map"] if versions else []), check=True)


def definition(name: str) -> str:
    """The function in C."""
    if name.endswith(("String", "ErrorName", "_error")):
        return f'const char *{name}(void) {{ return "there is no CUDA here"; }}\n'
    if name == "cudaStreamIsCapturing":  # asked without a device too
        return f"int {name}(void *stream, int *status) {{ *status = 0; return 0; }}\n"
    return f"long {name}(void) {{ return 100; }}\n"


def is_stub(path: Path) -> bool:
    """Whether this program made the library: then it is made again."""
    return path.stat().st_size < 1_000_000 and b"mingle_stand_in" in path.read_bytes()


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1])
