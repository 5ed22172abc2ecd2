//! The kinds of channels, for people in docs/guide/channels.md and for the page in web/data/channels.js. Sends nothing.

use alerts::{CHANNEL_KINDS, ChannelKind, ChannelMember, MemberForm, Need};
use serde_json::json;

use crate::generated::{assert_documented, assert_is};

#[test]
fn the_guide_has_each_kind_of_channel() {
    let rows: Vec<String> = CHANNEL_KINDS.iter().map(|kind| row(kind)).collect();
    let samples: Vec<&str> = CHANNEL_KINDS.iter().map(|kind| kind.sample).collect();
    let (rows, samples) = (rows.join("\n"), samples.join("\n"));
    let text =
        format!("| kind | secret members |\n| --- | --- |\n{rows}\n\n```json\n{samples}\n```");
    assert_documented("docs/guide/channels.md", "channels", &text);
}

fn row(kind: &ChannelKind) -> String {
    let members = kind.members.iter().map(|member| {
        let optional = if member.need == Need::Always { "" } else { " (optional)" };
        format!("`{}`{optional}: {}", member.name, member.about)
    });
    format!("| `{}` | {} |", kind.name, members.collect::<Vec<_>>().join("; "))
}

#[test]
fn the_page_has_each_kind_of_channel() {
    let field = |member: &ChannelMember| {
        let is_password = matches!(member.form, MemberForm::Password(..));
        json!({
            "name": member.name,
            "type": if is_password { "password" } else { "text" },
            "required": member.need == Need::Always,
        })
    };
    let kinds = CHANNEL_KINDS.iter().map(|kind| {
        let fields: Vec<_> = kind.members.iter().map(field).collect();
        let kind_of_page = json!({"title": kind.title, "members": fields});
        format!("  {}: {kind_of_page},\n", kind.name)
    });
    let text = format!(
        "// The kinds of channels and their fields, made from shared/alerts/src/channel_kinds.rs by tests/documents/channels.rs.\n\
         \n\
         /** @type {{Record<string, {{title: string, members: {{name: string, type: string, required: boolean}}[]}}>}} */\n\
         export const CHANNELS = {{\n{}}};\n",
        kinds.collect::<String>()
    );
    assert_is("web/data/channels.js", &text);
}
