"""Builds the measured programs as they are deployed."""

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
    """The path of a deployed function."""
    return ROOT / "target" / "lambda" / name / "bootstrap"


def program(name):
    """The path of a program that functions are compared with."""
    return TARGET / "lambda" / name / "bootstrap"


def roomtide():
    return ROOT / "target" / "release" / "roomtide"


def everything():
    compare_manifests()
    # Cargo drops the packages that the programs do not use and keeps the versions of the others.
    shutil.copy(ROOT / "Cargo.lock", PROGRAMS / "Cargo.lock")
    build = ["cargo", "lambda", "build", "--release"]
    if platform.machine() == "aarch64":
        build += ["--arm64"]
    # One at a time, as `sam build` does: together they would share the features that either asks for.
    for name in ("ingest", "query"):
        command(*build, "--bin", name, cwd=ROOT / "functions" / name)
    command(*build, cwd=PROGRAMS, target=TARGET)
    command("cargo", "build", "--release", "--bin", "roomtide", cwd=ROOT)


def compare_manifests():
    """Fails if the programs differ from the project in a version, a feature or the release profile."""
    ours = tomllib.loads((ROOT / "Cargo.toml").read_text())
    theirs = tomllib.loads((PROGRAMS / "Cargo.toml").read_text())
    wanted = ours["workspace"]["dependencies"]
    differ = [name for name, what in theirs["dependencies"].items() if what != wanted.get(name)]
    # The programs use none of the packages that have a profile of their own.
    release = {name: what for name, what in ours["profile"]["release"].items() if name != "package"}
    if release != theirs["profile"]["release"]:
        differ.append("profile.release")
    if differ:
        raise RuntimeError(f"benches/programs/Cargo.toml and Cargo.toml differ in {', '.join(differ)}")


def command(*words, cwd, target=ROOT / "target"):
    env = os.environ | {"CARGO_TARGET_DIR": str(target)}
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} in {cwd}:\n{ran.stdout}{ran.stderr}")
