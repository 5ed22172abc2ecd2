"""Programs of the checks: commands to their end, servers until the checks end. Knows no AWS."""

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "deploy"


class Failed(Exception):
    """What was expected and what came."""


def scratch():
    """A folder for what programs leave behind, which goes when the checks end."""
    folder = LOGS / "scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # What is registered first is done last: the servers have ended by then.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def command(*words, env=None):
    """What the command writes; its failure ends the checks."""
    ran = subprocess.run([str(word) for word in words], cwd=ROOT, env=env, text=True, capture_output=True)
    if ran.returncode != 0:
        raise Failed(f"{Path(words[0]).name} {words[1]} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def server(name, words, env, answers):
    """Starts a server, waits until `answers()`, and ends it with everything that it started; its log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(word) for word in words], cwd=LOGS, env=env, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    atexit.register(end, process)
    until(f"{name} answers (its log is {log})", answers, alive=process)
    return process, log


def end(process):
    """Ends a server's whole process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        for _ in range(50):
            if process.poll() is not None:
                break
            time.sleep(0.1)
    process.wait()


def until(what, holds, seconds=600, alive=None):
    """Waits for something that is bound to happen; what `holds` gave when it did.

    On a machine that other checks keep busy all comes late, and to ask is work too: so it waits long, and asks less often.
    """
    deadline = time.monotonic() + seconds
    pause = 0.2
    while True:
        found = holds()
        if found:
            return found
        if alive is not None and alive.poll() is not None:
            raise Failed(f"it ended with {alive.returncode} before: {what}")
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {what}; last: {found!r}")
        time.sleep(pause)
        pause = min(pause * 1.5, 3)


def free_port():
    """Below the ports that Linux gives to whoever asks for any: it is nobody else's a moment later, and does not answer itself."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


# A signal ends the checks as an error does, so that the servers are ended.
for ending in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(ending, lambda *_: sys.exit("ended by a signal"))
