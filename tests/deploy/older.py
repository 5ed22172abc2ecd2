"""Steps: a stack of an older commit is updated, and keeps its address, its table and its billing."""

import io
import json
import zipfile

from processes import ROOT
from report import ok, same
from stack import ARCHITECTURE, Stack

TEMPLATE = ROOT / "tests" / "deploy" / "older.json"
BUCKET = "older-functions"
READING = {"device_id": "meter", "current_w": 3, "timestamp": "2016-01-11T16:00:00Z"}


def updated(emulator):
    stack = Stack(emulator, "older")
    create(stack)
    token = stack.token("create", "--quiet", "--scope", "admin").strip()
    stack.call("POST", "/readings", READING, token).expect(201)
    api, table, queue = (stack.outputs[name] for name in ("ApiUrl", "TableName", "FailuresUrl"))
    same("the outputs of the older stack", True, "PageUrl" not in stack.outputs)

    stack.deploy()
    same("API, table and queue after the update", (api, table, queue),
         tuple(stack.outputs[name] for name in ("ApiUrl", "TableName", "FailuresUrl")))
    parameters = {it["ParameterKey"]: it["ParameterValue"] for it in stack.look()["Parameters"]}
    same("the billing after the update", ("on-demand", "both"), (parameters["Billing"], parameters["Front"]))
    described = emulator.client("dynamodb").describe_table(TableName=table)["Table"]
    same("the billing of the table", "PAY_PER_REQUEST", described["BillingModeSummary"]["BillingMode"])
    span = "from=2016-01-11T00:00:00Z&to=2016-01-12T00:00:00Z"
    for url in (stack.api, stack.function_url("PageUrl")):
        found = stack.call("GET", f"/devices/meter/readings?{span}", token=token, url=url).expect(200)["data"]
        same(f"the reading from before, at {url}", [3], [row["current_w"] for row in found])
    for url in (stack.api, stack.function_url("IngestUrl")):
        stack.call("POST", "/readings", READING, token, url=url).expect(201)
    stack.delete()
    ok("a stack that SAM made of an older template: ./deploy keeps API, table and on-demand billing and adds function URLs")


def create(stack):
    """The older template as CloudFormation made it, with the functions of today."""
    s3, cloudformation = stack.emulator.client("s3"), stack.emulator.client("cloudformation")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": s3.meta.region_name})
    for built in (ROOT / ".aws-sam" / "build").glob("*Function"):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.write(built / "bootstrap", "bootstrap")
        s3.put_object(Bucket=BUCKET, Key=f"{built.name}.zip", Body=archive.getvalue())
    # Its text is longer than a request may be, but not in a bucket.
    text = TEMPLATE.read_text().replace("BUCKET", BUCKET)
    json.loads(text)
    s3.put_object(Bucket=BUCKET, Key="template.json", Body=text.encode())
    cloudformation.create_stack(
        StackName=stack.name, TemplateURL=f"{stack.emulator.url}/{BUCKET}/template.json", Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": "Architecture", "ParameterValue": ARCHITECTURE}])
    cloudformation.get_waiter("stack_create_complete").wait(StackName=stack.name, WaiterConfig={"Delay": 1})
    stack.look()
