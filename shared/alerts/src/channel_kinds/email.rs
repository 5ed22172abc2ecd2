//! E-mail by a topic of Amazon SNS.

use crate::body::{Email, Post};
use crate::channel_kind::{ChannelDelivery, ChannelKind};
use crate::channel_member::{ChannelMember, MemberForm, Need, SecretValues, is_of_name};
use crate::fit::{TextForm, bytes, plain};

pub(super) const EMAIL: ChannelKind = ChannelKind {
    name: "email",
    title: "Amazon SNS",
    members: &[ChannelMember {
        name: "topic_arn",
        about: "the stack's output AlertTopic; of a deployed server only",
        form: MemberForm::Text(
            is_topic_arn,
            "must be the ARN of a topic like arn:aws:sns:eu-central-1:123456789012:alerts",
        ),
        need: Need::Always,
    }],
    sample: r#"{"kind": "email", "name": "Mail", "topic_arn": "arn:aws:sns:eu-central-1:123456789012:roomtide-AlertTopic-1A2B3C4D5E6F"}"#,
    delivery: ChannelDelivery::Email(email),
};

/// <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>.
fn is_topic_arn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let ["arn", partition, "sns", region, account, name] = parts[..] else { return false };

    partition.starts_with("aws")
        && account.len() == 12
        && account.bytes().all(|byte| byte.is_ascii_digit())
        && (1..=256).contains(&name.len())
        && !region.is_empty()
        && [partition, region, name].into_iter().all(|part| part.bytes().all(is_of_name))
}

fn email(post: &Post<'_>, secret: &SecretValues) -> Email {
    let write = |c: char, text: &mut String| text.push(if c.is_ascii() { c } else { '?' });
    let subject: String = post.title().chars().filter(|c| !c.is_control()).collect();
    let subject = TextForm { limit: 80, measure: bytes, write }.fit_line(&subject);
    // The character that marks a cut is not ASCII.
    let subject = format!("Roomtide: {}", subject.replace('…', "..."));

    let form = TextForm { limit: 200_000, measure: bytes, write: plain };
    let text = post.full_text(form, post.link);
    Email { topic_arn: secret.text("topic_arn").to_owned(), subject, text }
}
