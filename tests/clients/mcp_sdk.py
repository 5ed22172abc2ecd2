"""Asks the nine tools with the SDK of the Model Context Protocol: over HTTP and over `roomtide mcp`, as a client of
2026-07-28 and as one that still shakes hands. Readings are stored first, with a token that writes, and a tariff.

    URL=... TOKEN=... READ_TOKEN=... ADMIN_TOKEN=... ROOMTIDE=PROGRAM python3 tests/clients/mcp_sdk.py
"""

import asyncio
import json
import os
import time
import urllib.request

from jsonschema import Draft202012Validator
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL, READ_TOKEN = os.environ["URL"], os.environ["READ_TOKEN"]
HOST = os.environ["CLIENT_HOST"]
HOUR = 3_600_000
END = int(time.time() * 1000) // HOUR * HOUR


def send(method, path, body, token):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status in (200, 201), answer.status


def store():
    """Three hours of a meter and a thermometer in a room of their own, a reading every ten minutes; and a tariff."""
    readings = []
    for n in range(18):
        at = END - 3 * HOUR + n * HOUR // 6
        readings.append({"device_id": f"{HOST}-meter", "timestamp": at, "room": HOST, "cumulative_kwh_p": 100 + n})
        readings.append({"device_id": f"{HOST}-air", "timestamp": at, "room": HOST, "temperature": 20 + n % 6})
    send("POST", "/readings", readings, os.environ["TOKEN"])
    lines = [{"name": "Energy", "price": 0.25}]
    tariff = {"name": "Flat", "currency": "EUR", "meters": [{"device": f"{HOST}-meter"}], "lines": lines}
    send("PUT", f"/tariffs/{HOST}", tariff, os.environ["ADMIN_TOKEN"])


async def told(client, tool, **arguments):
    """What a tool answers; its text is the same."""
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text
    assert not result.is_error, f"{tool}: {text}"
    assert json.loads(text) == result.structured_content
    assert "tz" in result.structured_content and "now" in result.structured_content
    return result.structured_content


async def ask(client):
    """Each tool, with what was stored; then what a model gets wrong."""
    assert client.server_info.name == "roomtide"
    assert "list_devices" in client.instructions
    tools = (await client.list_tools()).tools
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description and tool.annotations.read_only_hint
    air, meter = f"{HOST}-air", f"{HOST}-meter"
    listed = await told(client, "list_devices", room=HOST)
    assert [it["device_id"] for it in listed["devices"]] == [air, meter], listed
    found = await told(client, "find_devices", where=["temperature>=25"], room=HOST)
    assert [it["device_id"] for it in found["devices"]] == [air], found
    newest = await told(client, "latest_values", room=HOST)
    values = {it["device_id"]: it["values"] for it in newest["devices"]}
    assert values[air]["temperature"]["value"] == 25 and values[meter]["cumulative_kwh_p"]["value"] == 117, newest
    day = {"from": END - 3 * HOUR, "to": END}
    hours = day | {"tz": "UTC"}
    while "rollups_lack" in (series := await told(client, "series", device=air, metric=["temperature"], **hours)):
        await asyncio.sleep(1)  # what was stored late is not rolled up yet, and the answer says so
    means = [row["temperature"] for row in series["rows"]]
    assert means == [{"count": 6, "max": 25, "mean": 22.5, "min": 20}] * 3, series
    first = await told(client, "series", device=air, metric=["temperature"], limit=2, **hours)
    rest = await told(client, "series", device=air, metric=["temperature"], offset=first["more"]["offset"], **hours)
    assert first["rows"] + rest["rows"] == series["rows"], first
    energy = await told(client, "energy", device=meter, every="total", **hours)
    direct = await told(client, "series", device=meter, metric="cumulative_kwh_p", every="total", fn="increase", **hours)
    assert energy["total_kwh"] == direct["rows"][0]["cumulative_kwh_p"]["increase"] == 17, (energy, direct)
    cost = await told(client, "cost", tariff=HOST, every="total", **hours)
    assert cost["bills"][0]["amount"] == 4.25, cost
    events = await told(client, "events", device=meter)
    assert events["rows"] == [], events
    episodes = await told(client, "conditions", device=air, conditions={"temperature": "24.."}, **day)
    assert len(episodes["rows"]) == 3, episodes
    assert (await told(client, "health"))["status"] == "pass"
    asked = {"list_devices", "find_devices", "latest_values", "series", "energy", "cost", "events", "conditions", "health"}
    assert {tool.name for tool in tools} == asked, "this script asks each tool"

    wrong = await client.call_tool("series", {"device": air, "metric": ["x"]})
    assert wrong.is_error and "x has not been sent" in wrong.content[0].text, wrong
    try:
        await client.call_tool("open_door", {})
    except Exception as refused:
        assert "open_door" in str(refused) and "list_devices" in str(refused), refused
    else:
        raise AssertionError("an unknown tool was called")


async def main():
    store()
    headers = {"Authorization": f"Bearer {READ_TOKEN}"}
    stdio = StdioServerParameters(command=os.environ["ROOMTIDE"], args=["mcp", "--url", URL, "--token", READ_TOKEN])
    for mode, version in (("legacy", "2025-11-25"), ("auto", "2026-07-28")):
        async with create_mcp_http_client(headers=headers) as http:
            async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
                assert client.protocol_version == version, client.protocol_version
                await ask(client)
        async with Client(stdio, mode=mode) as client:
            assert client.protocol_version == version, client.protocol_version
            await ask(client)
    print("HTTP and stdio, 2025-11-25 and 2026-07-28: nine tools each")


asyncio.run(main())
