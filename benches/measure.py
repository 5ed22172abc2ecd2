"""The figures, in order: cold start, CPU of a POST, the system on one machine. How is in the files beside it."""

import argparse
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

import build
import deployed
import laptop

PARTS = {"cold": deployed.cold_start, "warm": deployed.cpu_of_post, "local": laptop.throughput, "kill": laptop.kill}


def main():
    parser = argparse.ArgumentParser(prog="benches/run", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without any")
    parser.add_argument("--rounds", type=int, default=0, help="how often each is measured; a good number without it")
    parser.add_argument("--plain", action="store_true", help="DynamoDB over plain HTTP: what remains without TLS")
    parser.add_argument("--built", action="store_true", help="measure what the last run built")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if not args.built:
        build.everything()
    busy = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {busy:.1f}; medians of interleaved rounds")
    with tempfile.TemporaryDirectory(prefix="roomtide-benches-") as scratch:
        for name in args.parts or PARTS:
            PARTS[name](Table(), args, Path(scratch))


class Table:
    """What is printed: one line a figure, the ratio first."""

    def title(self, text):
        print(f"\n{text}")

    def ratio(self, name, of, to, unit, digits=0):
        """One line of `of` and `to`, measured side by side; the ratio is the median of the rounds' ratios."""
        ratio = statistics.median(a / b for a, b in zip(of, to, strict=True))
        of, to = (f"{statistics.median(those):,.{digits}f}" for those in (of, to))
        print(f"  {ratio:7.3g} x  {name}: {of} to {to} {unit}")

    def line(self, text):
        print(f"             {text}")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as failure:
        sys.exit(f"FAILED  {failure}")
