//! ntfy.sh, or a server of ntfy that a person runs.

use outgoing::Request;
use serde_json::json;

use crate::body::Post;
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, MemberForm, Need, SecretValues, is_of_name};
use crate::fit::{TextForm, bytes, plain};

pub(super) const NTFY: ChannelKind = ChannelKind {
    name: "ntfy",
    title: "ntfy",
    members: &[
        ChannelMember {
            name: "topic",
            about: "the topic",
            form: MemberForm::Text(
                is_topic,
                "must be 1 to 64 letters, digits, - and _, without the server's address",
            ),
            need: Need::Always,
        },
        ChannelMember::server("one's own server", "https://ntfy.sh"),
        ChannelMember {
            name: "token",
            about: "an access token, if the topic needs one",
            form: MemberForm::Password(
                is_token,
                "must be an access token like tk_..., without spaces",
            ),
            need: Need::Optional,
        },
    ],
    sample: r#"{"kind": "ntfy", "name": "Phone", "topic": "a-long-random-word", "server": "https://ntfy.example.org", "token": "tk_..."}"#,
    delivery: ChannelDelivery::Http(request),
};

/// <https://docs.ntfy.sh/publish/>: the server refuses other topics.
fn is_topic(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(is_of_name)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// <https://docs.ntfy.sh/publish/#publish-as-json>: JSON is posted to the root and not to the topic. A message over
/// 4,096 bytes becomes an attachment, and JSON of twice that size is refused. JSON writes a quotation mark as two
/// bytes, so 3,000 bytes are within both limits.
fn request(post: &Post<'_>, secret: &SecretValues) -> Request {
    let is_firing = post.is_firing();
    let body = json!({
        "topic": secret.text("topic"),
        "title": TextForm { limit: 250, measure: bytes, write: plain }.fit_line(&post.title()),
        "message": post.text(TextForm { limit: 3_000, measure: bytes, write: plain }, ""),
        "priority": if is_firing { 4 } else { 3 },
        "tags": [if is_firing { "warning" } else { "white_check_mark" }],
        "click": post.link,
    });

    let server = secret.address("server");
    let root = server.with_path(&format!("{}/", server.base()));
    let request = secret.post(NTFY.title, "server", root, body.to_string());
    match secret.find("token") {
        Some(token) => request.with_headers([("authorization", format!("Bearer {token}"))]),
        None => request,
    }
}
