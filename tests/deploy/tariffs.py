"""Steps: the published sheets are entered and billed on the deployed system. How is in tests/cost/sheets.py."""

import json
import sys
from decimal import Decimal

from processes import ROOT
from report import ok

sys.path.insert(0, str(ROOT / "tests" / "cost"))
import sheets


def billed(stack, tokens):
    def call(method, path, body=None):
        answer = stack.call(method, path, body and body.encode(), tokens["admin"], {"Content-Type": "application/json"})
        answer.expect(201 if path == "/readings" else 200)
        return json.loads(answer.text, parse_float=Decimal)

    count = sheets.check(call)
    ok(f"the bills of {count} published sheets, entered by PUT with posted readings, are theirs line by line")
