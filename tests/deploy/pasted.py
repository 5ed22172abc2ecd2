"""Steps: what `sam build` has built is deployed by `sam deploy`, as the page about deployments has it. Adds no token."""

import re

from processes import command
from report import ok, same
from stack import ARCHITECTURE, Stack


def deployed(emulator):
    stack = Stack(emulator, "pasted")
    shown = command(
        "sam", "deploy", "--no-confirm-changeset", "--stack-name", stack.name,
        "--parameter-overrides", f"Architecture={ARCHITECTURE}", env=emulator.env)
    same("what sam deploy ends with", True, bool(re.search("Successfully created/updated stack", shown)))
    stack.look()
    same("the status of /health", 200, stack.call("GET", "/health", url=stack.function_url("PageUrl")).status)
    token = stack.token("create", "--quiet", "--scope", "admin").strip()
    reading = {"device_id": "meter", "current_w": 5, "timestamp": "2016-01-11T16:00:00Z"}
    stack.call("POST", "/readings", reading, token, url=stack.function_url("IngestUrl")).expect(201)
    ok("sam deploy of what sam build has built: a first reading is stored")
