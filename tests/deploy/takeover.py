"""Steps: a table that was kept, and one that is restored, in new stacks, as docs/deploy/take-over.md says."""

from release import FOLDER
from report import ok, same
from stack import Stack

READING = {"device_id": "meter", "current_w": 5, "timestamp": "2016-06-01T00:00:00Z"}


def kept(stack, tokens, parameters):
    """After `./deploy --remove`."""
    table, queue, before = stack.table, stack.outputs["FailuresUrl"], len(stack.items("meter"))
    # They are kept too. AWS would give the new ones other names, the emulator does not.
    for policy in (stack.outputs["MqttPolicy"], stack.outputs["MqttBridgePolicy"]):
        stack.emulator.client("iot").delete_policy(policyName=policy)
    take_over(stack, table, queue, parameters)
    same("table and queue of the new stack", (table, queue), (stack.table, stack.outputs["FailuresUrl"]))
    goes_on(stack, tokens, before)
    ok(f"the table that ./deploy --remove kept is imported, then ./deploy: all {before} items of the meter, tokens, new readings")


def restored(stack, tokens, parameters):
    """Beside the stack whose table was lost."""
    table = restore(stack.emulator, stack.table)
    sqs = stack.emulator.client("sqs")
    attributes = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
    queue = sqs.create_queue(QueueName="roomtide-failures", Attributes=attributes)["QueueUrl"]
    before = len(stack.items("meter"))
    other = Stack(stack.emulator, "restored")
    take_over(other, table, queue, parameters)
    same("the table of the new stack", table, other.table)
    goes_on(other, tokens, before)
    same("the stack beside it", before, len(stack.items("meter")))
    other.delete()
    ok(f"a restored table, which gets stream, expiry, recovery and protection first: all {before} items, new readings")


def restore(emulator, lost):
    dynamodb, table = emulator.client("dynamodb"), "restored-table"
    dynamodb.restore_table_to_point_in_time(SourceTableName=lost, TargetTableName=table, UseLatestRestorableTime=True)
    exists = dynamodb.get_waiter("table_exists")
    exists.wait(TableName=table, WaiterConfig={"Delay": 1})
    described = dynamodb.describe_table(TableName=table)["Table"]
    same("whether a restored table has a stream", False, "LatestStreamArn" in described)
    dynamodb.update_table(
        TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    exists.wait(TableName=table, WaiterConfig={"Delay": 1})
    dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "exp"})
    dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    return table


def take_over(stack, table, queue, parameters):
    """The change set IMPORT with table and queue alone, then the whole template."""
    cloudformation, name = stack.emulator.client("cloudformation"), {"StackName": stack.name}
    template = (FOLDER / "take-over.yaml").read_text()
    known = [it for it in parameters if f"  {it}:\n" in template]
    cloudformation.create_change_set(
        **name, ChangeSetName="take-over", ChangeSetType="IMPORT", TemplateBody=template,
        Parameters=[{"ParameterKey": it, "ParameterValue": str(parameters[it])} for it in known],
        ResourcesToImport=[
            {"ResourceType": "AWS::DynamoDB::Table", "LogicalResourceId": "Table", "ResourceIdentifier": {"TableName": table}},
            {"ResourceType": "AWS::SQS::Queue", "LogicalResourceId": "Failures", "ResourceIdentifier": {"QueueUrl": queue}}])
    patience = {"WaiterConfig": {"Delay": 1}}
    cloudformation.get_waiter("change_set_create_complete").wait(**name, ChangeSetName="take-over", **patience)
    cloudformation.execute_change_set(**name, ChangeSetName="take-over")
    cloudformation.get_waiter("stack_import_complete").wait(**name, **patience)
    # The first parameters are remembered.
    stack.deploy(**{name: value for name, value in parameters.items() if name not in known})


def goes_on(stack, tokens, before):
    same("the meter's items in the table", before, len(stack.items("meter")))
    page, ingest = stack.function_url("PageUrl"), stack.function_url("IngestUrl")
    listed = stack.call("GET", "/devices/meter", token=tokens["read"], url=page).expect(200)
    same("the device that is asked for", "meter", listed["device_id"])
    stack.call("POST", "/readings", READING, tokens["meter"], url=ingest).expect(201)
    span = "from=2016-06-01T00:00:00Z&to=2016-06-02T00:00:00Z"
    found = stack.call("GET", f"/devices/meter/readings?{span}", token=tokens["read"], url=page).expect(200)["data"]
    same("the new reading", [5], [row["current_w"] for row in found])
