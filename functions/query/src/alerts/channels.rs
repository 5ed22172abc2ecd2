//! `GET /channels`, `GET`, `PUT` and `DELETE /channels/{id}`, and a test of a channel. Reads no secret.

use ::alerts::{ChannelBody, Secret};
use api::{Problem, Response, body};
use domain::{ChannelId, Timestamp};
use futures_util::future::try_join_all;
use runtime::clock::Clock;
use runtime::http::Call;
use serde::Deserialize;
use serde_json::{Value, json};
use table::{ChannelSecret, StoredChannel, WaitingMessage};

use super::body::{MAX_BODY, wrong};
use super::shown;
use super::states::readable;
use crate::handlers::Handlers;
use crate::ports::Store;
use crate::registry::lookup::not_found;
use crate::saved::{contended, ensure_at_most};

/// The most channels: each takes a part of the transaction of a message.
const MAX_CHANNELS: usize = 10;
/// The most messages that are counted of those that wait for a channel.
const MAX_COUNTED: usize = 100;

/// A body without members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

/// `GET /channels`
pub(crate) async fn list(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
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

/// The number of messages that wait, and since when the first of them does.
fn waiting(messages: &[WaitingMessage]) -> (usize, Option<Timestamp>) {
    (messages.len(), messages.iter().map(|message| message.told.at).min())
}

/// `GET /channels/{id}`
pub(crate) async fn show(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
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

/// `PUT /channels/{id}`: a secret that is not sent stays as it is. New messages are sent
/// by an edited channel at once, older messages that were tried at the time of their next attempt.
pub(crate) async fn put(
    handlers: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let now = call.session.now;

    let id = channel_id(call)?;
    let body: ChannelBody = body::read(call.request, MAX_BODY)?;
    let (wanted, secret) = body.channel(handlers.reach).map_err(wrong)?;
    ensure_own_topic(secret.as_ref(), handlers.alert_topic.as_deref())?;
    let channels = all(call).await?;
    let before = channels.iter().find(|channel| channel.id == id);
    if before.is_none() {
        ensure_at_most(MAX_CHANNELS, "channels", channels.len() + 1)?;
    }

    // One that cannot be read has no secret that is known to fit.
    let known = before.and_then(|channel| channel.channel().ok());
    if secret.is_none() && known.as_ref().is_none_or(|known| known.kind != wanted.kind) {
        return Err(wrong(Secret::missing(wanted.kind)));
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

    if before.is_none()
        && let Err(too_many) = ensure_at_most(MAX_CHANNELS, "channels", all(call).await?.len())
    {
        call.session.delete_channel(&channel.id).await?;
        return Err(too_many);
    }

    Ok(Response::json(200, &shown_now(&channel, call).await?))
}

/// Refuses e-mail by a topic to which nothing may be published: the role of alerting names the stack's own.
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

/// `DELETE /channels/{id}`: the secret goes with it. What waits expires, and a later channel of the same id does not get it.
pub(crate) async fn delete(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let channel = known(call).await?;
    call.session.delete_channel(&channel.id).await?;
    Ok(Response::json(200, &json!({"deleted": 1, "has_more": false})))
}

/// `POST /channels/{id}/test`: a message waits, and whoever sends finds it within a minute.
pub(crate) async fn test(
    _: &Handlers<impl Clock>,
    call: &mut Call<'_, impl Store>,
) -> Result<Response, Problem> {
    let now = call.session.now;

    let NoMembers {} = body::read(call.request, MAX_BODY)?;
    let stored = known(call).await?;
    let channel = stored.channel().map_err(wrong)?;
    let message = WaitingMessage::test(stored.id, channel.name, now);
    // One that was asked for at the same instant is as good.
    call.session.put_test_message(&message).await?;
    Ok(Response::json(200, &json!({"waiting": 1})))
}

async fn all(call: &mut Call<'_, impl Store>) -> Result<Vec<StoredChannel>, Problem> {
    Ok(readable(call.session.channels().await?, call))
}

/// The channel of the path.
async fn known(call: &mut Call<'_, impl Store>) -> Result<StoredChannel, Problem> {
    let id = channel_id(call)?;
    let found = all(call).await?.into_iter().find(|channel| channel.id == id);
    found.ok_or_else(|| not_found("channel", id.as_str()))
}

fn channel_id(call: &Call<'_, impl Store>) -> Result<ChannelId, Problem> {
    call.id.parse().map_err(|why| Problem::field("channel_id", format!("{why}")))
}
