"""Writes a function's zip: one executable `bootstrap`, the same bytes for the same program. Builds nothing."""

import sys
import zipfile
from pathlib import Path

out, program = sys.argv[1:]
entry = zipfile.ZipInfo("bootstrap", (2020, 1, 1, 0, 0, 0))
entry.compress_type = zipfile.ZIP_DEFLATED
# Lambda runs it, so it has to be executable. 3 is Unix: only then are the bits the file's mode.
entry.create_system = 3
entry.external_attr = 0o100755 << 16
with zipfile.ZipFile(out, "w") as archive:
    archive.writestr(entry, Path(program).read_bytes(), compresslevel=9)
