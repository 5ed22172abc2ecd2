"""Steps: tokens are made and revoked, requests beyond them refused, and no log holds one. Asks for no range."""

import base64
import json
import secrets
import time

import home
from processes import Failed
from report import ok, same

# So long a revoked token may go on: TOKEN_CACHE_AGE in shared/runtime/src/authentication.rs.
TOKEN_CACHE_AGE = 30
# Stands in query strings only.
CANARY = "canary-" + secrets.token_hex(8)


def make_tokens(stack):
    def create(*words):
        return stack.token("create", "--quiet", *words).strip()

    tokens = {
        # The first three, which ./deploy has made: what follows is done with them.
        **stack.first_tokens,
        "meter": create("--scope", "write", "--device", "meter"),
        "thermometers": create("--scope", "write", *(word for room in home.ROOMS for word in ("--device", f"thermo-{room}"))),
        "revoked": create("--scope", "read", "--name", "lost phone"),
    }
    listed = stack.token("list")
    ids = [it for it in listed.split() if len(it) == 12 and set(it) <= set("0123456789abcdef")]
    same(f"the tokens in the list\n{listed}", len(tokens), len(ids))
    for secret in tokens.values():
        if secret in listed or any(secret in json.dumps(item) for item in stack.items("TOKEN")):
            raise Failed("a secret is shown or kept after its token was made")
    ok("the table has the first tokens; roomtide token makes further ones; neither list nor table holds a secret")
    return tokens


def revoke_one(stack, tokens):
    stack.call("GET", "/devices", token=tokens["revoked"]).expect(200)
    line = next(line for line in stack.token("list").splitlines() if "lost phone" in line)
    stack.token("revoke", line.split()[0])
    return time.monotonic()


def revoked(stack, tokens, since):
    time.sleep(max(0, since + TOKEN_CACHE_AGE + 1 - time.monotonic()))
    gone = stack.call("GET", "/devices", token=tokens["revoked"])
    gone.expect(401)
    unknown = stack.call("GET", "/devices", token="rt_" + secrets.token_urlsafe(32))
    same("the answer to a revoked token, beside one that never was", unknown.text, gone.text)
    ok(f"a revoked token is refused after {TOKEN_CACHE_AGE} s, and looks like one that never was")


def refusals(stack, tokens):
    stack.call("GET", "/health").expect(200)
    for method, path in (("GET", "/devices"), ("POST", "/readings"), ("GET", "/openapi.json"), ("PATCH", "/rooms/kitchen")):
        stack.call(method, path, {} if method != "GET" else None).expect(401)
    password = base64.b64encode(f"anybody:{tokens['read']}".encode()).decode()
    for headers in ({"Authorization": f"Token {tokens['read']}"}, {"Authorization": f"Basic {password}"}):
        stack.call("GET", "/devices", headers=headers).expect(200)
    stack.call("GET", f"/devices?p={tokens['read']}").expect(200)
    stack.call("GET", f"/devices?p={tokens['read']}&room={CANARY}&from={CANARY}").expect(400)
    ok("401 without a token everywhere but at /health; Bearer, Token, Basic and ?p= are taken")

    stack.call("POST", "/readings", {"device_id": "meter", "current_w": 1}, tokens["read"]).expect(403)
    stack.call("GET", "/devices", token=tokens["meter"]).expect(403)
    bad = stack.call("POST", "/readings", [{"device_id": "meter", "current_w": "much"}], tokens["meter"]).expect(400)
    same("what is wrong", (0, "current_w"), (bad["errors"][0]["index"], bad["errors"][0]["field"]))
    some = [{"device_id": "meter", "current_w": 1, "timestamp": "2016-04-01T00:00:00Z"}, {"device_id": "meter", "current_w": None, "pk": 1}]
    same("the reading at fault", 1, stack.call("POST", "/readings", some, tokens["meter"]).expect(207)["rejected"][0]["index"])
    stack.call("POST", "/readings", b" " * ((1 << 20) + 1), tokens["meter"]).expect(413)
    stack.call("GET", "/devices/nobody", token=tokens["read"]).expect(404)
    stack.call("GET", "/nowhere", token=tokens["read"]).expect(404)
    stack.call("DELETE", "/devices", token=tokens["admin"]).expect(405)
    stack.call("GET", "/devices/meter/readings?from=yesterday", token=tokens["read"]).expect(400)
    stack.call("GET", "/devices/meter/readings?cursor=forged", token=tokens["read"]).expect(400)
    ok("403 beyond a token's scope, 400 and 207 with index and field, 413, 404, and 400 for a bad range or cursor")


def foreign_devices(stack, tokens):
    own = {"device_id": "meter", "current_w": 7, "timestamp": "2016-02-01T00:00:00Z"}
    for foreign in ("thermo-kitchen", "new-device"):
        both = [own, own | {"device_id": foreign, "room": "kitchen"}]
        stack.call("POST", "/readings", both, tokens["meter"]).expect(403)
        if any("2016-02-01" in item["sk"]["S"] for device in ("meter", foreign) for item in stack.items(device)):
            raise Failed(f"something of a request is stored that reached for {foreign}")
    for reserved in ("DEVICE", "ROOM", "TOKEN"):
        stack.call("POST", "/readings", own | {"device_id": reserved}, tokens["admin"]).expect(400)
    names = {item["sk"]["S"] for item in stack.items("DEVICE")}
    if any("new-device" in name for name in names):
        raise Failed("a refused device is registered")
    ok("a token of one device stores nothing when it reaches for another's; reserved ids are refused to everybody")


def no_secret_in_any_log(stack, tokens):
    written = stack.emulator.function_logs()
    for function in ("fetching", "ingest", "query", "registry"):
        if f'"function":"{function}"' not in written:
            raise Failed(f"the log of {function} was not read")
    written += stack.emulator.log.read_text()
    for name, secret in tokens.items() | {("the query string", CANARY), ("a body", "water_temperature")}:
        if secret in written:
            raise Failed(f"{name} is in a log")
    ok(f"no token, query string or body in {len(written):,} characters of logs")
