//! The names of the attributes of readings, registry items and rollups. Has no keys of the table or an index.

#![expect(missing_docs, reason = "most are the fields of the same names")]

/// A flag: the sender of a reading named the room. It was not filled in from the registry.
pub const NAMED: &str = "_named";
/// The room that the sender of a reading named, if the reading is stored with another room that a person chose.
pub const NAMED_ROOM: &str = "_named_room";
/// A text that is unique to each arrival of a reading without a timestamp.
pub const ARRIVAL: &str = "_arrival";
/// Facts of its device that a sender gives with a reading, as JSON.
pub const SAID_ABOUT: &str = "_about";
/// The rooms that a device introduced.
pub const INTRODUCED_ROOMS: &str = "_rooms";
/// The version of a device. It rises with each edit, stay and other write that expects the previous version.
pub const DEVICE_VERSION: &str = "_version";
/// The newest stay of a device.
pub const STAY: &str = "_stay";
/// The room of a stay. With the name `room`, the stay would be in the room index.
pub const STAY_ROOM: &str = "stay_room";
/// The end of a stay: the first timestamp that is not in it.
pub const UNTIL: &str = "until";
/// The version of an item, which rises with each save. A save expects the version that was read.
pub const VERSION: &str = "ver";
/// When the deletion of a device began.
pub const DELETED: &str = "_deleted";
/// When an item of a device that is being deleted was last found.
pub const FOUND: &str = "_found";
/// When the deletion of a device ended.
pub const ENDED: &str = "_ended";
pub const NAME: &str = "name";
/// The home of a room.
pub const HOME: &str = "home";
/// Whether a room is outside, if a person said this: 1 or 0.
pub const OUTSIDE: &str = "outside";
pub const ROOM_AT: &str = "room_at";
pub const KIND: &str = "kind";
pub const TAGS: &str = "tags";
/// The attributes that people give a device, by name.
pub const ATTRIBUTES: &str = "attributes";
pub const METRICS: &str = "metrics";
pub const FIRST_SEEN: &str = "first_seen";
pub const UNIT: &str = "unit";
/// A flag: a sender or a person has described the metric.
pub const DESCRIBED: &str = "described";
/// Facts of a device that senders give: the name, the tags and the fields of metrics.
pub const SOURCE: &str = "source";
pub const FIELDS: &str = "fields";
/// The token of the sender that introduced a device.
pub const INTRODUCED_BY: &str = "by";
pub const MODULUS: &str = "modulus";
pub const MAX_W: &str = "max_w";
pub const TOLERANCE: &str = "tolerance";
pub const HOLD: &str = "hold";
pub const EXCHANGES: &str = "exchanges";
pub const VERDICTS: &str = "verdicts";
/// The role of a meter.
pub const ROLE: &str = "role";
/// A flag: a counter is a net meter.
pub const NET: &str = "net";
/// The metric that gives the current cycle of a counter.
pub const CYCLE: &str = "cycle";
pub const BEHIND: &str = "behind";
/// The devices directly behind a meter.
pub const BEHIND_IT: &str = "behind_it";
/// Whether a device or a metric counts in the means of rooms, if a person said this: 1 or 0.
pub const IN_ROOM_MEANS: &str = "in_room_means";
/// The time until which a metric has only hourly means, because an import found nothing else.
pub const HOURLY_UNTIL: &str = "hourly_until";
/// For a device, the number of its fold settings. For a rollup, the number of the settings with which it was folded.
/// For a channel or a source, the settings without the secret. For a tariff, the tariff.
pub const SETTINGS: &str = "settings";
/// The newest changes of a device's settings: the metrics and times that each concerns.
pub const CHANGES: &str = "changes";
/// The earliest time at which a reading of a rollup expires: epoch seconds.
pub const RAW_UNTIL: &str = "raw_until";
/// A flag: a reading of the rollup changed too late to fold the rollup again.
pub const FROZEN: &str = "frozen";
/// The rooms of a rollup's readings, or the rooms that a token shows.
pub const ROOMS: &str = "rooms";
/// The rollups of the metrics.
pub const ROLLED_UP: &str = "m";
/// For a source, the number of its runs and tests. For the attribute index, the name of the last run over all devices.
pub const RUN: &str = "run";
/// When a run finished that put every device into the attribute index.
pub const DONE: &str = "done";
pub const ZONE: &str = "tz";
pub const START: &str = "start";
pub const END: &str = "end";
pub const SINCE: &str = "since";
/// The watermark of each group of devices: the time before which every rollup is stored.
pub const SEALED: &str = "sealed";
/// The time up to which the rollups of a device were folded again.
pub const DONE_UNTIL: &str = "done_until";
/// The version of the schema by which a rollup was put into the conditions index.
pub const CONDITIONS_VERSION: &str = "_zs";
/// The mean, the least and the greatest value of each metric of the schema.
pub const CONDITIONS_VALUES: &str = "_zv";
pub const SCHEMA: &str = "schema";
pub const ENCODING: &str = "encoding";
pub const DOMAIN: &str = "domain";
pub const BITS: &str = "bits";
/// A flag: the conditions index has every rollup of 15 minutes by the stored schema.
pub const READY: &str = "ready";
/// How many messages wait in the work queue, and when they were counted.
pub const QUEUE: &str = "queue";
/// The late marks. Each announces that past readings may change.
pub const MARKS: &str = "marks";
/// When the oldest unfolded late change was written, and when the backlog was stored.
pub const BACKLOG: &str = "backlog";
/// The first and the last month in which a device was seen in a room.
pub const FIRST_MONTH: &str = "first";
pub const LAST_MONTH: &str = "last";
/// The last device on which a rule was rechecked.
pub const AFTER: &str = "after";
pub const SCOPE: &str = "scope";
pub const DEVICES: &str = "devices";
/// The prefix of the device ids for which a write token is valid.
pub const PREFIX: &str = "prefix";
pub const DEVICE_TAGS: &str = "device_tags";
pub const ROOM_TAG: &str = "room_tag";
/// The number of partitions that the registry's devices are in.
pub const SHARDS: &str = "shards";
pub const CREATED: &str = "created";
pub const REVOKED: &str = "revoked";
/// When a token stops working. DynamoDB does not delete items by this attribute, because lists still show ended tokens.
pub const EXPIRES: &str = "expires";
/// The homes that a token shows.
pub const HOMES: &str = "homes";
/// The hash of the admin token with which a token was made.
pub const ISSUED_BY: &str = "issued_by";
/// The number of devices that a sender has introduced.
pub const INTRODUCED: &str = "introduced";
/// The device, room or home that an annotation is about. With the name `room`, the annotation would be in the room
/// index.
pub const ABOUT: &str = "about";
/// The text of an annotation.
pub const TEXT: &str = "text";
/// The members of a rule of alerts, in a map. If `room` were an attribute of the item, the rule would be in the room
/// index.
pub const RULE: &str = "rule";
/// When a rule or a tariff was saved.
pub const RULE_CHANGED: &str = "changed";
pub const QUIET_HOURS: &str = "quiet_hours";
/// Since when a channel fails.
pub const FAILING_SINCE: &str = "failing_since";
/// When a failing channel is tried again, when a message may be sent, or when a source is due.
pub const NEXT: &str = "next";
/// A flag: the secrets that a source needs are missing.
pub const LACKS_SECRETS: &str = "lacks_secrets";
/// The request for which a person gave the secrets of a source.
pub const DESTINATION: &str = "destination";
/// The secret of a channel or a source.
pub const SECRET: &str = "secret";
/// The state of a rule about a metric or silence, whose alert begins and ends.
pub const STATE: &str = "state";
/// The state of a rule about a budget, a demand or a counter, which sends each figure once.
pub const ONCE: &str = "once";
/// When a state must be judged again, even if no reading arrives.
pub const DUE: &str = "due";
pub const MESSAGE: &str = "message";
/// When a message was judged.
pub const JUDGED_AT: &str = "judged_at";
/// The number of attempts to send a message.
pub const ATTEMPTS: &str = "attempts";
/// The end of the lease of a process that sends a message or polls a source.
pub const LEASE: &str = "lease";
/// The number of the run that is polling a source.
pub const CLAIM: &str = "claim";
/// The numbers of requests that a source has made.
pub const SPENT: &str = "spent";
/// The status of a source, which is kept from run to run.
pub const STATUS: &str = "status";
/// The number of devices that a message about a storm names.
pub const STORM: &str = "storm";
/// The key of the link in a message.
pub const LINK_KEY: &str = "link_key";
/// A random number, which is new each time that a recheck is stored.
pub const TOUCH: &str = "touch";
/// When the system last ran, and the pauses during which it did not run.
pub const AT: &str = "at";
pub const PAUSES: &str = "pauses";
