"""Writes with influxdb 5: ping, points with Basic credentials, then a line that is refused."""

import os
from urllib.parse import urlparse

from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

url, host = urlparse(os.environ["URL"]), os.environ["CLIENT_HOST"]
client = InfluxDBClient(url.hostname, url.port, "anybody", os.environ["TOKEN"], "sensors", path="/influx")
assert client.ping() == "1.8.10"
points = [{"measurement": "room", "tags": {"host": host}, "time": 1768147200 + 60 * n,
           "fields": {"temp": 20.5 + n, "ok": True}} for n in range(3)]
assert client.write_points(points, time_precision="s")
try:
    client.write([f"room,host={host}x temp=1", "bad line here x"], params={"db": "sensors"}, protocol="line")
except InfluxDBClientError as refused:
    print(refused)
