//! `GET /channels`, `GET`, `PUT` and `DELETE /channels/{id}`, and a test of a channel. Reads no secret.

use ::alerts::{ChannelBody, Secret};
use api::{Problem, Response, body};
use domain::Timestamp;
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use table::{ChannelSecret, StoredChannel, WaitingMessage};

use super::{MAX_BODY, UNREADABLE, shown};
use crate::ports::Store;
use crate::registry::lookup::{not_found, path_id, readable};
use crate::saved::{contended, ensure_at_most};
use crate::shared_state::Call;

/// The maximum number of channels. The transaction that stores a message has an item for each channel.
const MAX_CHANNELS: usize = 10;
/// The waiting messages of a channel are counted up to this number.
const MAX_COUNTED: usize = 100;

/// A body without members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

/// `GET /channels`
pub(crate) async fn list(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let channels = all(call).await?;
    let session = call.session;
    let shown = channels.iter().map(|channel| async move {
        let page = session.waiting_messages(&channel.id, None, MAX_COUNTED);
        Ok::<_, table::StoreError>(shown::channel(
            channel,
            Some(waiting(&page.await?.listing.found)),
        ))
    });

    let shown = try_join_all(shown.map(Box::pin)).await?;
    Ok(Response::json(200, &json!({"data": shown})))
}

/// The number of waiting messages, and the time of the oldest.
fn waiting(messages: &[WaitingMessage]) -> (usize, Option<Timestamp>) {
    (messages.len(), messages.iter().map(|message| message.logged.at).min())
}

/// `GET /channels/{id}`
pub(crate) async fn show(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let channel = known(call).await?;
    Ok(Response::json(200, &shown_now(&channel, call).await?))
}

async fn shown_now(
    channel: &StoredChannel,
    call: &mut Call<'_, impl Store>,
) -> Result<Value, Problem> {
    let page = call.session.waiting_messages(&channel.id, None, MAX_COUNTED).await?;
    Ok(shown::channel(channel, Some(waiting(&page.listing.found))))
}

/// `PUT /channels/{id}`: saves a channel. Without a secret in the body, the stored secret stays. The edited channel
/// sends new messages at once, and messages that failed before at their next attempt.
pub(crate) async fn put(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let id = path_id(call)?;
    let body: ChannelBody = body::read(call.request, MAX_BODY)?;
    let (wanted, secret) = body.channel(call.shared.reach)?;
    ensure_own_topic(secret.as_ref(), call.shared.alert_topic.as_deref())?;

    let channels = all(call).await?;
    let before = channels.iter().find(|channel| channel.id == id);
    if before.is_none() {
        ensure_at_most(MAX_CHANNELS, "channels", channels.len() + 1)?;
    }

    // The stored secret is kept only if the kind stays the same. The kind of an unreadable channel is unknown.
    let known = before.and_then(|channel| channel.channel().ok());
    if secret.is_none() && known.as_ref().is_none_or(|known| known.kind != wanted.kind) {
        return Err(Secret::missing(wanted.kind).into());
    }

    if let Some(before) = before
        && secret.is_none()
        && known.as_ref() == Some(&wanted)
    {
        return Ok(Response::json(200, &shown_now(before, call).await?));
    }

    let channel = StoredChannel::new(id, before, &wanted, now);
    let secret = secret.as_ref().map(ChannelSecret::of);
    if !call.session.put_channel(&channel, secret.as_ref()).await? {
        return Err(contended("channel"));
    }

    // Other requests may have saved channels at the same moment, so the number is checked again. The channel stays
    // saved if the number cannot be read.
    if before.is_none()
        && let Ok(now) = all(call).await
        && let Err(too_many) = ensure_at_most(MAX_CHANNELS, "channels", now.len())
    {
        call.session.delete_channel(&channel.id).await?;
        return Err(too_many);
    }

    Ok(Response::json(200, &shown_now(&channel, call).await?))
}

/// Refuses an e-mail topic other than the stack's own: the role of `alerting` may publish to no other topic.
fn ensure_own_topic(secret: Option<&Secret>, own: Option<&str>) -> Result<(), Problem> {
    let Some(wanted) = secret.and_then(Secret::topic_arn) else { return Ok(()) };

    match own {
        Some(own) if own == wanted => Ok(()),
        Some(_) => Err(Problem::field(
            "topic_arn",
            "is not the stack's output AlertTopic, and the stack may publish to no other topic; further receivers \
             subscribe to AlertTopic",
        )),
        None => Err(Problem::field(
            "topic_arn",
            "the stack has no topic to which it may publish; deploy it with the parameter AlertEmail, and write its \
             output AlertTopic here",
        )),
    }
}

/// `DELETE /channels/{id}`: deletes a channel and its secret. Waiting messages expire, and a later channel with this id
/// does not get them.
pub(crate) async fn delete(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let channel = known(call).await?;
    call.session.delete_channel(&channel.id).await?;
    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false})))
}

/// `POST /channels/{id}/test`: stores a test message, which the `alerting` function sends within a minute.
pub(crate) async fn test(call: &mut Call<'_, impl Store>) -> Result<Response, Problem> {
    let now = call.session.now;

    let NoMembers {} = body::read(call.request, MAX_BODY)?;
    let stored = known(call).await?;
    let channel = stored.channel()?;
    let message = WaitingMessage::test(stored.id, channel.name, now);
    // A test message of the same instant may already wait. That is not an error: one message is enough.
    call.session.put_test_message(&message).await?;
    Ok(Response::json(200, &json!({"waiting": 1})))
}

async fn all(call: &mut Call<'_, impl Store>) -> Result<Vec<StoredChannel>, Problem> {
    Ok(readable(call.session.channels().await?, UNREADABLE, call))
}

/// The channel that the request's path names.
async fn known(call: &mut Call<'_, impl Store>) -> Result<StoredChannel, Problem> {
    let id = path_id(call)?;
    let mut channels = all(call).await?;
    let found = channels.iter().position(|channel| channel.id == id);

    found.map(|place| channels.swap_remove(place)).ok_or_else(|| {
        let mut problem = not_found("channel", id.as_str());
        if !channels.is_empty() {
            let there: Vec<_> = channels.iter().map(|channel| channel.id.as_str()).collect();
            problem.detail = format!("{} There are: {}.", problem.detail, there.join(", "));
        }
        problem
    })
}
