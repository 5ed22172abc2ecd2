"""Writes with influxdb-client: probes first, points by a batch with gzip, then a line that is refused."""

import os

from influxdb_client import InfluxDBClient, Point
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

host = os.environ["CLIENT_HOST"]
with InfluxDBClient(os.environ["URL"], os.environ["TOKEN"], org="home", enable_gzip=True) as client:
    assert client.ping() and client.health().status == "pass" and client.ready().status == "ready"
    assert client.buckets_api().find_bucket_by_name("sensors").name == "sensors"
    write = client.write_api(write_options=SYNCHRONOUS)
    points = [Point("room").tag("host", host).field("temp", 20.5 + n).field("ok", True).time(1768147200 + 60 * n, "s")
              for n in range(3)]
    write.write("sensors", record=points, write_precision="s")
    try:
        write.write("sensors", record=[f"room,host={host}x temp=1", "bad line here x"])
    except ApiException as refused:
        print(refused.body)
