"""Step: the bills of the published sheets, on the deployed system."""

import json
import os
import sys
from decimal import Decimal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cost"))
import sheets
from report import ok


def billed(stack, tokens):
    def call(method, path, body=None):
        headers = {"Content-Type": "application/json"}
        answer = stack.call(method, path, body and body.encode(), tokens["admin"], headers)
        answer.expect(201 if method == "POST" else 200)
        return json.loads(answer.text, parse_float=Decimal)

    ok(f"the bills of {sheets.check(call)} published sheets are theirs, line by line")
