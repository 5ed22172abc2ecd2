//! A webhook of Discord.

use outgoing::Request;
use serde_json::json;

use crate::body::Post;
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, SecretValues};
use crate::fit::{TextForm, utf16_units};

pub(super) const DISCORD: ChannelKind = ChannelKind {
    name: "discord",
    title: "Discord",
    members: &[ChannelMember::address("the address of a channel's webhook")],
    sample: r#"{"kind": "discord", "name": "Discord", "address": "https://discord.com/api/webhooks/1234/abcd", "quiet_hours": "22:00-07:00"}"#,
    delivery: ChannelDelivery::Http(request),
};

/// <https://discord.com/developers/docs/resources/webhook#execute-webhook>: at most 2,000 characters. An empty `parse`
/// mentions nobody, the flag 4 hides previews, and with `wait` a message that is not stored is an error. The text is
/// Markdown: a backslash makes a punctuation mark plain.
fn request(post: &Post<'_>, secret: &SecretValues) -> Request {
    let write = |c: char, text: &mut String| {
        if c.is_ascii_punctuation() && !".,:;%/+'\"()".contains(c) {
            text.push('\\');
        }
        text.push(c);
    };
    let form = TextForm { limit: 2_000, measure: utf16_units, write };
    let body = json!({
        "content": post.full_text(form, post.link),
        "allowed_mentions": { "parse": [] },
        "flags": 4,
    });

    let address = secret.address("address");
    let path = address.uri().path();
    let path = match address.uri().query() {
        Some(query) => format!("{path}?{query}&wait=true"),
        None => format!("{path}?wait=true"),
    };
    secret.post(DISCORD.title, "address", address.with_path(&path), body.to_string())
}
