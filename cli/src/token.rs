//! `roomtide token`: creates, lists and revokes access tokens, in a local or a deployed table. Checks no token.

mod line;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::TimeDelta;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use domain::{
    DeviceId, HomeId, Label, RoomId, Scope, TOKEN_PREFIX, Timestamp, Token, TokenHash, ViewScope,
    WritableDevices, WriteScope, lifetime,
};
use runtime::clock::{Clock as _, Deadline, SystemClock};
use runtime::new_token::NewToken;
use serde_json::{Value, json};
use table::{AddToken, Invocation, ManageTokens};

use crate::at::{TableParts, TablePlace};
use crate::output::{self, print};

/// The command line of `roomtide token`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Command,
    #[command(flatten)]
    place: TablePlace,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and show it, once
    Create(Create),
    /// Create the first tokens of an empty table: to manage, to read, and to write for any device
    First {
        /// Store nothing: print scope, secret and DynamoDB's item of each as a line of JSON, for a program that
        /// stores the items
        #[arg(long, conflicts_with_all = ["data_dir", "table"])]
        json: bool,
    },
    /// List all tokens, without their secrets
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, or all tokens that an admin token made; they are refused within half a minute
    Revoke {
        /// Its whole id, as the list shows it, or the token itself
        #[arg(required_unless_present = "issued")]
        id: Option<String>,
        /// Revoke all tokens that the page or the API made with this admin token, even if it is revoked itself
        #[arg(long, value_name = "ID", conflicts_with = "id")]
        issued: Option<String>,
    },
}

#[derive(Debug, ClapArgs)]
struct Create {
    /// What it permits: write readings of its devices, read, view some rooms and homes, or everything
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
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    device_tags: Vec<String>,
    /// The tag of line protocol that names a room; by default room, area or location
    #[arg(long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    room_tag: Option<String>,
    /// A room that a view token shows; repeat it for several
    #[arg(long, value_name = "ID")]
    room: Vec<RoomId>,
    /// A home that a view token shows, without the pages of its rooms; repeat it for several
    #[arg(long, value_name = "ID")]
    home: Vec<HomeId>,
    /// A name for the list
    #[arg(long)]
    name: Option<Label>,
    /// How long it is valid, in hours, days or weeks, such as 12h, 90d or 4w; for ever without it, which a view token
    /// never is
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<TimeDelta>,
    /// Print the token and nothing else
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    Write,
    Read,
    View,
    Admin,
}

/// The time limit of all requests to the table.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the subcommand.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let Args { action, place } = args;
    if let Command::First { json: true } = action {
        // clap cannot detect this conflict, because the place stands before the subcommand.
        if place.is_named() {
            bail!("--json asks no table; leave out --data-dir and --table");
        }
        first_tokens()?.iter().for_each(|token| print(line::line(token)));
        return Ok(());
    }
    place.work(TableParts::Tokens, async |table| act(action, &table.name, &table.store).await)
}

async fn act(
    action: Command,
    whose: &str,
    store: &(impl AddToken + ManageTokens),
) -> anyhow::Result<()> {
    let invocation = Invocation::until(Deadline::after(TIMEOUT));
    match action {
        Command::Create(arguments) => create(arguments, whose, store, &invocation).await,
        Command::First { .. } => {
            if !store.tokens(&invocation).await?.is_empty() {
                bail!("{whose} has tokens already; `token create` makes further ones");
            }
            create_first(store, &invocation).await
        }
        Command::List { json } => {
            list(&store.tokens(&invocation).await?, json);
            Ok(())
        }
        Command::Revoke { id, issued } => revoke(id, issued, whose, store, &invocation).await,
    }
}

async fn create(
    arguments: Create,
    whose: &str,
    store: &impl AddToken,
    invocation: &Invocation,
) -> anyhow::Result<()> {
    let quiet = arguments.quiet;
    let (token, secret) = issue(arguments)?;
    store.add_token(&token, invocation).await.context("the token is not kept")?;

    if !quiet {
        let (id, scope) = (token.hash.short(), describe(&token.scope));
        print(format_args!("token {id} ({scope}) for {whose}\n"));
    }
    print(&secret);
    ensure_seen(&[&token], output::lost())?;
    if !quiet {
        print("\nThis is the only time it is shown. Send it as: Authorization: Bearer TOKEN");
    }
    Ok(())
}

async fn create_first(store: &impl AddToken, invocation: &Invocation) -> anyhow::Result<()> {
    let tokens = first_tokens()?;
    for (n, (token, secret)) in tokens.iter().enumerate() {
        store.add_token(token, invocation).await.context("the token is not kept")?;
        print(format_args!("{}: {secret}", describe(&token.scope)));
        let made: Vec<&Token> = tokens[..=n].iter().map(|(token, _)| token).collect();
        ensure_seen(&made, output::lost())?;
    }
    print("\nThis is the only time they are shown.");
    Ok(())
}

fn list(tokens: &[Token], json: bool) {
    if json {
        print(Value::Array(tokens.iter().map(as_json).collect()));
        return;
    }

    for token in tokens {
        let state = state(token, SystemClock.now());
        let (id, scope) = (token.hash.short(), describe(&token.scope));
        let issued = token.issued_by.map(|by| format!("  issued by {}", by.short()));
        let issued = issued.unwrap_or_default();
        let name = token.name.as_ref().map(ToString::to_string).unwrap_or_default();
        print(format_args!("{id}  {}  {scope}  {name}{issued}{state}", token.created));
    }
}

/// Revokes the token with an id, and the tokens that were issued by another one.
async fn revoke(
    id: Option<String>,
    issued_by: Option<String>,
    whose: &str,
    store: &impl ManageTokens,
    invocation: &Invocation,
) -> anyhow::Result<()> {
    let tokens = store.tokens(invocation).await?;
    let named = |id: Option<String>| {
        let token = id.map(|id| meant(&tokens, &hashed(id)).map(|token| token.hash));
        token.transpose().with_context(|| whose.to_owned())
    };
    let (one, issuer) = (named(id)?, named(issued_by)?);

    let is_meant =
        |token: &&Token| Some(token.hash) == one || issuer.is_some() && token.issued_by == issuer;
    let meant: Vec<&Token> = tokens.iter().filter(is_meant).collect();
    for token in &meant {
        store.revoke_token(&token.hash, SystemClock.now(), invocation).await?;
        print(format_args!("token {} is revoked", token.hash.short()));
    }

    if let (Some(issuer), true) = (issuer, meant.is_empty()) {
        print(format_args!("no token was issued by {}", issuer.short()));
    }
    Ok(())
}

/// Returns the id of a token. If the text is a token itself, returns its hash, so that no error shows a token.
fn hashed(id: String) -> String {
    if id.starts_with(TOKEN_PREFIX) { TokenHash::of(&id).to_string() } else { id }
}

/// Finds the token with this id. The id must be complete, because a few digits may soon match another token.
fn meant<'a>(tokens: &'a [Token], id: &str) -> anyhow::Result<&'a Token> {
    /// The maximum number of ids that an error names.
    const MAX_NAMED: usize = 5;
    let is_meant = |token: &&Token| id == token.hash.short() || id == token.hash.to_string();
    let mut whole = tokens.iter().filter(is_meant);
    match (whole.next(), whole.next()) {
        (Some(token), None) => return Ok(token),
        (Some(_), Some(_)) => bail!("two tokens have that id; give the token itself"),
        (None, _) => {}
    }

    let begins = |token: &&Token| !id.is_empty() && token.hash.to_string().starts_with(id);
    let ids: Vec<String> = tokens.iter().filter(begins).map(|token| token.hash.short()).collect();
    let more = if ids.len() > MAX_NAMED { " and others" } else { "" };
    match &ids[..ids.len().min(MAX_NAMED)] {
        [] => bail!("there is no token of that id; `token list` shows the ids"),
        ids => bail!("that is not a whole id; it may be of {}{more}", ids.join(", ")),
    }
}

/// Parses the prefix of a token's devices. A colon at its end is refused, because another one follows it.
fn prefix(text: &str) -> Result<DeviceId, String> {
    let bare = text.trim_end_matches(':');
    if bare.len() < text.len() {
        return Err(match bare {
            "" => "there is nothing before the colon".to_owned(),
            _ => format!(
                "the colon after the prefix is added; write {bare}, for devices such as {bare}:pi"
            ),
        });
    }
    text.parse().map_err(|why: domain::IdError| why.to_string())
}

/// The remark in the list about a token that is not valid for ever.
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
    let Create { device, any, prefix, device_tags, room_tag, room, home, name, .. } = create;
    let devices: BTreeSet<DeviceId> = device.into_iter().collect();
    let devices = match prefix {
        Some(prefix) => Some(WritableDevices::Prefix(prefix)),
        None if any => Some(WritableDevices::Any),
        None => (!devices.is_empty()).then_some(WritableDevices::Only(devices)),
    };

    let has_tags = !device_tags.is_empty() || room_tag.is_some();
    let has_places = !room.is_empty() || !home.is_empty();
    if has_places && !matches!(create.scope, ScopeName::View) {
        bail!("--room and --home go with --scope view; the others are for all rooms");
    }

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
        (ScopeName::View, None) if !has_places => {
            bail!("a view token needs at least one --room or --home")
        }
        (ScopeName::View, None) if create.expires.is_none() => {
            bail!("a view token is for a while; add --expires, such as --expires 30d")
        }
        (ScopeName::View, None) => {
            Scope::View(ViewScope::new(room.into_iter().collect(), home.into_iter().collect())?)
        }
        (ScopeName::Admin, None) => Scope::Admin,
    };

    let new = NewToken { scope, name, lifetime: create.expires, issued_by: None };
    Ok(new.make(SystemClock.now())?)
}

/// Makes the first tokens and their secrets: to manage the system, to read, and to store readings of any device.
fn first_tokens() -> anyhow::Result<Vec<(Token, String)>> {
    let any = WriteScope { devices: WritableDevices::Any, device_tags: Vec::new(), room_tag: None };
    Ok(vec![
        lasting_token(Scope::Admin, "first admin")?,
        lasting_token(Scope::Read, "first page")?,
        lasting_token(Scope::Write(any), "first devices")?,
    ])
}

/// Makes a token that is valid until it is revoked, and its secret.
fn lasting_token(scope: Scope, name: &str) -> anyhow::Result<(Token, String)> {
    let name = Some(name.parse().context("the token's name")?);
    let new = NewToken { scope, name, lifetime: None, issued_by: None };
    Ok(new.make(SystemClock.now())?)
}

/// Makes a token for everything, if a table has no token yet, and returns its secret: the way in to a server that
/// nobody saw start.
pub(crate) async fn first_link(
    store: &(impl AddToken + ManageTokens),
) -> anyhow::Result<Option<String>> {
    let invocation = Invocation::until(Deadline::after(TIMEOUT));
    if !store.tokens(&invocation).await?.is_empty() {
        return Ok(None);
    }

    let (token, secret) = lasting_token(Scope::Admin, "first link")?;
    store.add_token(&token, &invocation).await.context("the token is not kept")?;
    Ok(Some(secret))
}

/// A token as JSON, for programs.
fn as_json(token: &Token) -> Value {
    json!({
        "id": token.hash.short(),
        "scope": describe(&token.scope),
        "name": token.name.clone().map(String::from),
        "created": token.created.to_string(),
        "revoked": token.revoked.map(|at| at.to_string()),
        "expires": token.expires.map(|at| at.to_string()),
        "issued_by": token.issued_by.map(|by| by.short()),
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
        Scope::View(view) => format!("view {view}"),
        Scope::Admin => "admin".to_owned(),
    }
}

/// Fails if new tokens could not be shown; `lost` is the reason.
fn ensure_seen(tokens: &[&Token], lost: Option<&str>) -> anyhow::Result<()> {
    let Some(why) = lost else { return Ok(()) };
    let revoke = |token: &&Token| format!("`roomtide token revoke {}`", token.hash.short());
    let revokes: Vec<String> = tokens.iter().map(revoke).collect();
    bail!(
        "standard output could not be written: {why}; tokens are stored that may not have been shown: {} ends that",
        revokes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use domain::given::{self, home, room};
    use dynamodb::DynamoStore;
    use local::{Options, System};
    use table::layout::Layout;

    use super::*;

    fn create(scope: ScopeName, devices: &[&str]) -> Create {
        let device = devices.iter().map(|id| given::device(id)).collect();
        Create { device, ..Create::of(scope) }
    }

    impl Create {
        /// A token of this scope, for no device and without a name.
        fn of(scope: ScopeName) -> Self {
            let scope = scope.to_possible_value().unwrap();
            let words = ["create", "--scope", scope.get_name()];
            crate::tests::parsed(words).unwrap()
        }
    }

    #[test]
    fn a_write_token_is_of_its_devices() {
        let (token, secret) = issue(create(ScopeName::Write, &["a", "b"])).unwrap();
        assert_eq!(token.hash, TokenHash::of(&secret));
        assert_eq!((describe(&token.scope), token.issued_by), ("write a,b".to_owned(), None));
    }

    #[test]
    fn a_view_token_shows_rooms_and_homes_for_a_while() {
        let view = |rooms: &[&str], homes: &[&str]| Create {
            room: rooms.iter().map(|id| room(id)).collect(),
            home: homes.iter().map(|id| home(id)).collect(),
            expires: Some(TimeDelta::days(30)),
            ..Create::of(ScopeName::View)
        };
        let refused = |create: Create| issue(create).unwrap_err().to_string();
        let (token, _) = issue(view(&["hall", "attic"], &["villa"])).unwrap();
        assert_eq!(describe(&token.scope), "view the rooms attic, hall and the home villa");
        assert!(refused(view(&[], &[])).contains("at least one --room or --home"));
        assert!(refused(Create { expires: None, ..view(&["a"], &[]) }).contains("--expires"));
        let any = Create { any: true, ..view(&["a"], &[]) };
        assert!(refused(any).contains("go with --scope write"));
        let many: Vec<String> = (0..101).map(|n| format!("r{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(view(&many, &[])).contains("at most 100"));
        let read = Create { scope: ScopeName::Read, ..view(&["a"], &[]) };
        assert!(refused(read).contains("go with --scope view"));
    }

    #[test]
    fn a_token_may_expire_and_the_list_says_when() {
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
    fn tokens_that_could_not_be_shown_are_named() {
        let [first, second] = [(); 2].map(|()| issue(create(ScopeName::Read, &[])).unwrap().0);
        ensure_seen(&[&first, &second], None).unwrap();
        let error = ensure_seen(&[&first, &second], Some("no space")).unwrap_err().to_string();
        assert!(error.contains("could not be written: no space"), "{error}");
        for token in [&first, &second] {
            let line = format!("`roomtide token revoke {}`", token.hash.short());
            assert!(error.contains(&line), "{error}");
        }
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
            act(revoke(&id), "here", &store).await.unwrap();
            let kept = store.token(&token.hash, &invocation).await.unwrap().unwrap();
            assert!(kept.revoked.is_some());
        }
        let error = act(revoke("rt_unknown"), "here", &store).await.unwrap_err().to_string();
        assert!(!error.contains("rt_unknown") && error.contains("here"), "{error}");
        // A part of an id revokes nothing, also where one token alone begins so.
        let (token, _) = issue(create(ScopeName::Admin, &[])).unwrap();
        store.add_token(&token, &invocation).await.unwrap();
        let prefix = revoke(&token.hash.short()[..11]);
        let error = format!("{:#}", act(prefix, "here", &store).await.unwrap_err());
        assert!(error.contains(&token.hash.short()), "{error}");
        let kept = store.token(&token.hash, &invocation).await.unwrap().unwrap();
        assert_eq!(kept.revoked, None);
        drop(store);
        system.shutdown().await.unwrap();
    }

    fn revoke(id: &str) -> Command {
        Command::Revoke { id: Some(id.to_owned()), issued: None }
    }

    #[tokio::test]
    async fn all_that_a_token_issued_is_revoked_at_once_and_nothing_else() {
        use table::memory_db::MemoryDb;
        let store = MemoryDb::default();
        let invocation = Invocation::until(Deadline::after(TIMEOUT));
        let new = || issue(create(ScopeName::Read, &[])).unwrap().0;
        let [admin, other] = [new(), new()];
        let of = |by: &Token| Token { issued_by: Some(by.hash), ..new() };
        let issued = [of(&admin), of(&admin)];
        let others = [of(&other), new()];
        for token in issued.iter().chain(&others).chain([&admin, &other]) {
            store.add_token(token, &invocation).await.unwrap();
        }
        let by = |id: String| Command::Revoke { id: None, issued: Some(id) };
        act(by(admin.hash.short()), "here", &store).await.unwrap();
        for token in store.tokens(&invocation).await.unwrap() {
            let is_issued = issued.iter().any(|it| it.hash == token.hash);
            assert_eq!(token.revoked.is_some(), is_issued, "{token:?}");
        }
        assert_eq!(as_json(&issued[0])["issued_by"], admin.hash.short());
        let error = format!("{:#}", act(by("ab".into()), "here", &store).await.unwrap_err());
        assert!(error.contains("here"), "{error}");
        act(by(issued[0].hash.short()), "here", &store).await.unwrap();
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
    fn a_tag_without_a_name_is_refused() {
        let words = |tags| ["create", "--scope", "write", "--any", "--device-tags", tags];
        assert!(crate::tests::parsed::<Create>(words("host,path")).is_ok());
        for tags in ["", ",,", "host,"] {
            assert!(crate::tests::parsed::<Create>(words(tags)).is_err(), "{tags:?}");
        }
        let words = ["create", "--scope", "write", "--any", "--room-tag", ""];
        assert!(crate::tests::parsed::<Create>(words).is_err());
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
