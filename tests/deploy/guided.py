"""`sam deploy --guided`, answered by Enter alone: all questions are answered before AWS is asked. Deploys nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The last question; AWS is asked for the first time afterwards, and nothing answers at this address.
LAST = "SAM configuration environment"
NOWHERE = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0",
}


def main():
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | NOWHERE
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for file in ("template.yaml", "samconfig.toml"):
            shutil.copy(ROOT / file, folder)
        for function in ("alerting", "fetching", "ingest", "query", "registry", "rollup"):
            (folder / "functions" / function).mkdir(parents=True)
            (folder / "functions" / function / "bootstrap").write_text("")
        ran = subprocess.run(
            ["sam", "deploy", "--guided"], cwd=folder, env=env, input="\n" * 200, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    asked = ran.stdout
    if "has no authentication" in asked or LAST not in asked:
        sys.exit(f"Enter alone does not get through the questions of sam deploy --guided:\n{asked}")
    print(f"sam deploy --guided: {asked.count(']: ')} questions, answered by Enter alone")


if __name__ == "__main__":
    main()
