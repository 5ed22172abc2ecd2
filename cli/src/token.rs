//! `roomtide token`: creates, lists and revokes access tokens, in a local or a deployed table. Checks none.

mod line;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use domain::{
    DeviceId, Label, Scope, TOKEN_PREFIX, Timestamp, Token, TokenHash, WritableDevices, WriteScope,
    token_of,
};
use runtime::clock::{Clock as _, Deadline, SystemClock};
use serde_json::{Value, json};
use table::{Invocation, ManageTokens};

use crate::output::print;
use crate::place::Place;

/// The command line of `roomtide token`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a token and show it, once
    Create(Create),
    /// Create the first tokens of an empty table: to manage, to read, and to write for any device
    First {
        /// Store nothing: print scope, secret and DynamoDB's item of each as a line of JSON, for a program that
        /// stores the items
        #[arg(long, conflicts_with_all = ["data_dir", "table", "region", "endpoint"])]
        json: bool,
    },
    /// List all tokens, without their secrets
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; it is refused within half a minute
    Revoke {
        /// Its whole id, as the list shows it, or the token itself
        id: String,
    },
}

#[derive(Debug, ClapArgs)]
struct Create {
    /// What it permits: write readings of its devices, read, or everything
    #[arg(long, value_enum)]
    scope: ScopeName,
    /// A device whose readings, and whose parts' readings, a write token may store; repeat it for several
    #[arg(long, value_name = "ID")]
    device: Vec<DeviceId>,
    /// A write token for any device
    #[arg(long, conflicts_with_all = ["device", "prefix"])]
    any: bool,
    /// A write token for devices whose ids begin with this and a colon; ids of line protocol get it prefixed
    #[arg(long, value_name = "ID", conflicts_with = "device", value_parser = prefix)]
    prefix: Option<DeviceId>,
    /// The tags of line protocol that identify a device, in this order; by default all tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    device_tags: Vec<String>,
    /// The tag of line protocol that names a room; by default room, area or location
    #[arg(long, value_name = "TAG")]
    room_tag: Option<String>,
    /// A name for the list
    #[arg(long)]
    name: Option<Label>,
    /// How long it is valid, in hours, days or weeks, such as 12h, 90d or 4w; for ever without it
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<TimeDelta>,
    /// Print the token and nothing else
    #[arg(long)]
    quiet: bool,
}

impl Create {
    /// A token of that scope, for no device and without a name.
    fn of(scope: ScopeName) -> Self {
        let (device, device_tags) = (Vec::new(), Vec::new());
        let (prefix, room_tag, name) = (None, None, None);
        let (any, expires, quiet) = (false, None, false);
        Self { scope, device, any, prefix, device_tags, room_tag, name, expires, quiet }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    Write,
    Read,
    Admin,
}

/// The longest time for which a token is valid.
const MAX_LIFETIME: TimeDelta = TimeDelta::days(36_500);
/// The deadline of all requests to the table.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the subcommand.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args { action, place } = args;
    if let Action::First { json: true } = action {
        // What stands before the subcommand conflicts with nothing in it.
        if place.is_named() {
            bail!("--json asks no table; leave out --data-dir, --table, --region and --endpoint");
        }
        first_tokens()?.iter().for_each(|token| print(line::line(token)));
        return Ok(());
    }
    let table = place.open().await?;
    let result = act(action, &table.name, &table.store).await;
    table.close().await?;
    result
}

async fn act(action: Action, whose: &str, store: &impl ManageTokens) -> anyhow::Result<()> {
    let invocation = Invocation::until(Deadline::after(TIMEOUT));
    match action {
        Action::Create(create) => {
            let quiet = create.quiet;
            let (token, secret) = issue(create)?;
            store.add_token(&token, &invocation).await.context("the token is not kept")?;
            if !quiet {
                let (id, scope) = (token.hash.short(), describe(&token.scope));
                print(format_args!("token {id} ({scope}) for {whose}\n"));
            }
            print(&secret);
            if !quiet {
                print(
                    "\nThis is the only time it is shown. Send it as: Authorization: Bearer TOKEN",
                );
            }
        }
        Action::First { .. } => {
            if !store.tokens(&invocation).await?.is_empty() {
                bail!("{whose} has tokens already; `token create` makes further ones");
            }
            for (token, secret) in first_tokens()? {
                store.add_token(&token, &invocation).await.context("the token is not kept")?;
                print(format_args!("{}: {secret}", describe(&token.scope)));
            }
            print("\nThis is the only time they are shown.");
        }
        Action::List { json: true } => {
            let tokens = store.tokens(&invocation).await?;
            print(Value::Array(tokens.iter().map(as_json).collect()));
        }
        Action::List { json: false } => {
            for token in store.tokens(&invocation).await? {
                let state = state(&token, SystemClock.now());
                let (id, scope) = (token.hash.short(), describe(&token.scope));
                let name = token.name.map(String::from).unwrap_or_default();
                print(format_args!("{id}  {}  {scope}  {name}{state}", token.created));
            }
        }
        Action::Revoke { id } => {
            // The id may be the token itself, which is never shown, in an error either.
            let id = if id.starts_with(TOKEN_PREFIX) { TokenHash::of(&id).to_string() } else { id };
            let tokens = store.tokens(&invocation).await?;
            let token = meant(&tokens, &id).with_context(|| whose.to_owned())?;
            store.revoke_token(&token.hash, SystemClock.now(), &invocation).await?;
            print(format_args!("token {} is revoked", token.hash.short()));
        }
    }
    Ok(())
}

/// The token of an id, which has to be whole: a few digits are soon those of another token.
fn meant<'a>(tokens: &'a [Token], id: &str) -> anyhow::Result<&'a Token> {
    /// The most ids that an error names.
    const MAX_NAMED: usize = 5;
    let is_meant = |token: &&Token| id == token.hash.short() || id == token.hash.to_string();
    let mut whole = tokens.iter().filter(is_meant);
    match (whole.next(), whole.next()) {
        (Some(token), None) => return Ok(token),
        (Some(_), Some(_)) => bail!("two tokens have that id; give the token itself"),
        (None, _) => {}
    }
    let begins = |token: &&Token| !id.is_empty() && token.hash.to_string().starts_with(id);
    let ids: Vec<String> = tokens.iter().filter(begins).map(|it| it.hash.short()).collect();
    let more = if ids.len() > MAX_NAMED { " and others" } else { "" };
    match &ids[..ids.len().min(MAX_NAMED)] {
        [] => bail!("there is no token of that id; `token list` shows the ids"),
        ids => bail!("that is not a whole id; it may be of {}{more}", ids.join(", ")),
    }
}

/// The prefix of a token. One with the colon that follows it would be followed by two.
fn prefix(text: &str) -> Result<DeviceId, String> {
    let bare = text.trim_end_matches(':');
    if bare.len() < text.len() {
        return Err(match bare {
            "" => "there is nothing before the colon".to_owned(),
            _ => format!(
                "the colon behind the prefix is added; write {bare}, for devices such as {bare}:pi"
            ),
        });
    }
    text.parse().map_err(|why: domain::IdError| why.to_string())
}

/// A time such as 90d.
fn lifetime(text: &str) -> Result<TimeDelta, String> {
    let expected = || "expected hours, days or weeks, such as 12h, 90d or 4w".to_owned();
    let unit = text.chars().last().ok_or_else(expected)?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return Err(expected()),
    };
    let number: i64 =
        text[..text.len() - 1].parse().ok().filter(|n| *n > 0).ok_or_else(expected)?;
    let time = number.checked_mul(hours).and_then(TimeDelta::try_hours).ok_or_else(expected)?;
    if time > MAX_LIFETIME {
        Err("is more than 100 years; leave it out".to_owned())
    } else {
        Ok(time)
    }
}

/// What the list says of a token that is not valid for ever.
fn state(token: &Token, now: Timestamp) -> String {
    match (token.revoked, token.expires) {
        (Some(at), _) => format!("  revoked {at}"),
        (None, Some(at)) if token.has_expired(now) => format!("  expired {at}"),
        (None, Some(at)) => format!("  expires {at}"),
        (None, None) => String::new(),
    }
}

/// Makes a new token and its secret. Only the hash of the secret is stored.
fn issue(create: Create) -> anyhow::Result<(Token, String)> {
    let Create { device, any, prefix, device_tags, room_tag, .. } = create;
    let devices: BTreeSet<DeviceId> = device.into_iter().collect();
    let devices = match prefix {
        Some(prefix) => Some(WritableDevices::Prefix(prefix)),
        None if any => Some(WritableDevices::Any),
        None => (!devices.is_empty()).then_some(WritableDevices::Only(devices)),
    };
    let has_tags = !device_tags.is_empty() || room_tag.is_some();
    let scope = match (create.scope, devices) {
        (ScopeName::Write, None) => {
            bail!("a write token needs at least one --device, a --prefix, or --any")
        }
        (ScopeName::Write, Some(devices)) => {
            Scope::Write(WriteScope { devices, device_tags, room_tag })
        }
        (_, Some(_)) => {
            bail!(
                "--device, --prefix and --any go with --scope write; the others are for all devices"
            )
        }
        (_, None) if has_tags => bail!("--device-tags and --room-tag go with --scope write"),
        (ScopeName::Read, None) => Scope::Read,
        (ScopeName::Admin, None) => Scope::Admin,
    };
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).context("the operating system has no randomness")?;
    let secret = token_of(&URL_SAFE_NO_PAD.encode(bits));
    let (hash, created) = (TokenHash::of(&secret), SystemClock.now());
    let expires = create.expires.map(|lifetime| created.saturating_add(lifetime));
    Ok((Token { hash, scope, name: create.name, created, revoked: None, expires }, secret))
}

/// Makes the first tokens and their secrets: to manage the system, to read it, and to store readings of any device.
fn first_tokens() -> anyhow::Result<Vec<(Token, String)>> {
    let first = [
        (ScopeName::Admin, "first admin"),
        (ScopeName::Read, "first page"),
        (ScopeName::Write, "first devices"),
    ];
    let create = |(scope, name): (ScopeName, &str)| {
        let any = matches!(scope, ScopeName::Write);
        let name = Some(name.parse().context("the token's name")?);
        issue(Create { any, name, ..Create::of(scope) })
    };
    first.into_iter().map(create).collect()
}

/// A token in a list for programs.
fn as_json(token: &Token) -> Value {
    json!({
        "id": token.hash.short(),
        "scope": describe(&token.scope),
        "name": token.name.clone().map(String::from),
        "created": token.created.to_string(),
        "revoked": token.revoked.map(|at| at.to_string()),
        "expires": token.expires.map(|at| at.to_string()),
    })
}

fn describe(scope: &Scope) -> String {
    match scope {
        Scope::Write(WriteScope { devices, device_tags, room_tag }) => {
            let devices = match devices {
                WritableDevices::Any => "any device".to_owned(),
                WritableDevices::Prefix(prefix) => format!("{prefix}:..."),
                WritableDevices::Only(devices) => {
                    let devices: Vec<&str> = devices.iter().map(DeviceId::as_str).collect();
                    devices.join(",")
                }
            };
            let tags = match &device_tags[..] {
                [] => String::new(),
                tags => format!(", devices by {}", tags.join(",")),
            };
            let room = room_tag.as_ref().map(|tag| format!(", rooms by {tag}"));
            format!("write {devices}{tags}{}", room.unwrap_or_default())
        }
        Scope::Read => "read".to_owned(),
        Scope::Admin => "admin".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dynamodb::DynamoStore;
    use local::{Options, System};
    use table::layout::Layout;

    use super::*;

    fn create(scope: ScopeName, devices: &[&str]) -> Create {
        let device = devices.iter().map(|id| id.parse().unwrap()).collect();
        Create { device, ..Create::of(scope) }
    }

    #[test]
    fn a_token_has_256_random_bits_and_only_its_hash_is_kept() {
        let (token, secret) = issue(create(ScopeName::Write, &["a", "b"])).unwrap();
        let (_, other) = issue(create(ScopeName::Write, &["a"])).unwrap();
        assert_ne!(secret, other);
        assert_eq!(URL_SAFE_NO_PAD.decode(&secret[3..46]).unwrap().len(), 32);
        assert_eq!(domain::check_token(&secret), Ok(()));
        assert_eq!(token.hash, TokenHash::of(&secret));
        assert_eq!(describe(&token.scope), "write a,b");
    }

    #[test]
    fn a_token_may_expire_and_the_list_says_when() {
        for text in ["", "d", "90", "-1d", "0d", "90m", "1.5d", "9999999999999999d", "é", "40000d"]
        {
            assert!(lifetime(text).is_err(), "{text}");
        }
        for (text, hours) in [("12h", 12), ("90d", 90 * 24), ("4w", 28 * 24)] {
            let expires = Some(lifetime(text).unwrap());
            let (token, _) = issue(Create { expires, ..create(ScopeName::Read, &[]) }).unwrap();
            let end = token.created.saturating_add(TimeDelta::hours(hours));
            assert_eq!(token.expires, Some(end));
            assert_eq!(state(&token, token.created), format!("  expires {end}"));
            assert_eq!(state(&token, end), format!("  expired {end}"));
            let revoked = Token { revoked: Some(token.created), ..token };
            assert!(state(&revoked, end).starts_with("  revoked "));
        }
        let (token, _) = issue(create(ScopeName::Read, &[])).unwrap();
        assert_eq!((token.expires, state(&token, Timestamp::MAX)), (None, String::new()));
    }

    #[test]
    fn a_name_is_one_short_line() {
        assert!("desk, ESP32".parse::<Label>().is_ok());
        for name in ["", "a\nb", "\u{1b}[31m", &"x".repeat(101)] {
            assert!(name.parse::<Label>().is_err(), "{name:?}");
        }
    }

    #[tokio::test]
    async fn a_token_is_revoked_by_its_id_or_by_itself_and_never_shown() {
        use table::FindToken as _;
        let system = System::start(Options { listens: false, ..Options::default() }).await.unwrap();
        let store = DynamoStore::connect(system.store_config(), Layout::default());
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        for by_id in [true, false] {
            let (token, secret) = issue(create(ScopeName::Read, &[])).unwrap();
            store.add_token(&token, &invocation).await.unwrap();
            let id = if by_id { token.hash.short() } else { secret };
            act(Action::Revoke { id }, "here", &store).await.unwrap();
            let kept = store.token(&token.hash, &invocation).await.unwrap().unwrap();
            assert!(kept.revoked.is_some());
        }
        let unknown = Action::Revoke { id: "rt_unknown".to_owned() };
        let error = act(unknown, "here", &store).await.unwrap_err().to_string();
        assert!(!error.contains("rt_unknown") && error.contains("here"), "{error}");
        // A part of an id revokes nothing, also where one token alone begins so.
        let (token, _) = issue(create(ScopeName::Admin, &[])).unwrap();
        store.add_token(&token, &invocation).await.unwrap();
        let prefix = Action::Revoke { id: token.hash.short()[..11].to_owned() };
        let error = format!("{:#}", act(prefix, "here", &store).await.unwrap_err());
        assert!(error.contains(&token.hash.short()), "{error}");
        let kept = store.token(&token.hash, &invocation).await.unwrap().unwrap();
        assert_eq!(kept.revoked, None);
        drop(store);
        system.shutdown().await.unwrap();
    }

    #[test]
    fn an_id_is_whole() {
        let token = || issue(create(ScopeName::Read, &[])).unwrap().0;
        let tokens: Vec<Token> = std::iter::repeat_with(token).take(100).collect();
        for token in &tokens {
            let (short, whole) = (token.hash.short(), token.hash.to_string());
            for id in [&short, &whole] {
                assert_eq!(meant(&tokens, id).unwrap().hash, token.hash);
            }
            for length in [1, 2, 11, 13, 63] {
                let error = meant(&tokens, &whole[..length]).unwrap_err().to_string();
                assert!(error.contains("not a whole id"), "{error}");
                assert!(length < 11 || error.ends_with(&short), "{error}");
            }
        }
        // Of 100 ids more than five begin with the same hexadecimal digit.
        let errors = (0..16).map(|digit| meant(&tokens, &format!("{digit:x}")).unwrap_err());
        assert!(errors.map(|it| it.to_string()).any(|it| it.ends_with(" and others")));
        let twice = [tokens[0].clone(), tokens[0].clone()];
        assert!(meant(&twice, &tokens[0].hash.short()).unwrap_err().to_string().contains("itself"));
        for id in ["", "x", " "] {
            assert!(meant(&tokens, id).unwrap_err().to_string().contains("no token"), "{id:?}");
        }
    }

    #[test]
    fn the_first_tokens_are_one_of_each_scope_as_lines_that_are_their_items() {
        let tokens = first_tokens().unwrap();
        let scopes = tokens.iter().map(|(token, _)| describe(&token.scope));
        assert_eq!(scopes.collect::<Vec<_>>(), ["admin", "read", "write any device"]);
        for each in &tokens {
            let (token, secret) = each;
            assert_eq!(token.hash, TokenHash::of(secret));
            let line: Value = serde_json::from_str(&line::line(each)).unwrap();
            assert_eq!(line["token"], **secret);
            assert_eq!(line["item"]["sk"]["S"], token.hash.to_string());
        }
    }

    #[test]
    fn a_prefix_is_written_without_the_colon_that_follows_it() {
        for (text, bare) in [("cabin:", "cabin"), ("cabin::", "cabin"), ("a:b:", "a:b")] {
            let refused = prefix(text).expect_err(text);
            assert!(refused.contains(&format!("write {bare}, ")), "{refused}");
        }
        for text in ["cabin", "a:b", ":a"] {
            assert_eq!(prefix(text).expect(text).as_str(), text);
        }
        for text in ["", ":", "::", "#", "a#:b"] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn devices_go_with_write_tokens_only() {
        assert!(issue(create(ScopeName::Write, &[])).unwrap_err().to_string().contains("--device"));
        assert!(issue(create(ScopeName::Admin, &["a"])).is_err());
        assert!(issue(create(ScopeName::Read, &[])).is_ok());
        let any = || Create { any: true, ..Create::of(ScopeName::Write) };
        let (token, _) = issue(Create { room_tag: Some("area".to_owned()), ..any() }).unwrap();
        assert_eq!(describe(&token.scope), "write any device, rooms by area");
        let device_tags = vec!["host".to_owned(), "path".to_owned()];
        let prefix = Some("cabin".parse().unwrap());
        let cabin =
            Create { prefix, device_tags: device_tags.clone(), ..Create::of(ScopeName::Write) };
        let (token, _) = issue(cabin).unwrap();
        assert_eq!(describe(&token.scope), "write cabin:..., devices by host,path");
        assert!(issue(Create { scope: ScopeName::Admin, ..any() }).is_err());
        assert!(issue(Create { device_tags, ..Create::of(ScopeName::Read) }).is_err());
    }
}
