//! The command against a queue and a function that are played: what is deleted, done again and given back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::tests::fake_server::{Reply, Request, serve};
use crate::tests::parsed;

const FOLD: &str = r#"{"device":"remo-e","quarter":"2026-01-11T16:00:00.000Z"}"#;
const LETTER: &str = r#"{"pk":"d","sk":"TS x","reason":"no time"}"#;

/// The part of AWS that the command uses: a queue whose messages are visible or hidden, a work queue, a function.
#[derive(Default)]
struct Aws {
    visible: BTreeMap<String, String>,
    /// By the handle of the last time that it was received.
    hidden: BTreeMap<String, (String, String)>,
    received: usize,
    /// The requests for messages.
    asked: usize,
    /// Whether an invocation takes longer than messages stay hidden.
    is_slow: bool,
    /// Whether the credentials may not ask for the number of messages.
    is_uncounted: bool,
    /// The message that cannot be given back.
    stuck: Option<&'static str>,
    /// Set as soon as a message is deleted.
    stops: Option<&'static AtomicBool>,
    sent: Vec<Value>,
    invoked: Vec<(String, Value)>,
}

impl Aws {
    fn answer(&mut self, request: &Request, reply: &str) -> Reply {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let header = |name: &str| request.headers.iter().find_map(|it| it.strip_prefix(name));
        assert!(header("authorization: aws4-hmac-sha256 credential=test/").is_some());
        if let Some(path) = request.path.strip_prefix("/2015-03-31/functions/") {
            let function = path.strip_suffix("/invocations").unwrap().to_owned();
            self.invoked.push((function, body));
            assert!(self.invoked.len() < 20, "for ever");
            if self.is_slow {
                self.visible.extend(std::mem::take(&mut self.hidden).into_values());
            }
            let failed = if reply.contains("errorMessage") {
                "x-amz-function-error: Unhandled\r\n"
            } else {
                ""
            };
            return Reply::with(200, failed, reply);
        }
        let handle = || body["ReceiptHandle"].as_str().unwrap();
        match header("x-amz-target: amazonsqs.").unwrap() {
            "receivemessage" => {
                self.asked += 1;
                let mut messages = Vec::new();
                for _ in 0..body["MaxNumberOfMessages"].as_u64().unwrap() {
                    let Some((id, text)) = self.visible.pop_first() else { break };
                    self.received += 1;
                    let handle = format!("{id}, {}", self.received);
                    messages.push(json!({"MessageId": id, "Body": text, "ReceiptHandle": handle,
                        "Attributes": {"SentTimestamp": "1768147200000"}}));
                    self.hidden.insert(handle, (id, text));
                }
                Reply::of(200, &json!({"Messages": messages}).to_string())
            }
            "deletemessage" => {
                let handle = handle();
                let id = handle.split(',').next().unwrap();
                // SQS deletes by the handle of a message that is visible again, too.
                let found =
                    self.hidden.remove(handle).is_some() | self.visible.remove(id).is_some();
                assert!(found, "{handle}");
                self.stops.into_iter().for_each(|stops| stops.store(true, Ordering::Release));
                Reply::of(200, "{}")
            }
            "changemessagevisibility" => {
                assert_eq!(body["VisibilityTimeout"], 0);
                let handle = handle();
                if self.stuck.is_some_and(|stuck| handle.starts_with(stuck)) {
                    return Reply::of(400, r#"{"__type": "com.amazonaws.sqs#MessageNotInflight"}"#);
                }
                let (id, text) = self.hidden.remove(handle).unwrap();
                self.visible.insert(id, text);
                Reply::of(200, "{}")
            }
            "getqueueattributes" if self.is_uncounted => {
                Reply::of(403, r#"{"__type": "com.amazonaws.sqs#AccessDenied"}"#)
            }
            "getqueueattributes" => {
                let [visible, hidden] = [self.visible.len(), self.hidden.len()];
                let counts = json!({"ApproximateNumberOfMessages": visible.to_string(),
                    "ApproximateNumberOfMessagesNotVisible": hidden.to_string()});
                Reply::of(200, &json!({"Attributes": counts}).to_string())
            }
            "listdeadlettersourcequeues" => {
                Reply::of(200, r#"{"queueUrls": ["https://sqs.eu-west-1.amazonaws.com/1/work"]}"#)
            }
            "sendmessage" => {
                self.sent.push(body);
                Reply::of(200, r#"{"MessageId": "m", "MD5OfMessageBody": "x"}"#)
            }
            other => panic!("{other}"),
        }
    }
}

/// A queue with these messages, and a function that replies so.
fn playing(
    messages: &[(&str, &str)],
    reply: &'static str,
) -> (FailureQueue, Lambda, Arc<Mutex<Aws>>) {
    let text = |(id, body): &(&str, &str)| ((*id).to_owned(), (*body).to_owned());
    let visible = messages.iter().map(text).collect();
    let aws = Arc::new(Mutex::new(Aws { visible, ..Aws::default() }));
    let played = Arc::clone(&aws);
    let server = serve(move |_, request| played.lock().unwrap().answer(&request, reply));
    let key = || "test".to_owned();
    let credentials = aws::Credentials {
        access_key_id: key(),
        secret_access_key: key(),
        session_token: Some("temporary".to_owned()),
    };
    let lambda = Lambda::connect(&ServiceConfig {
        region: "eu-west-1".to_owned(),
        endpoint: Some(server.url.clone()),
        credentials: credentials.clone(),
        ca_bundle: None,
    });
    let queue = FailureQueue::connect(&QueueConfig {
        url: format!("{}/1/failures", server.url),
        region: "eu-west-1".to_owned(),
        endpoint: Some(server.url.clone()),
        credentials,
        ca_bundle: None,
    });
    (queue, lambda, aws)
}

const MESSAGES: [(&str, &str); 5] = [
    ("fold", FOLD),
    ("item", LETTER),
    ("mqtt", include_str!("samples/mqtt.json")),
    ("rule", include_str!("samples/rule.json")),
    ("stream", include_str!("samples/stream.json")),
];

/// Nobody has stopped the command.
static GOES_ON: AtomicBool = AtomicBool::new(false);

fn choice(id: &[&str], kind: Option<Kind>, all: bool) -> Choice {
    Choice { id: id.iter().map(|it| (*it).to_owned()).collect(), kind, all }
}

fn all() -> Choice {
    choice(&[], None, true)
}

async fn replay(queue: &FailureQueue, lambda: Lambda, choice: Choice) -> anyhow::Result<Counts> {
    Pass::of(queue, &choice, Some(lambda), &GOES_ON).run().await
}

async fn drop_chosen(queue: &FailureQueue, choice: Choice) -> anyhow::Result<Counts> {
    Pass::of(queue, &choice, None, &GOES_ON).run().await
}

/// How many messages are visible, and how many are hidden.
fn depth(aws: &Mutex<Aws>) -> (usize, usize) {
    let aws = aws.lock().unwrap();
    (aws.visible.len(), aws.hidden.len())
}

fn of_done(done: u64, left: u64) -> Counts {
    Counts { done, left, ..Counts::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_names_every_message_and_takes_none_away() {
    let (queue, _, aws) = playing(&MESSAGES, "");
    let ListedFailures { rows, hidden } = list(&queue, &GOES_ON).await.unwrap();
    assert_eq!(hidden, 0);
    let mut kinds: Vec<String> = rows.iter().map(|row| row.message.kind.to_string()).collect();
    kinds.sort();
    assert_eq!(kinds, ["fold", "item", "mqtt", "rule", "stream"]);
    let text: Vec<String> = rows.iter().map(Received::as_text).collect();
    let expected = "fold  2026-01-11T16:00:00.000Z  fold     remo-e, the 15 minutes from";
    assert!(text[0].starts_with(expected), "{}", text[0]);
    assert!(text[1].contains("\n          the item stays in the table"), "{}", text[1]);
    assert_eq!(rows[4].as_json()["can_be_replayed"], false);
    assert_eq!(depth(&aws), (5, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_done_again_is_and_the_rest_is_given_back() {
    let (queue, lambda, aws) = playing(&MESSAGES, r#"{"accepted": 1}"#);
    let counts = replay(&queue, lambda, all()).await.unwrap();
    assert_eq!(counts, of_done(3, 2));
    let aws = aws.lock().unwrap();
    assert_eq!(aws.visible.keys().collect::<Vec<_>>(), ["item", "stream"]);
    assert_eq!(aws.sent[0]["MessageBody"], FOLD);
    assert_eq!(aws.sent[0]["QueueUrl"], "https://sqs.eu-west-1.amazonaws.com/1/work");
    let event =
        json!({"device_id": "remo-e", "timestamp": 1_768_147_200_000_i64, "data": "eyJ0IjogMX0="});
    let invoked = ("roomtide-IngestFunction-AbC".to_owned(), event);
    assert_eq!(aws.invoked, [invoked.clone(), invoked]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_again_or_is_refused_stays() {
    for reply in [
        r#"{"errorMessage": "1 readings are not stored"}"#,
        r#"{"accepted": 0, "rejected": [{"index": 0, "message": "too old"}]}"#,
        // The refused part of a message has no other copy.
        r#"{"accepted": 1, "rejected": [{"index": 1, "message": "too old"}]}"#,
        r#"{"accepted": 1, "more_rejected": [1]}"#,
        // What another function replies says nothing about readings.
        "null",
        "{}",
        "[]",
        r#"{"statusCode": 404, "body": "{\"accepted\": 1}"}"#,
    ] {
        let (queue, lambda, aws) = playing(&MESSAGES[2..3], reply);
        let counts = replay(&queue, lambda, choice(&["mqtt"], None, false)).await.unwrap();
        assert_eq!(counts, of_done(0, 1), "{reply}");
        assert_eq!(aws.lock().unwrap().visible.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_chosen_is_dropped() {
    let (queue, _, aws) = playing(&MESSAGES, "");
    assert_eq!(drop_chosen(&queue, choice(&["it"], None, false)).await.unwrap().done, 1);
    let streams = choice(&[], Some(Kind::Stream), false);
    assert_eq!(drop_chosen(&queue, streams).await.unwrap().done, 1);
    let error = drop_chosen(&queue, choice(&["none"], None, false)).await.unwrap_err().to_string();
    assert!(error.contains("`failures list`"), "{error}");
    let aws = aws.lock().unwrap();
    assert_eq!(aws.visible.keys().collect::<Vec<_>>(), ["fold", "mqtt", "rule"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_done_again_once_however_often_it_comes() {
    let mqtt = MESSAGES[2].1;
    let messages = [("a", mqtt), ("b", mqtt), ("c", mqtt), ("item", LETTER)];
    let (queue, lambda, aws) = playing(&messages, r#"{"errorMessage": "no time"}"#);
    aws.lock().unwrap().is_slow = true;
    let counts = replay(&queue, lambda, all()).await.unwrap();
    assert_eq!(counts, of_done(0, 4));
    let aws = aws.lock().unwrap();
    assert_eq!((aws.invoked.len(), aws.visible.len(), aws.hidden.len()), (3, 4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_since_the_command_began_is_left_to_the_next() {
    let (queue, _, aws) = playing(&MESSAGES, "");
    let begun = Timestamp::from_millis(1_768_147_199_999).unwrap();
    let all = all();
    let pass = Pass { begun, ..Pass::of(&queue, &all, None, &GOES_ON) };
    let counts = pass.run().await.unwrap();
    assert_eq!(counts, Counts { later: 5, ..Counts::default() });
    assert!(counts.to_string().contains("5 messages sent since the command began"), "{counts}");
    assert_eq!(counts.exit_code(), ExitCode::from(SOME_LEFT));
    assert_eq!(depth(&aws), (5, 0));

    // The clock of SQS may be ahead: what a person names is there.
    let named = choice(&["mqtt"], None, false);
    let pass = Pass { begun, ..Pass::of(&queue, &named, None, &GOES_ON) };
    assert_eq!(pass.run().await.unwrap(), of_done(1, 0));
    assert_eq!(aws.lock().unwrap().visible.len(), 4);
}

/// Messages with this text, from `message-a` to `message-y`: their ids are as long as the list shows them.
fn many(text: &'static str) -> Vec<(&'static str, &'static str)> {
    const IDS: &str = "message-a message-b message-c message-d message-e message-f message-g \
        message-h message-i message-j message-k message-l message-m message-n message-o message-p \
        message-q message-r message-s message-t message-u message-v message-w message-x message-y";
    IDS.split(' ').map(|id| (id, text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_messages_are_received_at_once_where_nothing_is_done_with_them() {
    let (queue, _, aws) = playing(&many(LETTER), "");
    let counts = drop_chosen(&queue, all()).await.unwrap();
    assert_eq!(counts, of_done(25, 0));
    assert_eq!(depth(&aws), (0, 0));
    assert_eq!(aws.lock().unwrap().asked, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_when_the_named_messages_are_done() {
    let (queue, lambda, aws) = playing(&many(FOLD), "");
    let named = || choice(&["message-b", "message-d"], None, false);
    let counts = replay(&queue, lambda, named()).await.unwrap();
    assert_eq!(counts, of_done(2, 0));
    assert_eq!(depth(&aws), (23, 0));
    assert_eq!(aws.lock().unwrap().asked, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_message_has_is_an_error_that_names_it_and_the_others_are_done() {
    let (queue, _, aws) = playing(&many(LETTER), "");
    let named = choice(&["message-b", "message-0"], None, false);
    let error = drop_chosen(&queue, named).await.unwrap_err().to_string();
    assert!(
        error.contains("the id message-0;") && error.contains("1 message done with"),
        "{error}"
    );
    assert_eq!(depth(&aws), (24, 0));
}

#[test]
fn what_is_refused_of_a_message_is_told_with_its_reasons() {
    let reply = json!({"accepted": 2, "accepted_before": 1, "more_rejected": [5, 6],
        "rejected": [{"index": 3, "message": "too old"}, {"index": 4, "message": "too old"}]});
    let refused = receipt::ensure_all_stored("ingest", &reply).unwrap_err();
    assert_eq!(refused.to_string(), "4 of 7 readings are refused: too old");
    let strange = json!({"statusCode": 404});
    let strange = receipt::ensure_all_stored("ingest", &strange).unwrap_err().to_string();
    assert_eq!(strange, r#"ingest replies {"statusCode":404}, not how many readings are stored"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_somebody_else_looks_at_are_told_and_no_success() {
    let others = ["a", "b"].map(|id| (format!("{id}, 0"), (id.to_owned(), LETTER.to_owned())));
    for visible in [&MESSAGES[..0], &MESSAGES[..1]] {
        let (queue, lambda, aws) = playing(visible, "");
        aws.lock().unwrap().hidden.extend(others.clone());
        let ListedFailures { rows, hidden } = list(&queue, &GOES_ON).await.unwrap();
        assert_eq!((rows.len(), hidden), (visible.len(), 2));

        let counts = replay(&queue, lambda, all()).await.unwrap();
        assert_eq!(counts, Counts { hidden: 2, ..of_done(visible.len() as u64, 0) });
        assert!(counts.to_string().contains("about 2 messages hidden"), "{counts}");
        assert_eq!(counts.exit_code(), ExitCode::from(SOME_LEFT));

        let named = choice(&["message-a"], None, false);
        let error = drop_chosen(&queue, named).await.unwrap_err().to_string();
        assert!(error.contains("about 2 messages hidden"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_may_not_be_counted_is_replayed_all_the_same() {
    let (queue, lambda, aws) = playing(&MESSAGES[..1], "");
    aws.lock().unwrap().is_uncounted = true;
    assert_eq!(list(&queue, &GOES_ON).await.unwrap().rows.len(), 1);
    assert_eq!(replay(&queue, lambda, all()).await.unwrap(), of_done(1, 0));
}

#[test]
fn what_was_given_back_a_moment_ago_and_is_received_is_not_hidden() {
    let depth = |visible, hidden| Depth { visible, hidden };
    for (depth, received, unseen) in [
        (depth(0, 5), 5, 0),
        (depth(0, 5), 0, 5),
        (depth(3, 5), 3, 5),
        (depth(3, 5), 7, 1),
        (depth(5, 2), 4, 2),
        (depth(0, 0), 9, 0),
    ] {
        assert_eq!(depth.unseen(received), unseen, "{depth:?} {received}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_stopped_says_what_it_did_and_gives_the_rest_back() {
    static STOPPED: AtomicBool = AtomicBool::new(false);

    let (queue, _, aws) = playing(&many(LETTER), "");
    aws.lock().unwrap().stops = Some(&STOPPED);
    let error = Pass::of(&queue, &all(), None, &STOPPED).run().await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "1 message done with and deleted, 0 in vain, the others not tried: interrupted"
    );
    let code = ExitCode::from(crate::interrupted::EXIT_CODE);
    assert_eq!(crate::interrupted::exit_code(&error), code);
    assert!(list(&queue, &STOPPED).await.is_err());
    assert_eq!(depth(&aws), (24, 0));
}

#[test]
fn a_message_is_one_line_of_the_list_whatever_is_in_it() {
    let about = "topic\nitem  2026-01-11  forged".to_owned();
    let message = FailureMessage { kind: Kind::Stream, about, replay: Replay::Fold(String::new()) };
    let row = Received { id: "message-a".to_owned(), sent: 0, message, handle: String::new() };
    assert_eq!(row.as_text().lines().count(), 1, "{}", row.as_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_given_back_keeps_no_other_hidden() {
    let (queue, _, aws) = playing(&MESSAGES, "");
    aws.lock().unwrap().stuck = Some("fold");
    assert_eq!(list(&queue, &GOES_ON).await.unwrap().rows.len(), 5);
    assert_eq!(depth(&aws), (4, 1));
}

#[test]
fn nothing_is_chosen_by_default() {
    let parse = |words: &[&str]| {
        let place = ["--queue", "https://sqs.eu-west-1.amazonaws.com/1/q"];
        parsed::<Args>(["failures"].iter().chain(words).chain(&place)).is_ok()
    };
    let [one, other] = ["message-a", "message-b"];
    assert!(!parse(&["drop"]) && !parse(&["replay"]) && !parse(&["drop", one, "--all"]));
    assert!(!parse(&["drop", "0"]), "it may name several");
    assert!(
        parse(&["drop", one, other]) && parse(&["replay", "--kind", "mqtt"]) && parse(&["list"])
    );
    assert_eq!(region_of("https://sqs.eu-west-1.amazonaws.com/1/q").as_deref(), Some("eu-west-1"));
    assert_eq!(region_of("http://127.0.0.1:4566/1/q"), None);
}
