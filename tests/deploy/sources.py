"""Steps: a source of the deployed system. A deployed server asks public addresses by https only, so no maker can be played:
the source's own device tells, by way of ingest, that its address is refused. The roles' permissions are in around.py."""

import json
import secrets

from processes import Failed, until
from report import ok, same

SECRET = "geheim-" + secrets.token_hex(8)
# Its name leads to this machine, which is seen when it is asked.
SOURCE = {"kind": "json", "url": "https://localhost/v1/pump", "headers": {"x-api-key": "{key}"}, "secrets": {"key": SECRET},
          "device": "pump", "metrics": {"temperature": "/flow"}}
WHY = "which is loopback; a deployed server connects to public addresses only"


def asked(stack, tokens):
    admin, read = tokens["admin"], tokens["read"]
    for url in ("http://api.example.org/", "https://127.0.0.1/", "https://169.254.169.254/"):
        for method, path in (("PUT", "/sources/check"), ("POST", "/sources/test")):
            refused = stack.call(method, path, SOURCE | {"url": url}, admin).expect(400)
            same(f"what is wrong with {url}", "url", refused["errors"][0]["field"])
    stack.call("PUT", "/sources/check", SOURCE, read).expect(403)
    tried = stack.call("POST", "/sources/test", SOURCE, admin).expect(422)
    if WHY not in tried["detail"]:
        raise Failed(f"a test of a source on this machine says {tried}")
    ok(f"query has fetching try a source: {tried['detail']}")

    stack.call("PUT", "/sources/check", SOURCE, admin).expect(200)
    state = until("the schedule has asked the source", lambda: asked_state(stack, read))
    if WHY not in state["error"]:
        raise Failed(f"the state of a source on this machine is {state}")
    latest = stack.call("GET", "/devices/source:check/latest", token=read).expect(200)
    same("what is stored of it", 1, latest["metrics"]["failing"]["value"])
    same("the readings of its device", 1, len([it for it in stack.items("source:check") if it["sk"]["S"].startswith("TS#")]))
    same("the items with its secret", {"POLL#SECRETS"}, partitions_with(stack, SECRET))
    for answer in ("/sources", "/sources/check"):
        shown = stack.call("GET", answer, token=admin)
        if SECRET in shown.text:
            raise Failed(f"GET {answer} shows a secret")
    stack.call("DELETE", "/sources/check", token=admin).expect(200)
    same("the items with its secret when it is deleted", set(), partitions_with(stack, SECRET))
    ok("the schedule asks a source, and its reading is in the table by way of ingest; its secret is in POLL#SECRETS alone")


def asked_state(stack, token):
    """The state of the source, if it fails by now."""
    state = stack.call("GET", "/sources/check", token=token).expect(200)["state"]
    return state if state["state"] == "failing" else None


def partitions_with(stack, secret):
    """The partitions of the items that have a text."""
    pages = stack.emulator.client("dynamodb").get_paginator("scan").paginate(TableName=stack.table, ConsistentRead=True)
    items = (item for page in pages for item in page["Items"])
    return {item["pk"]["S"] for item in items if secret in json.dumps(item, default=str)}
