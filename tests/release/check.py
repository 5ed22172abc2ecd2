"""Packs a release's commands, installs them as a stranger does, and runs the image, without internet.

    python3 tests/release/check.py [COMMANDS]

COMMANDS is the folder `bin` of a release; without it the command that the tests have built is taken, stripped, together
with the libraries that it needs, which a released one does not. Needs root, and Debian's packages busybox-static, skopeo,
umoci and runc. Absent: macOS, Windows, another processor, a registry of images.
"""

import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import image
import installer

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "roomtide"
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
PROCESSOR = "aarch64" if platform.machine() == "aarch64" else "x86_64"
OTHER = "x86_64" if PROCESSOR == "aarch64" else "aarch64"
STARTED = time.monotonic()


def main(commands=None):
    with tempfile.TemporaryDirectory(prefix="roomtide release ") as folder:
        folder = Path(folder)
        # The user of the image reaches what is in it.
        folder.chmod(0o755)
        commands = Path(commands).resolve() if commands else debug_commands(folder / "commands")
        libraries = needed(commands / f"roomtide-linux-{PROCESSOR}")
        # A command that needs libraries is left out of the image, unless they are added where it runs.
        added = {"ROOMTIDE_LIBRARIES_ADDED": "1"} if libraries else {}
        downloads = made(commands, folder / "downloads", **added)
        packed(commands, downloads)
        static_alone(folder)
        repeated(folder)
        attached(downloads)
        for said in installer.checked(folder, downloads, VERSION, PROCESSOR, libraries):
            ok(said)
        for said in image.checked(folder, downloads, VERSION, PROCESSOR, libraries):
            ok(said)


def ok(said):
    print(f"{time.monotonic() - STARTED:6.0f} s  ok  {said}")


def debug_commands(folder):
    """The command that the tests have built, and for the other processor a file that runs nowhere."""
    folder.mkdir()
    subprocess.run(["strip", "-o", folder / f"roomtide-linux-{PROCESSOR}", PROGRAM], check=True)
    head = bytearray((folder / f"roomtide-linux-{PROCESSOR}").read_bytes()[:64])
    head[18] ^= 0x80  # the processor, in the head of an ELF file
    head[56:58] = bytes(2)  # the number of its parts
    (folder / f"roomtide-linux-{OTHER}").write_bytes(head)
    (folder / "roomtide-darwin-aarch64").write_bytes(b"of macOS")
    return folder


def made(commands, out, **env):
    out.mkdir()
    words = [ROOT / "tools" / "downloads", VERSION, commands, out]
    subprocess.run(words, env=os.environ | env, cwd="/", check=True)
    return out


def packed(commands, downloads):
    """All files are there, with their checksums; an archive names nobody and no time."""
    names = sorted(file.name for file in downloads.iterdir())
    processors = [file.name.removeprefix("roomtide-linux-") for file in commands.glob("roomtide-linux-*")]
    archives = [f"roomtide-{VERSION}-linux-{processor}.tar.gz" for processor in processors]
    assert names == sorted([*archives, f"roomtide-{VERSION}.oci.tar", "install.sh", "SHA256SUMS"]), names

    for file in commands.glob("roomtide-[!l]*"):
        shutil.copy(file, downloads)
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=downloads, check=True)
    sums = (downloads / "SHA256SUMS").read_text()
    assert all(f"  {file.name}\n" in sums for file in downloads.iterdir() if file.name != "SHA256SUMS"), sums

    for name in archives:
        assert (downloads / name).read_bytes()[4:8] == bytes(4), "gzip notes no time"
        with tarfile.open(downloads / name) as archive:
            entries = {entry.name.partition("/")[2]: entry for entry in archive.getmembers()}
        assert sorted(entries) == ["", "LICENSE-APACHE", "LICENSE-MIT", "roomtide"], entries
        assert entries["roomtide"].mode == 0o755
        assert {(entry.uid, entry.gid, entry.uname, entry.mtime) for entry in entries.values()} == {(0, 0, "", 1577836800)}
    ok(f"made, with their checksums: {', '.join(names)}")


def static_alone(folder):
    """A command that is not static is in an archive and not in the image; of no static one there is no image."""
    commands, out = folder / "mixed", folder / "mixed-out"
    commands.mkdir()
    out.mkdir()
    (out / f"roomtide-{VERSION}.oci.tar").write_bytes(b"of an earlier release")
    shutil.copy(sys.executable, commands / f"roomtide-linux-{OTHER}")
    for static in (False, True):
        if static:
            shutil.copy(shutil.which("busybox"), commands / f"roomtide-linux-{PROCESSOR}")
        ran = subprocess.run([ROOT / "tools" / "downloads", VERSION, commands, out], text=True, capture_output=True, check=True)
        (said,) = ran.stdout.splitlines()
        assert said == f"no image for {image.ARCHITECTURES[OTHER]}: {commands}/roomtide-linux-{OTHER} is not a static command for Linux"
        sums = (out / "SHA256SUMS").read_text()
        assert f"-linux-{OTHER}.tar.gz" in sums and (f"roomtide-{VERSION}.oci.tar" in sums) == static, sums
        assert (out / f"roomtide-{VERSION}.oci.tar").exists() == static

    index = json.loads(image.output("skopeo", "inspect", "--raw", f"oci-archive:{out}/roomtide-{VERSION}.oci.tar:{VERSION}"))
    made_for = [manifest["platform"]["architecture"] for manifest in index["manifests"]]
    assert made_for == [image.ARCHITECTURES[PROCESSOR]], index
    ok("a command that needs libraries is left out of the image in one line; without a static one there is no image")


def repeated(folder):
    """Equal commands give equal bytes, whatever their times and modes are."""
    found = []
    for mode in (0o600, 0o755):
        commands = folder / f"small-{mode}"
        commands.mkdir()
        for processor in (PROCESSOR, OTHER):
            (commands / f"roomtide-linux-{processor}").write_bytes(b"small")
            (commands / f"roomtide-linux-{processor}").chmod(mode)
        env = {"ROOMTIDE_DOWNLOADS": "https://example.org/releases/1", "ROOMTIDE_LIBRARIES_ADDED": "1"}
        out = made(commands, folder / f"small-out-{mode}", **env)
        found.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert found[0] == found[1], found[0].keys()
    assert b"url=${ROOMTIDE_URL:-https://example.org/releases/1}\n" in found[0]["install.sh"]
    ok("equal commands give equal bytes")


def attached(downloads):
    """What the hosted workflow attaches to a release, and attests, is what the tools make."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    made_files = {f"target/{file.name}" for file in downloads.iterdir()} | {f"target/roomtide-{VERSION}.tar.gz"}
    made_files = {name.replace("target/roomtide-darwin", "target/commands/roomtide-darwin") for name in made_files}

    (release,) = [line for line in workflow.splitlines() if "gh release create" in line]
    assert named(made_files, re.findall(r"target/\S+", release)) == made_files
    attested = re.findall(r"^ +(target/\S+)$", workflow, re.MULTILINE)
    assert made_files - named(made_files, attested) == {"target/SHA256SUMS"}, attested

    called = re.findall(r"(?<![\w/])tools/\w+", workflow)
    assert called and all(os.access(ROOT / tool, os.X_OK) for tool in called), called
    ok("release.yml attaches and attests what the tools make, and nothing else")


def named(names, patterns):
    """The names that the patterns of a shell fit; each fits one at least."""
    found = {pattern: set(fnmatch.filter(names, pattern)) for pattern in patterns}
    nothing = [pattern for pattern in patterns if not found[pattern] and pattern != "target/commands/*"]
    assert not nothing, f"release.yml names {nothing}, which nothing makes"
    return set().union(*found.values())


def needed(command):
    """The libraries of a command that is not static; a released one has none."""
    listed = subprocess.run(["ldd", command], text=True, capture_output=True)
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listed.stdout)] if listed.returncode == 0 else []


if __name__ == "__main__":
    main(*sys.argv[1:])
