//! Any server that takes signed JSON, and automations of Home Assistant, which a webhook starts with the same JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use outgoing::Request;
use sha2::Sha256;

use crate::body::Post;
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, MemberForm, Need, SecretValues};

/// The webhook of an automation (<https://www.home-assistant.io/docs/automation/trigger/#webhook-trigger>);
/// `trigger.json.text` is the text.
///
/// The service `notify` is not used: its token permits everything that its user may do. An automation with a webhook is
/// made in a minute and reaches phones, lamps and speakers alike. Its address stands in the same dialog and permits
/// nothing else.
pub(super) const HOME_ASSISTANT: ChannelKind = ChannelKind {
    name: "home_assistant",
    title: "Home Assistant",
    members: &[ChannelMember::address("the address of an automation's webhook")],
    sample: r#"{"kind": "home_assistant", "name": "Home", "address": "https://home.example.org/api/webhook/roomtide-a-random-word"}"#,
    delivery: ChannelDelivery::Http(unsigned),
};

pub(super) const WEBHOOK: ChannelKind = ChannelKind {
    name: "webhook",
    title: "the webhook",
    members: &[
        ChannelMember::address("the address of your server"),
        ChannelMember {
            name: "key",
            about: "the key that signs: whsec_ and 24 to 64 bytes in base64",
            form: MemberForm::Password(
                is_key,
                "must be whsec_ and 24 to 64 random bytes in base64; `openssl rand -base64 32` makes some",
            ),
            need: Need::Always,
        },
    ],
    sample: r#"{"kind": "webhook", "name": "Mine", "address": "https://example.org/alerts", "key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#,
    delivery: ChannelDelivery::Http(signed),
};

fn is_key(text: &str) -> bool {
    bytes_of(text).is_some_and(|key| (24..=64).contains(&key.len()))
}

/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>: the key's form.
pub(crate) fn bytes_of(key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(key.strip_prefix("whsec_")?).ok()
}

fn unsigned(post: &Post<'_>, secret: &SecretValues) -> Request {
    let address = secret.address("address").clone();
    secret.post(HOME_ASSISTANT.title, "address", address, post.generic())
}

/// Signs the body by Standard Webhooks, whose libraries verify it. Each attempt has the same id, so that a receiver can
/// skip a message that arrives twice.
fn signed(post: &Post<'_>, secret: &SecretValues) -> Request {
    let key = bytes_of(secret.text("key")).expect("a key is checked when it is read");
    let address = secret.address("address").clone();
    let request = secret.post(WEBHOOK.title, "address", address, post.generic());

    let (id, seconds) = (post.id(), post.now.as_millis().div_euclid(1_000));
    let signature = signature(&key, &id, seconds, request.body());
    request.with_headers([
        ("webhook-id", id),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signature),
    ])
}

pub(crate) fn signature(key: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}
