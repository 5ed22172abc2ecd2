"""The roles of template.yaml against what their functions ask, by a simulator of IAM that is not ours. Asks no AWS.

`calls.json` has what each function asks of the table, as tests/permissions.rs has seen it asked; the rest is here, with
the page of AWS that says so. What a function does not ask must be denied.
"""

import json
import subprocess
import sys
from pathlib import Path

from samcli.yamlhelper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]
REGION, ACCOUNT, STACK = "eu-west-1", "123456789012", "roomtide"
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{STACK}-Table"
STREAM = f"{TABLE}/stream/2026-01-01T00:00:00.000"
LAMBDA = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}"
SQS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{STACK}"
SNS = f"arn:aws:sns:{REGION}:{ACCOUNT}"
OTHER_TOPIC = f"{SNS}:alerts"
READS = {"BatchGetItem", "GetItem", "Query"}
ACTIONS = {"BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PartiQLInsert", "PutItem", "Query", "UpdateItem"}

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/iam-policy-example-lamda-process-dynamodb-streams.html
OF_STREAM = [("dynamodb:DescribeStream", STREAM), ("dynamodb:GetRecords", STREAM), ("dynamodb:GetShardIterator", STREAM), ("dynamodb:ListStreams", "*")]
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html: to send what failed
FAILURES = [("sqs:SendMessage", f"{SQS}-Failures")]
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html#events-sqs-permissions, and to leave work for later
QUEUE = [(f"sqs:{it}", f"{SQS}-RollupQueue") for it in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage", "SendMessage")]
BESIDE_THE_TABLE = {
    "alerting": [("sns:Publish", f"{SNS}:{STACK}-AlertTopic")],
    "fetching": [("lambda:InvokeFunction", f"{LAMBDA}-IngestFunction")],
    "ingest": FAILURES,
    "query": [("lambda:InvokeFunction", f"{LAMBDA}-FetchingFunction")],
    "registry": [*OF_STREAM, *FAILURES, ("lambda:InvokeFunction", f"{LAMBDA}-AlertingFunction")],
    "rollup": [*OF_STREAM, *FAILURES, *QUEUE],
}
# What nobody may.
FOREIGN = [("sns:Publish", OTHER_TOPIC), ("lambda:InvokeFunction", f"{LAMBDA}-QueryFunction"), ("dynamodb:Scan", TABLE), ("dynamodb:DeleteTable", TABLE)]


def main(place):
    template = yaml_parse((ROOT / "template.yaml").read_text())
    calls = json.loads((ROOT / "tests/deploy/calls.json").read_text())
    roles = {function: policies(template["Resources"], f"{function.capitalize()}Role") for function in calls["functions"]}
    expected = [*of_tables(calls), *of_indexes(calls), *beside_tables()]
    asked = {"account": ACCOUNT, "roles": roles, "calls": [call for call, _ in expected]}
    done = subprocess.run(["node", ROOT / "tests/deploy/policies.mjs", place], input=json.dumps(asked), text=True, stdout=subprocess.PIPE, check=True)
    allowed = json.loads(done.stdout)
    wrong = [(call, may) for (call, may), is_allowed in zip(expected, allowed, strict=True) if may != is_allowed]
    for call, may in wrong[:20]:
        print(f"{call['role']} {'may not' if may else 'may'} {call['action']} {call['resource']} {call['keys']}")
    if wrong:
        sys.exit(f"{len(wrong)} of {len(expected)} calls are not as the functions need them")
    print(f"{len(expected)} calls, {sum(may for _, may in expected)} of them needed, are allowed and denied as they should be")


def call(role, action, resource, keys=()):
    return {"role": role, "action": action, "resource": resource, "keys": list(keys)}


def of_tables(calls):
    """Each action on each partition: what is needed is allowed, and a request that names a further partition is not."""
    for function, needed in calls["functions"].items():
        for action in sorted(ACTIONS):
            allowed = [key for target, keys in calls["partitions"].items() for key in keys if f"{action} {target}" in needed]
            for keys in calls["partitions"].values():
                for key in keys:
                    yield call(function, f"dynamodb:{action}", TABLE, [key]), key in allowed
                    # Batches and transactions name several; readings and other items are in none together.
                    if allowed and ("#" in key) == ("#" in allowed[0]):
                        yield call(function, f"dynamodb:{action}", TABLE, [allowed[0], key]), key in allowed
            if action not in READS:
                yield call(function, f"dynamodb:{action}", TABLE, ["NEW#some-device"]), False


def of_indexes(calls):
    for function, needed in calls["functions"].items():
        for target, name in calls["indexes"].items():
            yield call(function, "dynamodb:Query", f"{TABLE}/index/{name}"), f"Query {target}" in needed


def beside_tables():
    everything = {it for its in BESIDE_THE_TABLE.values() for it in its}
    for function, needed in BESIDE_THE_TABLE.items():
        group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/{STACK}-{function}:log-stream:one"
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            yield call(function, action, group), True
        for action, resource in sorted(everything):
            yield call(function, action, resource), (action, resource) in needed
        for action, resource in FOREIGN:
            yield call(function, action, resource), False


def policies(resources, role):
    """The policies of a role where all parameters are given."""
    listed = [it["Fn::If"][1] if "Fn::If" in it else it for it in resources[role]["Properties"]["Policies"]]
    return [{"name": it["PolicyName"], "policy": resolved(it["PolicyDocument"], resources)} for it in listed]


def resolved(value, resources):
    if isinstance(value, list):
        return [resolved(it, resources) for it in value]
    if not isinstance(value, dict):
        return value
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"] if isinstance(value["Fn::GetAtt"], list) else value["Fn::GetAtt"].split(".")
        return arn(name, attribute, resources)
    if "Ref" in value:
        return arn(value["Ref"], "Arn", resources)
    if "Fn::Sub" in value:
        return value["Fn::Sub"].replace("${Table.Arn}", TABLE)
    return {name: resolved(it, resources) for name, it in value.items()}


def arn(name, attribute, resources):
    kind = resources[name]["Type"]
    if kind == "AWS::Logs::LogGroup":
        # It ends so: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-loggroup.html
        group = resources[name]["Properties"]["LogGroupName"]["Fn::Sub"].replace("${AWS::StackName}", STACK)
        return f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:*"
    return {
        ("AWS::DynamoDB::Table", "Arn"): TABLE,
        ("AWS::DynamoDB::Table", "StreamArn"): STREAM,
        ("AWS::SQS::Queue", "Arn"): f"{SQS}-{name}",
        ("AWS::SNS::Topic", "Arn"): f"{SNS}:{STACK}-{name}",
        ("AWS::Serverless::Function", "Arn"): f"{LAMBDA}-{name}",
    }[kind, attribute]


if __name__ == "__main__":
    main(sys.argv[1])
