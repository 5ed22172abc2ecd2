"""Steps: the function URLs beside the API. The emulator answers them without a permission; tests/template.rs has these."""

from processes import Failed
from report import ok, same

CERTIFICATE = "arn:aws:acm:eu-west-1:000000000000:certificate/12345678-1234-1234-1234-123456789012"


def function_urls(stack, tokens):
    page, ingest = stack.function_url("PageUrl"), stack.function_url("IngestUrl")
    reading = {"device_id": "meter", "current_w": 12, "timestamp": "2016-05-01T00:00:00Z"}
    stored = stack.call("POST", "/readings", reading, tokens["meter"], url=ingest).expect(201)
    same("accepted by ingest's URL", 1, stored["accepted"])
    span = "from=2016-05-01T00:00:00Z&to=2016-05-02T00:00:00Z"
    for name, url in (("query's URL", page), ("the API", stack.api)):
        found = stack.call("GET", f"/devices/meter/readings?{span}", token=tokens["read"], url=url).expect(200)["data"]
        same(f"what {name} answers", [12], [row["current_w"] for row in found])
    stack.call("GET", "/devices", token=tokens["read"], url=ingest).expect(404)
    stack.call("GET", "/devices", url=page).expect(401)
    same("the status of the page at query's URL", 200, stack.call("GET", "/", url=page).status)
    urls = [stack.emulator.client("lambda").get_function_url_config(FunctionName=stack.resource(f"{name}Function"))
            for name in ("Ingest", "Query")]
    same("how the URLs are called", [("NONE", "BUFFERED")] * 2, [(it["AuthType"], it["InvokeMode"]) for it in urls])
    variables = stack.emulator.client("lambda").get_function_configuration(
        FunctionName=stack.resource("QueryFunction"))["Environment"]["Variables"]
    same("where the page stores readings", stack.outputs["IngestUrl"], variables["INGEST_URL"])
    ok("function URLs: a reading posted to ingest's is answered by query's and by the API; the page is at query's")


def domain(stack):
    name = "roomtide.example.org"
    change(stack, DomainName=name, CertificateArn=CERTIFICATE)
    told = {output: stack.outputs[output] for output in ("PageUrl", "IngestUrl", "ApiUrl")}
    same("the outputs with a domain", dict.fromkeys(told, f"https://{name}"), told)
    same("whether there is a target for the DNS", True, bool(stack.outputs["DomainTarget"]))
    change(stack, DomainName="", CertificateArn="")
    same("the outputs without it", False, name in str(stack.outputs))
    ok("DomainName: the outputs are the name, and the function URLs again without it")


# What a person can ask for that cannot be, each with a word of what is said.
IMPOSSIBLE = (
    ({"DomainName": "roomtide.example.org"}, "DomainName needs CertificateArn"),
    ({"DomainName": "roomtide.example.org", "CertificateArn": CERTIFICATE, "Front": "function-urls"}, "DomainName needs the HTTP API"),
    ({"CertificateArn": CERTIFICATE}, "CertificateArn needs DomainName"),
    ({"AlarmEmail": "", "MonthlyBudget": 5}, "MonthlyBudget needs AlarmEmail"),
    ({"Front": "neither"}, "Front"),
)


def impossible(stack):
    for parameters, expected in IMPOSSIBLE:
        try:
            change(stack, **parameters)
        except stack.emulator.client("cloudformation").exceptions.ClientError as error:
            said = str(error)
        else:
            raise Failed(f"{parameters} is deployed")
        if expected not in said:
            raise Failed(f"{parameters}: expected {expected!r}, got {said}")
    ok(f"{len(IMPOSSIBLE)} impossible choices of parameters are refused before anything is made, each with its reason")


def change(stack, **parameters):
    """The same template with other parameters."""
    cloudformation = stack.emulator.client("cloudformation")
    known = [it["ParameterKey"] for it in stack.look()["Parameters"]]
    chosen = [{"ParameterKey": it, "ParameterValue": str(parameters[it])} if it in parameters
              else {"ParameterKey": it, "UsePreviousValue": True} for it in known]
    cloudformation.update_stack(
        StackName=stack.name, UsePreviousTemplate=True, Parameters=chosen,
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"])
    cloudformation.get_waiter("stack_update_complete").wait(StackName=stack.name, WaiterConfig={"Delay": 1})
    stack.look()
