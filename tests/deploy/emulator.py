"""MiniStack with what it lacks for this template. Deploys nothing.

Stock MiniStack 1.5.33 ignores the OpenAPI `Body` in which an HTTP API's routes are written, drops the table's
time to live and point-in-time recovery, makes several indexes in one update, keeps a table's limits as texts,
takes a reported batch item failure for a success, knows no `dynamodb:LeadingKeys` in a policy's
conditions and no `dynamodb:PartiQLInsert`, streams no item that a statement inserts, and makes no saved queries
and no budgets by CloudFormation. What is done here follows AWS's documentation; it is a reading of it, not AWS.
Absent: MaximumRecordAgeInSeconds, the batching window, throttling, the deletions of expired items, access logs,
alarms, and the permissions without which a function URL answers nobody.
"""

import concurrent.futures
import contextvars
import json
import re
import time

import ministack.app as app
from ministack.core import iam_evaluator
from ministack.core.responses import get_account_id
from ministack.services import apigateway, dynamodb, lambda_svc
from ministack.services.cloudformation import provisioners

METHODS = {"get", "post", "put", "delete", "patch", "head", "options"}


# ---- The routes of an HTTP API -------------------------------------------------------------------


def created(response):
    status, _, body = response
    if status >= 400:
        raise ValueError(f"the API cannot be made: {body!r}")
    return json.loads(body)


def import_routes(api_id, document):
    apigateway._routes[api_id] = {}
    apigateway._integrations[api_id] = {}
    cors = document.get("x-amazon-apigateway-cors")
    if cors:
        apigateway._apis[api_id]["corsConfiguration"] = cors
    shared = document.get("components", {}).get("x-amazon-apigateway-integrations", {})
    for path, operations in (document.get("paths") or {}).items():
        for method, operation in operations.items():
            integration = operation["x-amazon-apigateway-integration"]
            if "$ref" in integration:
                integration = shared[integration["$ref"].removeprefix("#/components/x-amazon-apigateway-integrations/")]
            if operation.get("isDefaultRoute"):
                import_route(api_id, "$default", integration)
            elif method in METHODS:
                import_route(api_id, f"{method.upper()} {path}", integration)


def import_route(api_id, route, integration):
    made = created(apigateway._create_integration(api_id, {
        "integrationType": integration["type"].upper(),
        "integrationUri": integration["uri"],
        "integrationMethod": integration.get("httpMethod", "POST"),
        "payloadFormatVersion": str(integration["payloadFormatVersion"]),
        "timeoutInMillis": integration.get("timeoutInMillis", 30000),
    }))
    created(apigateway._create_route(api_id, {
        "routeKey": route, "target": f"integrations/{made['integrationId']}",
    }))


def with_routes():
    api = provisioners._RESOURCE_HANDLERS["AWS::ApiGatewayV2::Api"]
    create, update = api["create"], api["update"]

    def create_with_routes(logical_id, properties, stack):
        api_id, attributes = create(logical_id, properties, stack)
        import_routes(api_id, properties["Body"])
        return api_id, attributes

    def update_with_routes(physical_id, old, new, stack, logical_id=None):
        updated = update(physical_id, old, new, stack, logical_id)
        import_routes(updated[0], new["Body"])
        return updated

    api["create"], api["update"] = create_with_routes, update_with_routes


# ---- The table's time to live and recovery -------------------------------------------------------


def with_expiry_and_recovery():
    table = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]

    def apply(name, properties):
        expiry = properties["TimeToLiveSpecification"]
        dynamodb._update_ttl({"TableName": name, "TimeToLiveSpecification": {
            "Enabled": is_true(expiry["Enabled"]), "AttributeName": expiry["AttributeName"],
        }})
        recovery = properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        dynamodb._update_continuous_backups({"TableName": name, "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": is_true(recovery),
        }})

    def then_apply(action, properties_at):
        def both(*arguments, **named):
            done = action(*arguments, **named)
            apply(done[0], arguments[properties_at])
            return done
        return both

    table["create"] = then_apply(table["create"], 1)
    table["update"] = then_apply(table["update"], 2)


def with_limits_as_numbers():
    """Parameters of a template are texts; the table tells its limits as numbers."""
    table = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]

    def convert(properties):
        for place in [properties, *(properties.get("GlobalSecondaryIndexes") or [])]:
            for limits in ("OnDemandThroughput", "ProvisionedThroughput"):
                if place.get(limits):
                    place[limits] = {name: int(value) for name, value in place[limits].items()}

    def first_convert(action, properties_at):
        def both(*arguments, **named):
            convert(arguments[properties_at])
            return action(*arguments, **named)
        return both

    table["create"] = first_convert(table["create"], 1)
    table["update"] = first_convert(table["update"], 2)


def with_one_index_an_update():
    """CloudFormation makes or removes at most one index of a table in an update of its stack, and DynamoDB takes no change
    of units with it: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateTable.html"""
    table = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]
    update = table["update"]

    def names(properties):
        return {index["IndexName"] for index in properties.get("GlobalSecondaryIndexes") or []}

    def update_one(physical_id, old, new, *rest, **named):
        changed = names(old) ^ names(new)
        if len(changed) > 1:
            raise ValueError("Cannot perform more than one GSI creation or deletion in a single update")
        if changed and old.get("ProvisionedThroughput") != new.get("ProvisionedThroughput"):
            raise ValueError("Only one of: modify the provisioned throughput settings, remove an index, create an index")
        return update(physical_id, old, new, *rest, **named)

    table["update"] = update_one


def is_true(value):
    return str(value).lower() == "true"


# ---- What MiniStack's CloudFormation does not make ---------------------------------------------------


def with_what_is_only_looked_at():
    """Saved queries and budgets: they are taken and do nothing."""
    for kind in ("AWS::Logs::QueryDefinition", "AWS::Budgets::Budget"):
        if kind in provisioners._RESOURCE_HANDLERS:
            raise RuntimeError(f"the emulator knows {kind} now: this stub can go")
        provisioners._RESOURCE_HANDLERS[kind] = {
            "create": lambda logical_id, properties, stack: (f"{stack}-{logical_id}", {}),
            "update": lambda physical_id, old, new, stack: (physical_id, {}),
            "delete": lambda physical_id, properties: None,
        }


# ---- Conditions on partition keys ------------------------------------------------------------------


# The body of the request whose permissions are checked: MiniStack forgets it at the first check of several.
checked_body = contextvars.ContextVar("checked_body", default=b"")


def with_leading_keys():
    enforce = iam_evaluator.enforce

    def enforce_by_key(access_key, action, service, region, resource_arn="*", service_context=None):
        signed = iam_evaluator._signed_request.get()
        if signed is not None:
            checked_body.set(signed.body)
        if action == "dynamodb:BatchExecuteStatement":
            action, resource_arn = inserting(json.loads(checked_body.get()), region)
        if service == "dynamodb" and checked_body.get():
            keys = leading_keys(action.split(":")[1], json.loads(checked_body.get()))
            # A request that names none has no such key: only then does Null hold.
            if keys:
                service_context = (service_context or {}) | {"dynamodb:LeadingKeys": keys}
        # SQS has no action for a batch: who may send a message may send ten.
        if service == "sqs":
            action = action.removesuffix("Batch")
        return enforce(access_key, action, service, region, resource_arn=resource_arn, service_context=service_context)

    iam_evaluator.enforce = enforce_by_key


def inserting(request, region):
    """The action of a batch of statements, which have to be inserts into one table, and that table."""
    tables = {re.match(r'INSERT INTO "([\w.-]+)" VALUE \{\'pk\': \?, ', it["Statement"])[1] for it in request["Statements"]}
    [name] = tables
    return "dynamodb:PartiQLInsert", f"arn:aws:dynamodb:{region}:{get_account_id()}:table/{name}"


def leading_keys(action, request):
    """The partition keys on which a request takes an action, in a table whose partition key is `pk`."""
    items = [request.get("Key"), request.get("Item")]
    for table in (request.get("RequestItems") or {}).values():
        if action == "BatchGetItem":
            items += table.get("Keys", [])
        else:
            for write in table:
                items += [write.get("PutRequest", {}).get("Item"), write.get("DeleteRequest", {}).get("Key")]
    # Put is authorized as PutItem, and so on.
    parts = [part.get(action.removesuffix("Item")) for part in request.get("TransactItems") or []]
    items += [part.get("Item") or part.get("Key") for part in parts if part]
    keys = [item["pk"]["S"] for item in items if item]
    keys += [statement["Parameters"][0]["S"] for statement in request.get("Statements") or []]
    condition = re.match(r"\S+ *= *(:\w+)", request.get("KeyConditionExpression", ""))
    if condition:
        keys.append(request["ExpressionAttributeValues"][condition[1]]["S"])
    return keys


# ---- Statements ------------------------------------------------------------------------------------


def with_inserts_in_the_stream():
    insert = dynamodb._partiql_insert

    def insert_and_stream(table, parsed):
        answer = insert(table, parsed)
        if answer[0] == 200:
            item = parsed["item"]
            item = item["M"] if set(item) == {"M"} else item
            dynamodb._emit_stream_event(table["TableName"], "INSERT", None, item)
        return answer

    dynamodb._partiql_insert = insert_and_stream


# ---- The stream's event source mapping -----------------------------------------------------------

# For each mapping the parts of the batch under way, as [records, attempts], the next one first.
under_way = {}


# What is under way for each mapping: as on AWS none waits for another's function.
deliveries = concurrent.futures.ThreadPoolExecutor()
delivering = {}


def poll():
    for account, region, mapping in lambda_svc._iter_all_esms():
        if mapping["UUID"] not in delivering:
            delivering[mapping["UUID"]] = deliveries.submit(deliver_for, account, region, mapping)
    done, _ = concurrent.futures.wait(
        delivering.values(), timeout=1, return_when=concurrent.futures.FIRST_COMPLETED)
    ended = [uuid for uuid, delivery in delivering.items() if delivery in done]
    return any([delivering.pop(uuid).result() for uuid in ended])


def deliver_for(account, region, mapping):
    account = lambda_svc._request_account_id.set(account)
    region = lambda_svc._request_region.set(region)
    try:
        return deliver(mapping)
    except Exception:
        lambda_svc.logger.exception("a stream cannot be delivered")
        return False
    finally:
        lambda_svc._request_account_id.reset(account)
        lambda_svc._request_region.reset(region)


def deliver(mapping):
    """Delivers the next part of a batch; whether the stream moved on."""
    source, uuid = mapping.get("EventSourceArn", ""), mapping["UUID"]
    if not mapping.get("Enabled", True) or ":dynamodb:" not in source:
        return False
    if lambda_svc._esm_backoff_until.get(uuid, 0) > time.time():
        return False
    table = lambda_svc._dynamodb_stream_table_from_arn_spec(lambda_svc.parse_arn(source))
    function, _ = lambda_svc._get_func_record_for_qualifier(mapping["FunctionName"], mapping.get("Qualifier"))
    if table is None or function is None:
        return False
    positions = lambda_svc._dynamodb_stream_positions
    position = positions.setdefault(uuid, dynamodb.stream_start_position(table[0]))
    parts = under_way.setdefault(uuid, [])
    if not parts:
        waiting = len(dynamodb.stream_records_since(table[0], position, mapping["BatchSize"]))
        if not waiting:
            return False
        parts.append([waiting, 0])
    size, attempts = parts[0]
    records = dynamodb.stream_records_since(table[0], position, size)
    wanted = lambda_svc._apply_filter_criteria(records, mapping)

    def move(by):
        positions[uuid] = position + by
        lambda_svc._esm_backoff_until.pop(uuid, None)

    def wait(seconds):
        lambda_svc._esm_backoff_until[uuid] = time.time() + seconds

    result = lambda_svc._execute_function(function, {"Records": wanted}) if wanted else {}
    failed_from = first_failure(result, records)
    if failed_from is None:
        move(size)
        parts.pop(0)
        return True
    if failed_from > 0:  # what came before is done
        move(failed_from)
        parts[0] = [size - failed_from, 1]
        wait(lambda_svc._ESM_BACKOFF_SECONDS)
        return True
    if result.get("error") and mapping.get("BisectBatchOnFunctionError") and size > 1:
        parts[0:1] = [[size // 2, attempts], [size - size // 2, attempts]]
        wait(0.2)
        return False
    if attempts >= mapping["MaximumRetryAttempts"]:
        lambda_svc._send_ddb_stream_failure_record(
            mapping, function, wanted, source, result, "RetryAttemptsExhausted")
        move(size)
        parts.pop(0)
        return True
    parts[0][1] += 1
    wait(lambda_svc._ESM_BACKOFF_SECONDS)
    return False


def first_failure(result, records):
    """The place of the first record that failed: 0 where all did, None where none did."""
    if result.get("error"):
        return 0
    body = result.get("body")
    body = json.loads(body) if isinstance(body, str) and body else body
    failures = (body or {}).get("batchItemFailures")
    if not failures:
        return None
    numbers = [str(record["dynamodb"]["SequenceNumber"]) for record in records]
    named = [str(failure.get("itemIdentifier")) for failure in failures]
    # An identifier that is missing or unknown stands for the whole batch.
    return min(numbers.index(name) if name in numbers else 0 for name in named)


if __name__ == "__main__":
    with_routes()
    with_limits_as_numbers()
    with_one_index_an_update()
    with_expiry_and_recovery()
    with_what_is_only_looked_at()
    with_leading_keys()
    with_inserts_in_the_stream()
    lambda_svc._poll_dynamodb_streams = poll
    app.main()
