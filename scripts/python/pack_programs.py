#!/usr/bin/env python3
"""Takes the programs out of wheels, and packs each for people without Python.

usage: scripts/python/pack_programs.py [-h] WHEELS PROGRAMS

For each wheel below the folder WHEELS writes mingle-VERSION-PLATFORM.tar.gz into the folder PROGRAMS: the program, licences and changelog.
The same wheel gives the same archive.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BESIDE = ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"]


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:2] in (["-h"], ["--help"]) else 2)
    wheels = sorted(Path(sys.argv[1]).rglob("mingle_train-*.whl"))
    if not wheels:
        sys.exit(f"scripts/python/pack_programs.py: there is no wheel below {sys.argv[1]}")
    output = Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        print(pack(wheel, output))


def pack(wheel: Path, output: Path) -> Path:
    """Writes the archive of a wheel, and returns its path."""
    _, version, _, _, platform = wheel.stem.split("-")
    name = f"mingle-{version}-{platform.split('.')[0]}"
    with zipfile.ZipFile(wheel) as archive:
        programs = [path for path in archive.namelist() if ".data/scripts/mingle" in path]
        if len(programs) != 1:
            sys.exit(f"scripts/python/pack_programs.py: {wheel} has {len(programs)} programs, and not one")
        files = [(Path(programs[0]).name, archive.read(programs[0]), 0o755)]
    files += [(path, (ROOT / path).read_bytes(), 0o644) for path in BESIDE]
    packed = output / f"{name}.tar.gz"
    with packed.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for path, content, mode in files:
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed


if __name__ == "__main__":
    main()
