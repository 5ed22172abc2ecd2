"""How many readings a second an import stores with their rollups: without a server, and through one.

    cargo build --release && python3 benches/history.py [READINGS]

Ten devices, with a reading a minute and with one in ten minutes. Both ways store the same file into an empty directory
and wait until all of it is rolled up. Prints readings a second, and the ratio of the two ways.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "target" / "release" / "roomtide"
BEGIN = 1_577_836_800
DEVICES = 10


def write(path, step, count):
    """Writes readings of all devices, as a meter with a thermometer sends them."""
    chance = random.Random(1)
    with open(path, "w") as out:
        print("timestamp,device_id,room,power_w,energy_kwh,temperature", file=out)
        for device in range(DEVICES):
            total = 100.0
            for n in range(count // DEVICES):
                watts = chance.randint(0, 3000)
                total += watts * step / 3.6e6
                at = BEGIN + n * step
                print(f"{at},meter-{device},room-{device % 4},{watts},{total:.3f},{20 + chance.random():.1f}", file=out)


def imported(file, words):
    """The seconds until all is stored and rolled up."""
    began = time.monotonic()
    done = subprocess.run([PROGRAM, "import", file, *words], capture_output=True, text=True)
    if done.returncode or "rolled up: " not in done.stdout:
        sys.exit(done.stdout + done.stderr)
    return time.monotonic() - began


def main():
    """Prints the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        for step, name, part in [(60, "a minute", 1), (600, "in ten minutes", 5)]:
            file, some = place / f"{step}.csv", place / f"{step}-some.csv"
            write(file, step, count)
            write(some, step, count // part // 5)
            rate = count / imported(file, ["--data-dir", place / f"direct-{step}"])
            server = subprocess.Popen(
                [PROGRAM, "--empty", "--port", "0", "--data-dir", place / f"served-{step}"], stdout=subprocess.PIPE, text=True
            )
            try:
                url = re.search(r"http\S+", server.stdout.readline()).group()
                served = count // part // 5 / imported(some, ["--url", url])
            finally:
                server.terminate()
                server.wait()
            print(f"a reading {name}: {rate:,.0f} a second without a server, {served:,.0f} through one, {rate / served:.1f} times")


if __name__ == "__main__":
    main()
