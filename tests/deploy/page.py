"""The web page as the deployed API serves it: without a token, and in Chromium where that is installed."""

import re
import shutil

from processes import ROOT, Failed, command
from report import ok, same

# The larger files are sent compressed only.
BROWSER = {"Accept-Encoding": "gzip"}
TOOLS = ROOT / "target" / "tools" / "web"


def served(stack, tokens):
    shown = stack.call("GET", "/")
    same("the status of the page", 200, shown.status)
    files = re.findall(r'"(assets/[^"]+)"', shown.text)
    if len(files) < 10:
        raise Failed(f"the page names only {files}")
    for file in files:
        same(f"the status of {file}", 200, stack.call("GET", f"/{file}", headers=BROWSER).status)
    same("the status of a file of another build", 404, stack.call("GET", "/assets/0.main.js").status)
    seen = "no browser is here"
    if shutil.which("chromium") and (TOOLS / "wanted").exists():
        link = f"{stack.function_url('PageUrl')}/#token={stack.first_tokens['read']}"
        for url, token in ((link, ""), (stack.api + "/", tokens["read"])):
            command("node", ROOT / "tests" / "web" / "deployed.mjs", url, token, TOOLS, "Kitchen")
        seen = "Chromium shows the kitchen's tile by the link that ./deploy shows, and at the API with a token"
    ok(f"the web page and its {len(files)} files are served without a token; {seen}")
