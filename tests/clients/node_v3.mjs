// Writes with @influxdata/influxdb3-client: by the API of version 2 and of version 3, then a line that is refused.
import {InfluxDBClient, Point} from '@influxdata/influxdb3-client'

const {URL: host, TOKEN: token, CLIENT_HOST: name} = process.env
const client = new InfluxDBClient({host, token, database: 'sensors', writeOptions: {gzipThreshold: 0}})
const point = (n) =>
  Point.measurement('room').setTag('host', name).setFloatField('temp', 20.5 + n).setBooleanField('ok', true)
    .setTimestamp(new Date((1768147200 + 60 * n) * 1000))
await client.write([point(0), point(1)])
await client.write(point(2), undefined, undefined, {noSync: true})
await client.write(`room,host=${name}x temp=1\nbad line here x`).catch((refused) => console.log(refused.message))
await client.close()
