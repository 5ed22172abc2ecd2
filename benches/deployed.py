"""Measures the deployed functions: cold start, CPU time of a POST, and how long one of many lines takes."""

import json
import os
import ssl
import statistics
import time
from pathlib import Path

import build
from readings import event, introduction, lines, readings, write
from stubs import WHOLE, Authority, CpuShare, DynamoDb, Runtime

# Readings per POST, and POSTs per round.
POSTS = {500: 20, 25: 200, 1: 400}
# A POST of line protocol, and what surrounds it: a function of 256 MB, and a table that answers in 5 ms.
LINES, DEVICES, MEMORY, TABLE_SECONDS = 1_000, 50, 256, 0.005
# Turns per round. More turns spread the load of the machine evenly; fewer keep the caches warm.
TURNS = 4


class Lambda:
    """The environment of the functions, with devices and rooms in the registry."""

    def __init__(self, args, scratch):
        self.scratch = scratch
        authority = Authority(scratch)
        self.table = DynamoDb(None if args.plain else authority.server())
        scheme = "http" if args.plain else "https"
        self.env = {
            "AUTH": "off", "AWS_ACCESS_KEY_ID": "ASIAIOSFODNN7EXAMPLE",
            "AWS_ENDPOINT_URL_DYNAMODB": f"{scheme}://localhost:{self.table.port}",
            "AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "k" * 40,
            # Lambda's credentials are temporary; the SDK signs and sends the token with each request.
            "AWS_SESSION_TOKEN": "t" * 800,
            "REGISTRY_MAX_AGE_SECONDS": "3600", "TABLE_NAME": "table",
        } | roots(authority.root.read_text(), scratch)
        ingest = self.start(build.function("ingest"))
        answer = ingest.invoke(event(introduction()))
        ingest.end()
        if answer.get("statusCode") != 201 or len(self.table.items) < len(introduction()):
            raise RuntimeError(f"ingest does not register devices: {answer}")

    def start(self, program, **env):
        return Runtime(program, self.env | env, build.TARGET / f"{program.parent.name}.log")


def roots(own, scratch):
    """Files of root certificates: as many as in Lambda, and the throw-away one."""
    path = next(path for path in [Path("/etc/pki/tls/certs/ca-bundle.crt"), Path("/etc/ssl/certs/ca-certificates.crt")]
                if path.exists())
    known = ssl.create_default_context(cafile=path)
    encoded = [ssl.DER_cert_to_PEM_cert(der) for der in known.get_ca_certs(binary_form=True)]
    amazon = [pem for pem, root in zip(encoded, known.get_ca_certs(), strict=True) if "Amazon" in str(root["subject"])]
    system, bundle = scratch / "system.pem", scratch / "bundle.pem"
    system.write_text("".join([own, *encoded]))
    bundle.write_text("".join([own, *amazon]))
    return {"SSL_CERT_FILE": str(system), "AWS_CA_BUNDLE": str(bundle)}


def cold_start(report, args, scratch):
    """Time from exec to the first request for an event."""
    where = Lambda(args, scratch)
    programs = {"hello": build.program("hello"), "ingest": build.function("ingest"), "query": build.function("query")}
    taken, cpu = ({name: [] for name in programs} for _ in range(2))
    for round in range(1 + (args.rounds or 100)):
        for name, program in programs.items():
            instance = where.start(program)
            if round:  # the first reads the programs from the disk
                taken[name].append(instance.start_seconds * 1e3)
                cpu[name].append(instance.cpu_seconds() * 1e3)
            instance.end()
    report.title(f"cold start, exec to the first /next, with {'plain HTTP' if args.plain else 'TLS'} and the registry")
    for name in ("ingest", "query"):
        report.ratio(f"{name} to a hello world", taken[name], taken["hello"], "ms", 1)
        report.ratio(f"{name} to a hello world, CPU time of it", cpu[name], cpu["hello"], "ms", 1)


def cpu_of_post(report, args, scratch):
    """CPU time of a POST, compared with the SDK alone sending the same items."""
    where = Lambda(args, scratch)
    report.title("CPU time of a POST, user and kernel, beside the bare SDK sending the same items")
    for count, posts in POSTS.items():
        post, items = event(readings(count)), scratch / f"{count}.json"
        ingest = where.start(build.function("ingest"))
        batches = where.table.stored(lambda: ingest.invoke(post))
        ingest.end()
        items.write_text(json.dumps([item for batch in batches for item in batch]))
        taken = [], []
        for round in range(args.rounds or 20):
            # New processes each round: the CPU that a process lands on affects its cost.
            instances = where.start(build.function("ingest")), where.start(build.program("bare-sdk"), ITEMS=str(items))
            if not round:
                same(batches, where.table.stored(lambda: instances[1].invoke(post)), count)
            for instance, costs, cost in zip(instances, taken, turns(instances, post, posts), strict=True):
                costs.append(cost * 1e6)
                instance.end()
        report.ratio(f"ingest to the bare SDK, {count} a POST", *taken, "µs")


def turns(instances, post, posts):
    """CPU time per POST of each instance, warm. The instances take turns."""
    for _ in ("warm up", "measure"):
        before = [instance.cpu_seconds() for instance in instances]
        for _ in range(TURNS):
            for instance in instances:
                for _ in range(posts // TURNS):
                    instance.invoke(post)
    return [(instance.cpu_seconds() - was) / posts for instance, was in zip(instances, before, strict=True)]


def same(ours, theirs, count):
    """Fails unless both sent the same items in the same requests."""
    first = lambda batch: (batch[0]["pk"]["S"], batch[0]["sk"]["S"])
    if sum(map(len, ours)) != count or sorted(ours, key=first) != sorted(theirs, key=first):
        sizes = [list(map(len, batches)) for batches in (ours, theirs)]
        raise RuntimeError(f"of {count} readings ingest and the bare SDK sent other items, in batches of {sizes}")


def many_lines(report, args, scratch):
    """Time of a POST of many lines at 256 MB, its CPU time, and the requests that it makes to the table."""
    where = Lambda(args, scratch)
    post = write(lines(LINES, DEVICES))
    share = MEMORY / WHOLE
    ingest = where.start(build.function("ingest"))

    def sent():
        was, since = ingest.cpu_seconds(), time.perf_counter()
        answer = ingest.invoke(post)
        taken = time.perf_counter() - since
        if answer.get("statusCode") != 204:
            raise RuntimeError(f"ingest does not take the lines: {answer}")
        return taken, ingest.cpu_seconds() - was

    sent()  # registers the devices
    before = where.table.requests.copy()
    sent()
    requests = where.table.requests - before
    where.table.delay = TABLE_SECONDS
    rounds = args.rounds or 20
    whole = [sent() for _ in range(rounds)]
    each = f"{TABLE_SECONDS * 1e3:.0f} ms per request to the table"
    report.title(f"a POST of {LINES:,} lines of {DEVICES} devices, {each}")
    made = ", ".join(f"{number:,} {name}" for name, number in sorted(requests.items()))
    report.line(f"{made}; {median_ms(cpu for _, cpu in whole)} ms of CPU time")
    report.line(f"{median_ms(taken for taken, _ in whole)} ms with a whole CPU")
    try:
        group = CpuShare(share)
    except OSError as why:
        report.line(f"with {share:.3f} of a CPU not measured, for want of a control group: {why}")
        return ingest.end()
    try:
        group.add(ingest.process)
        limited = [sent() for _ in range(rounds)]
    finally:
        ingest.end()
        group.end()
    slowest = max(taken for taken, _ in limited) * 1e3
    report.line(f"{median_ms(taken for taken, _ in limited)} ms with {share:.3f} of a CPU, as at {MEMORY} MB, "
                f"and at most {slowest:,.0f} ms; {median_ms(cpu for _, cpu in limited)} ms of CPU time")


def median_ms(seconds):
    return f"{statistics.median(seconds) * 1e3:,.0f}"
