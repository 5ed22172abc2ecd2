//! The names of the attributes of readings, registry items and rollups. Has no keys of the table or an index.

#![expect(missing_docs, reason = "most are the fields of the same names")]

/// A flag: the room of a reading was named by its sender, and not filled in.
pub const NAMED: &str = "_named";
/// The room that the sender of a reading named, if a person had chosen another room.
pub const NAMED_ROOM: &str = "_named_room";
/// A text that is unique to the arrival of a reading without a timestamp.
pub const ARRIVAL: &str = "_arrival";
/// Facts of a device that the sender of a reading gives, as JSON.
pub const SAID_ABOUT: &str = "_about";
/// The rooms that a device introduced.
pub const INTRODUCED_ROOMS: &str = "_rooms";
/// The version of a device: the number of writes that expected the version that they read, such as edits and stays.
pub const DEVICE_VERSION: &str = "_version";
/// The newest stay of a device.
pub const STAY: &str = "_stay";
/// The room of a stay. Under the name `room`, the index by room would hold the stay.
pub const STAY_ROOM: &str = "stay_room";
/// The first timestamp after a stay.
pub const UNTIL: &str = "until";
/// The version of an item: the number of times that it was written, where each write expects the version that was read.
pub const VERSION: &str = "ver";
/// When the deletion of a device began.
pub const DELETED: &str = "_deleted";
/// When a belonging of a device that is being deleted was last found.
pub const FOUND: &str = "_found";
/// When the deletion of a device ended.
pub const ENDED: &str = "_ended";
pub const NAME: &str = "name";
/// The home of a room.
pub const HOME: &str = "home";
/// Whether a room is outside, if a person said so: 1 or 0.
pub const OUTSIDE: &str = "outside";
pub const ROOM_AT: &str = "room_at";
pub const KIND: &str = "kind";
pub const TAGS: &str = "tags";
/// A device's attributes, with names given by people.
pub const ATTRIBUTES: &str = "attributes";
pub const METRICS: &str = "metrics";
pub const FIRST_SEEN: &str = "first_seen";
pub const UNIT: &str = "unit";
/// A flag: a sender or a person has described the metric.
pub const DESCRIBED: &str = "described";
/// Facts of a device that senders give: the name, the tags and the fields of metrics.
pub const SOURCE: &str = "source";
pub const FIELDS: &str = "fields";
/// The token that introduced a device.
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
/// Whether a device or a metric counts in the means of rooms, if a person said so: 1 or 0.
pub const IN_ROOM_MEANS: &str = "in_room_means";
/// The time until which an import found only hourly means of a metric.
pub const HOURLY_UNTIL: &str = "hourly_until";
/// For a device, the number of its fold settings. For a rollup, the number of the settings by which it was folded. For
/// a channel or a source, its settings without the secret.
pub const SETTINGS: &str = "settings";
/// The metrics and times that the newest changes of a device's settings concern.
pub const CHANGES: &str = "changes";
/// The earliest expiry of the readings of a rollup: epoch seconds.
pub const RAW_UNTIL: &str = "raw_until";
/// A flag: a reading of the rollup has changed, and can no longer be folded.
pub const FROZEN: &str = "frozen";
/// The rooms of a rollup's readings, or the rooms that a token shows.
pub const ROOMS: &str = "rooms";
/// The rollups of the metrics.
pub const ROLLED_UP: &str = "m";
/// The number of a source's run, or of the run that puts every device into the index of attributes.
pub const RUN: &str = "run";
/// When the run that puts every device into the index of attributes was done.
pub const DONE: &str = "done";
pub const ZONE: &str = "tz";
pub const START: &str = "start";
pub const END: &str = "end";
pub const SINCE: &str = "since";
/// The watermark of each group of devices: before this time, every rollup is stored.
pub const SEALED: &str = "sealed";
/// The time up to which rollups were folded again.
pub const DONE_UNTIL: &str = "done_until";
/// The version of the schema by which a rollup is in the index by conditions.
pub const CONDITIONS_VERSION: &str = "_zs";
/// The mean and the extremes of each metric of the schema.
pub const CONDITIONS_VALUES: &str = "_zv";
pub const SCHEMA: &str = "schema";
pub const ENCODING: &str = "encoding";
pub const DOMAIN: &str = "domain";
pub const BITS: &str = "bits";
/// A flag: every rollup of 15 minutes is in the index by conditions as the schema says.
pub const READY: &str = "ready";
/// How many messages wait in the work queue, and when they were counted.
pub const QUEUE: &str = "queue";
/// The marks of late changes.
pub const MARKS: &str = "marks";
/// When the oldest late change that is not folded was written, and when this was noted.
pub const BACKLOG: &str = "backlog";
/// The first and the last month in which a device was seen in a room.
pub const FIRST_MONTH: &str = "first";
pub const LAST_MONTH: &str = "last";
/// The device up to which a rule was rechecked.
pub const AFTER: &str = "after";
pub const SCOPE: &str = "scope";
pub const DEVICES: &str = "devices";
/// The prefix of the ids of a write token's devices.
pub const PREFIX: &str = "prefix";
pub const DEVICE_TAGS: &str = "device_tags";
pub const ROOM_TAG: &str = "room_tag";
/// The number of partitions of the registry's devices.
pub const SHARDS: &str = "shards";
pub const CREATED: &str = "created";
pub const REVOKED: &str = "revoked";
/// When a token ends. This is not the attribute by which DynamoDB deletes items, because lists still show an ended
/// token.
pub const EXPIRES: &str = "expires";
/// The homes that a token shows.
pub const HOMES: &str = "homes";
/// The hash of the admin token by which a token was made.
pub const ISSUED_BY: &str = "issued_by";
/// The number of devices that a sender has introduced.
pub const INTRODUCED: &str = "introduced";
/// The device, room or home that an annotation is about. Under the name `room`, the index by room would hold the
/// annotation.
pub const ABOUT: &str = "about";
/// The text of an annotation.
pub const TEXT: &str = "text";
/// The members of a rule of alerts, in a map. As attributes of the item, a `room` would put the rule into the index by
/// room.
pub const RULE: &str = "rule";
/// When a rule was saved.
pub const RULE_CHANGED: &str = "changed";
pub const QUIET_HOURS: &str = "quiet_hours";
/// Since when a channel fails.
pub const FAILING_SINCE: &str = "failing_since";
/// When a failing channel is tried next, a message is to be sent, or a source is due.
pub const NEXT: &str = "next";
/// A flag: the secrets that a source needs are missing.
pub const LACKS_SECRETS: &str = "lacks_secrets";
/// The request that the secrets of a source were given for.
pub const DESTINATION: &str = "destination";
/// The secret of a channel or a source.
pub const SECRET: &str = "secret";
/// The state of a rule whose messages say when something begins and ends.
pub const STATE: &str = "state";
/// The state of a rule that sends each message once.
pub const ONCE: &str = "once";
/// When a state must be judged again, even without new readings.
pub const DUE: &str = "due";
pub const MESSAGE: &str = "message";
/// When a message was judged.
pub const JUDGED_AT: &str = "judged_at";
/// The attempts to send a message.
pub const ATTEMPTS: &str = "attempts";
/// The end of the lease of a process that sends a message or polls a source.
pub const LEASE: &str = "lease";
/// The number of the run that is polling a source.
pub const CLAIM: &str = "claim";
/// The requests that a source has made.
pub const SPENT: &str = "spent";
/// The status of a source that is stored between runs.
pub const STATUS: &str = "status";
/// The number of devices in a message about a storm.
pub const STORM: &str = "storm";
/// The key of a message's link.
pub const LINK_KEY: &str = "link_key";
/// A random number that distinguishes a recheck from later ones of the same device or rule.
pub const TOUCH: &str = "touch";
/// When the system last ran, and the pauses in which it did not run.
pub const AT: &str = "at";
pub const PAUSES: &str = "pauses";
