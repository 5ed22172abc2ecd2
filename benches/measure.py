"""Runs the benchmarks in order and prints their figures. Measures nothing itself."""

import argparse
import os
import platform
import signal
import statistics
import sys
import tempfile
from pathlib import Path

import answers
import build
import charts
import conditions
import deployed
import laptop
import rollups

PARTS = {"cold": deployed.cold_start, "warm": deployed.cpu_of_post, "lines": deployed.many_lines,
         "local": laptop.throughput, "kill": laptop.kill, "rollups": rollups.rollups,
         "conditions": conditions.conditions, "answers": answers.answers, "charts": charts.charts, "points": charts.points, "growth": charts.growth,
         "page": charts.page}


def main():
    parser = argparse.ArgumentParser(prog="benches/run", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each part; default: its own number")
    parser.add_argument("--plain", action="store_true", help="reach DynamoDB over plain HTTP")
    parser.add_argument("--built", action="store_true", help="build nothing, measure the programs of the last run")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # ends the servers too
    if not args.built:
        build.everything()
    busy = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {busy:.1f}; medians of interleaved rounds")
    with tempfile.TemporaryDirectory(prefix="roomtide-benches-") as scratch:
        for name in args.parts or PARTS:
            PARTS[name](Table(), args, Path(scratch))


class Table:
    """The printed report: one line per figure, the ratio first."""

    def title(self, text):
        print(f"\n{text}")

    def ratio(self, name, of, to, unit, digits=0):
        """Prints the median of the rounds' ratios, then the median of each side."""
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
