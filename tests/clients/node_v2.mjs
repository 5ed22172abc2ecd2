// Writes with @influxdata/influxdb-client: points with gzip in chunks, then a line that is refused.
import {InfluxDB, Point} from '@influxdata/influxdb-client'

const {URL: url, TOKEN: token, CLIENT_HOST: host} = process.env
const client = new InfluxDB({url, token})
const write = client.getWriteApi('home', 'sensors', 's', {gzipThreshold: 0, maxRetries: 0})
for (let n = 0; n < 3; n++) {
  const point = new Point('room').tag('host', host).floatField('temp', 20.5 + n).booleanField('ok', true)
  write.writePoint(point.timestamp(1768147200 + 60 * n))
}
await write.close()
const bad = client.getWriteApi('home', 'sensors', 's', {maxRetries: 0})
bad.writeRecords([`room,host=${host}x temp=1`, 'bad line here x'])
await bad.close().catch((refused) => console.log(refused.body))
