//! An incoming webhook of Slack.

use outgoing::Request;
use serde_json::json;

use crate::body::Post;
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, SecretValues};
use crate::fit::{TextForm, utf16_units};

pub(super) const SLACK: ChannelKind = ChannelKind {
    name: "slack",
    title: "Slack",
    members: &[ChannelMember::address("the address of an incoming webhook")],
    sample: r#"{"kind": "slack", "name": "Slack", "address": "https://hooks.slack.com/services/T000/B000/XXXX"}"#,
    delivery: ChannelDelivery::Http(request),
};

/// <https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>: `mrkdwn` is off. A mention is `<!here>`
/// or `<@id>`, so three characters are escaped (<https://docs.slack.dev/messaging/formatting-message-text>). Slack
/// advises 4,000 characters and splits longer texts.
fn request(post: &Post<'_>, secret: &SecretValues) -> Request {
    let form = TextForm { limit: 4_000, measure: utf16_units, write };
    let mut link = String::new();
    post.link.chars().for_each(|c| write(c, &mut link));

    let body = json!({
        "text": post.full_text(form, &link),
        "mrkdwn": false,
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
    });
    secret.post(SLACK.title, "address", secret.address("address").clone(), body.to_string())
}

fn write(c: char, text: &mut String) {
    match c {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        c => text.push(c),
    }
}
