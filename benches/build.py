"""The programs that are measured, built as they are deployed and installed."""

import os
import platform
import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benches" / "programs"
TARGET = ROOT / "target" / "benches"


def function(name):
    """A function of the project as cargo-lambda builds it."""
    return ROOT / "target" / "lambda" / name / "bootstrap"


def program(name):
    """A program that functions are measured against."""
    return TARGET / "lambda" / name / "bootstrap"


def roomtide():
    return ROOT / "target" / "release" / "roomtide"


def everything():
    compare_manifests()
    # The versions are the project's: cargo takes out what the programs do not use and changes nothing else.
    shutil.copy(ROOT / "Cargo.lock", PROGRAMS / "Cargo.lock")
    build = ["cargo", "lambda", "build", "--release"]
    if platform.machine() == "aarch64":
        build += ["--arm64"]
    # Not with -p of both at once: sam builds each alone, with the features that it asks for itself.
    for name in ("ingest", "query"):
        command(*build, "--bin", name, cwd=ROOT / "functions" / name)
    command(*build, "--lambda-dir", TARGET / "lambda", "--target-dir", TARGET, cwd=PROGRAMS)
    command("cargo", "build", "--release", "--bin", "roomtide", cwd=ROOT)


def compare_manifests():
    """The programs have the versions, features and profile of the project, or no ratio means anything."""
    ours = tomllib.loads((ROOT / "Cargo.toml").read_text())
    theirs = tomllib.loads((PROGRAMS / "Cargo.toml").read_text())
    wanted = ours["workspace"]["dependencies"]
    differ = [name for name, what in theirs["dependencies"].items() if what != wanted.get(name)]
    if ours["profile"]["release"] != theirs["profile"]["release"]:
        differ.append("profile.release")
    if differ:
        raise RuntimeError(f"benches/programs/Cargo.toml and Cargo.toml differ in {', '.join(differ)}")


def command(*words, cwd):
    ran = subprocess.run([str(word) for word in words], cwd=cwd, env=os.environ, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} in {cwd}:\n{ran.stdout}{ran.stderr}")
