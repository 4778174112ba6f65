"""`python -m mingle ...` runs the program `mingle` of this installation with all arguments: `python -m mingle demo`.

`python -m mingle bridge ...` is the one command that is here: it serves a shared folder (`mingle.bridge`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def program() -> Path | None:
    """The path of the program: MINGLE_BIN, else the one installed with this package, else the one on PATH; None where there is none."""
    name = "mingle.exe" if os.name == "nt" else "mingle"
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    installed = [str(Path(folder) / name) for folder in schemes if folder]
    candidates = [Path(found) for found in (os.environ.get("MINGLE_BIN"), *installed, shutil.which(name)) if found]
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def main() -> int:
    """Runs the program, and returns its exit code."""
    if sys.argv[1:2] == ["bridge"]:
        from mingle import bridge

        return bridge.main(sys.argv[2:])
    path = program()
    if path is None:
        print("python -m mingle: there is no program `mingle`: install the wheel of mingle-train for this platform", file=sys.stderr)
        return 127
    command = [str(path), *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.call(command)
    os.execv(path, command)


if __name__ == "__main__":
    sys.exit(main())
