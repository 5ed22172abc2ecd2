"""Expands template.yaml as SAM does at a deploy, so that CloudFormation needs no transform. Deploys nothing.

The functions' code comes from the bucket in the parameter CodeBucket, which `deploy` makes and fills. Beside it a list
of all parameters with their defaults, which `deploy` reads without a parser.
"""

import json
import os
import sys

# The translator asks for the region's partition only; no request is sent.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from samcli.yamlhelper import yaml_parse  # keeps timestamps as texts, as CloudFormation does
from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """The template names no policy of AWS's own, so there is nothing to load from IAM."""

    def load(self):
        return {}


def as_texts(value):
    """The environment of a function has texts. CloudFormation makes them of numbers; an emulator does not."""
    if isinstance(value, dict):
        return {name: as_texts(it) for name, it in value.items()}
    if isinstance(value, list):
        return [as_texts(it) for it in value]
    return value if isinstance(value, str) else str(value)


def main(source, prefix, out, parameters_out):
    with open(source) as file:
        template = yaml_parse(file.read())
    template["Parameters"]["CodeBucket"] = {
        "Type": "String",
        "Description": "Bucket with the functions' code, in this region. ./deploy makes and fills it.",
    }
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = resource["Properties"]
            function = properties["CodeUri"].rsplit("/", 1)[-1]
            properties["CodeUri"] = {
                "Bucket": {"Ref": "CodeBucket"},
                "Key": {"Fn::Sub": f"{prefix}/${{Architecture}}/{function}.zip"},
            }
            resource.pop("Metadata", None)
            variables = properties.get("Environment", {}).get("Variables", {})
            properties["Environment"] = {"Variables": as_texts(variables)}
    # Its output names a command that needs the source; ./deploy makes the tokens.
    template["Outputs"].pop("FirstToken", None)
    expanded = transform(template, {}, NoManagedPolicies())
    assert "Transform" not in expanded
    serverless = [name for name, it in expanded["Resources"].items() if it["Type"].startswith("AWS::Serverless")]
    assert not serverless, serverless
    with open(out, "w") as file:
        json.dump(expanded, file, indent=1)
        file.write("\n")
    with open(parameters_out, "w") as file:
        for name, parameter in expanded["Parameters"].items():
            file.write(f"{name}={parameter.get('Default', '')}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
