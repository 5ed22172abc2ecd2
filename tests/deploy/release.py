"""A release and its script `deploy`, run as an owner runs it: on a terminal, with the AWS CLI and without Cargo."""

import os
import platform
import pty
import re
import shutil
import subprocess

from processes import LOGS, ROOT, Failed, command

REGION = "eu-west-1"
ARCHITECTURE = "arm64" if platform.machine() == "aarch64" else "x86_64"
# What a machine has that never built anything, and the AWS CLI.
PATH = f"{ROOT}/target/tools/awscli/bin:/usr/bin:/bin"


VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
ARCHIVE = ROOT / "target" / f"roomtide-{VERSION}.tar.gz"
# Its archive, unpacked as an owner unpacks it.
FOLDER = LOGS / f"roomtide-{VERSION}"


def make():
    """Makes the release for this machine's processor, and unpacks it."""
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "release.log").write_text(command(ROOT / "tools" / "release", ARCHITECTURE))
    sums = [line.split("  ")[1] for line in (ARCHIVE.parent / "SHA256SUMS").read_text().splitlines()]
    linux = f"roomtide-{VERSION}-linux-{'aarch64' if ARCHITECTURE == 'arm64' else ARCHITECTURE}.tar.gz"
    # The command that the tests have built is not static, so there is no image of it.
    if {*sums} - {f"roomtide-{VERSION}.oci.tar"} != {ARCHIVE.name, linux, "install.sh"}:
        raise Failed(f"what is beside the release: {sums}")
    command("sh", "-c", "cd target && sha256sum --check --quiet SHA256SUMS")
    shutil.rmtree(FOLDER, ignore_errors=True)
    command("tar", "-xzf", ARCHIVE, "-C", LOGS)


def deploy(emulator, *words, answer="y\n", expect=0):
    """`./deploy`, on a terminal whose owner answers its question; what the terminal showed."""
    env = emulator.env | {"PATH": PATH, "AWS_DEFAULT_REGION": REGION, "TERM": "dumb"}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [FOLDER / "deploy", *words], cwd="/", env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    # It has tokens, so it is no file.
    if process.wait() != expect:
        raise Failed(f"deploy {' '.join(words)} ended with {process.returncode}, not {expect}:\n{text}")
    return text
