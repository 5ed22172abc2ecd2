"""Lists the crates of the functions and the command as CycloneDX, from `cargo metadata`. Finds no vulnerability.

Tests' and build scripts' crates are left out: they are in no program. The page's chart library is not a crate.
https://cyclonedx.org/docs/1.6/json/
"""

import json
import sys
from pathlib import Path

PROGRAMS = {"roomtide", "alerting", "fetching", "ingest", "query", "registry", "rollup"}


def main(version):
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [node for node in nodes if node in metadata["workspace_members"] and packages[node]["name"] in PROGRAMS]
    reached = {}
    while waiting:
        node = waiting.pop()
        if node in reached:
            continue
        used = [it["pkg"] for it in nodes[node]["deps"] if any(kind["kind"] is None for kind in it["dep_kinds"])]
        reached[node] = used
        waiting += used
    # Those without a source are the project's own.
    crates = [node for node in reached if packages[node]["source"]]
    components = [component(packages[node]) for node in crates]
    vendored = Path("web/vendor/README.md").read_text()
    components.append({
        "type": "library", "name": "uplot", "version": vendored.split("uPlot ", 1)[1].split()[0].rstrip(",.;"),
        "licenses": [{"license": {"id": "MIT"}}],
    })
    json.dump({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {"type": "application", "name": "roomtide", "version": version}},
        "components": sorted(components, key=lambda it: (it["name"], it["version"])),
    }, sys.stdout, indent=1)
    print()


def component(package):
    name, version = package["name"], package["version"]
    found = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
    if package["license"]:
        # Before SPDX had words for it, crates wrote a slash.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
