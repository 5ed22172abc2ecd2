"""The regions that the template and the docs name, against the resource types of each region that cfn-lint ships. Asks no AWS."""

import re
import sys
from pathlib import Path

from cfnlint.helpers import REGIONS
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

ROOT = Path(__file__).resolve().parents[2]
REGION = r"\b[a-z]{2}(?:-[a-z]+)+-[0-9]\b"
# AWS's page has named it, so the type's schema alone does not say that function URLs are there:
# https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html
NAMED_BY_AWS = {"eu-south-2"}


def main():
    template = (ROOT / "template.yaml").read_text()
    same("template.yaml: regions without function URLs", without("AWS::Lambda::Url") | NAMED_BY_AWS, named(template))
    parameters = (ROOT / "docs/deploy/parameters.md").read_text()
    line = next(line for line in parameters.splitlines() if line.startswith("- `MonthlyBudget`"))
    same("docs/deploy/parameters.md: regions without budgets", without("AWS::Budgets::Budget"), named(line))
    print("the regions without function URLs and without budgets are those of cfn-lint's schemas")


def without(kind):
    """The regions whose CloudFormation does not know a type."""
    return {region for region in REGIONS if kind not in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}


def named(text):
    return set(re.findall(REGION, text))


def same(what, expected, found):
    if expected != found:
        sys.exit(f"{what}: missing {sorted(expected - found)}, too many {sorted(found - expected)}")


if __name__ == "__main__":
    main()
