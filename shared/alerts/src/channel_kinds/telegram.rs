//! A bot of Telegram.

use outgoing::Request;
use serde_json::json;

use crate::body::Post;
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, MemberForm, Need, SecretValues, is_of_name};
use crate::fit::{TextForm, utf16_units};

pub(super) const TELEGRAM: ChannelKind = ChannelKind {
    name: "telegram",
    title: "Telegram",
    members: &[
        ChannelMember {
            name: "token",
            about: "the token of a bot that BotFather made",
            form: MemberForm::Password(
                is_bot_token,
                "must be the token that BotFather gives, like 123456:ABC-DEF",
            ),
            need: Need::Always,
        },
        ChannelMember {
            name: "chat",
            about: "the number of a chat, or @name of a public channel",
            form: MemberForm::TextOrNumber(
                is_chat,
                "must be the number of a chat like -1001234567890, or a public channel like @name",
            ),
            need: Need::Always,
        },
        ChannelMember::server("one's own server of the Bot API", "https://api.telegram.org"),
    ],
    sample: r#"{"kind": "telegram", "name": "Family", "token": "123456:ABC-DEF", "chat": -1001234567890}"#,
    delivery: ChannelDelivery::Http(request),
};

/// <https://core.telegram.org/bots/api#authorizing-your-bot>.
fn is_bot_token(text: &str) -> bool {
    text.split_once(':').is_some_and(|(bot, rest)| {
        let is_number = !bot.is_empty() && bot.bytes().all(|byte| byte.is_ascii_digit());
        is_number && !rest.is_empty() && rest.bytes().all(is_of_name)
    })
}

/// A number, or the name of a public channel.
fn is_chat(text: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte != b'-' && is_of_name(byte));
    text.parse::<i64>().is_ok_and(|number| number != 0)
        || text.strip_prefix('@').is_some_and(is_name)
}

/// <https://core.telegram.org/bots/api#sendmessage>: at most 4,096 units of UTF-16. Without `parse_mode` nothing is
/// formatted, but `@name` is still a mention; an invisible word joiner after the `@` prevents that.
fn request(post: &Post<'_>, secret: &SecretValues) -> Request {
    let write = |c: char, text: &mut String| {
        text.push(c);
        if c == '@' {
            text.push('\u{2060}');
        }
    };
    let form = TextForm { limit: 4_096, measure: utf16_units, write };
    let body = json!({
        "chat_id": secret.text("chat"),
        "text": post.full_text(form, post.link),
        "link_preview_options": { "is_disabled": true },
    });

    let server = secret.address("server");
    let path = format!("{}/bot{}/sendMessage", server.base(), secret.text("token"));
    secret.post(TELEGRAM.title, "server", server.with_path(&path), body.to_string())
}
