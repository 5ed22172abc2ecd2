//! The function on a store in memory, with a receiver that answers as it is told. Only `servers` opens connections.

mod failing;
mod restarts;
mod sending;
mod servers;
mod storm;
mod throttled;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::sending::{SendRequest, Unanswered};
use alerts::{Email, FigureState, Message, News, Phase, Rule};
use chrono::TimeDelta;
use domain::{Reading, RuleId, Timestamp};
use outgoing::{Answer, Request, Url};
use runtime::clock::{Deadline, TestClock};
use runtime::telemetry::Telemetry;
use serde_json::{Value, json};
pub(crate) use table::given::at;
use table::given::{self, invocation};
use table::memory_db::MemoryDb;
use table::{
    AlertKey, AlertState, ChannelSecret, EditAlertRules as _, EditChannels as _, JudgementOutcome,
    NewJudgement, NoteRechecks as _, PutJudgements as _, PutTestMessages as _, ReadAlertRules,
    ReadRechecks as _, Recheck, Rechecked, StoredAlertState, StoredChannel, StoredRule,
    WaitingMessage,
};

use crate::{Alerting, Carrier, Event, Failure, NoEmail, Settings};

/// What a receiver does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// It answers with a status.
    Status(u16),
    /// It answers with a status and asks for a pause, in seconds.
    After(u16, u64),
    /// It takes the request, and its answer is lost.
    Lost,
    /// It answers 413 to a body that is longer than this, and takes others.
    Shorter(usize),
}

/// A receiver of messages: it keeps the requests, and answers 200 where it is told nothing else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receiver {
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    ids: Arc<Mutex<Vec<String>>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

impl Receiver {
    pub(crate) fn will(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().expect("no panic").extend(replies);
    }

    /// From now on it takes everything.
    pub(crate) fn recover(&self) {
        self.replies.lock().expect("no panic").clear();
    }

    /// The requests so far: the host and the body of each.
    pub(crate) fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }

    /// The ids of the requests so far, by which a receiver knows one that it has.
    pub(crate) fn take_ids(&self) -> Vec<String> {
        std::mem::take(&mut *self.ids.lock().expect("no panic"))
    }

    /// The bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.take().into_iter().map(|(_, body)| body).collect()
    }
}

impl SendRequest for Receiver {
    fn send(&self, request: &Request) -> Result<Answer, Unanswered> {
        let host = request.uri().host().expect("a host").to_owned();
        let body = serde_json::from_str(request.body()).unwrap_or_default();
        self.requests.lock().expect("no panic").push((host, body));
        let id = request.headers().iter().find(|(name, _)| *name == "webhook-id");
        self.ids.lock().expect("no panic").extend(id.map(|(_, id)| id.clone()));
        let reply = self.replies.lock().expect("no panic").pop_front();
        let (status, retry_after) = match reply {
            Some(Reply::Shorter(most)) if request.body().len() > most => (413, None),
            None | Some(Reply::Shorter(_)) => (200, None),
            Some(Reply::Status(status)) => (status, None),
            Some(Reply::After(status, seconds)) => (status, Some(seconds.to_string())),
            Some(Reply::Lost) => panic!("its answer is lost"),
        };
        Ok(Answer { status, retry_after, text: String::new() })
    }
}

/// The function, its table, its clock and its receiver.
pub(crate) struct World {
    pub(crate) store: MemoryDb,
    pub(crate) clock: TestClock,
    pub(crate) receiver: Receiver,
    alerting: Alerting<MemoryDb, TestClock>,
    lines: Arc<Mutex<Vec<String>>>,
}

pub(crate) const NOON: &str = "2026-01-11T12:00:00Z";
pub(crate) const QUIET_END: &str = "2026-01-11T13:00:00Z";

impl World {
    pub(crate) fn new() -> Self {
        Self::with_heartbeat(None)
    }

    /// With a channel `a` and a rule `r`.
    pub(crate) async fn with_rule() -> (Self, StoredRule) {
        let world = Self::new();
        world.channel("a", None).await;
        let rule = world.rule("r", false).await;
        (world, rule)
    }

    /// The same with a rule that can storm.
    pub(crate) async fn with_rule_on_each() -> (Self, StoredRule) {
        let world = Self::new();
        world.channel("a", None).await;
        let rule = world.rule_on_each("r").await;
        (world, rule)
    }

    /// The same, and the rule fires on the freezer.
    pub(crate) async fn that_fires() -> (Self, StoredRule) {
        let (world, rule) = Self::with_rule().await;
        world.tell(&rule, "freezer", News::Fired, &[("a", Timestamp::MIN)]).await;
        (world, rule)
    }

    /// The same with a channel that is quiet now, and until [`QUIET_END`].
    pub(crate) async fn with_quiet_hours() -> (Self, StoredRule) {
        let world = Self::new();
        world.channel("a", Some("11:00-13:00")).await;
        let rule = world.rule("r", false).await;
        (world, rule)
    }

    pub(crate) fn with_heartbeat(heartbeat: Option<Url>) -> Self {
        let receiver = Receiver::default();
        Self::with(receiver.clone(), receiver, heartbeat)
    }

    pub(crate) fn with(
        http: impl SendRequest + 'static,
        receiver: Receiver,
        heartbeat: Option<Url>,
    ) -> Self {
        let (store, clock) = (MemoryDb::default(), TestClock::at(at(NOON)));
        Self::on(store, clock, http, receiver, heartbeat)
    }

    /// Another process on the same table, with the same clock and receiver.
    pub(crate) fn another(&self) -> Self {
        let Self { store, clock, receiver, .. } = self;
        Self::on(store.clone(), clock.clone(), receiver.clone(), receiver.clone(), None)
    }

    fn on(
        store: MemoryDb,
        clock: TestClock,
        http: impl SendRequest + 'static,
        receiver: Receiver,
        heartbeat: Option<Url>,
    ) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let telemetry = Telemetry::to(Arc::new(move |line| {
            sink.lock().expect("no panic").push(line.to_owned());
        }));
        let page_url = "https://page.example.org/".to_owned();
        let settings = Settings { page_url, heartbeat };
        let carrier = Carrier::new(http, NoEmail);
        let permitted = store.for_role(<MemoryDb as crate::Store>::PERMISSIONS);
        let alerting = Alerting::new(permitted, carrier, clock.clone(), telemetry, settings);
        Self { store, clock, receiver, alerting, lines }
    }

    /// The function is invoked by its schedule: it judges and sends.
    pub(crate) async fn scheduled(&self) -> Result<(), Failure> {
        self.scheduled_within(Duration::from_secs(50)).await
    }

    /// The function is invoked by its schedule, with so much time.
    pub(crate) async fn scheduled_within(&self, time: Duration) -> Result<(), Failure> {
        self.alerting.handle(Event::Schedule, Deadline::after(time)).await
    }

    /// The function is invoked by a hint: it sends.
    pub(crate) async fn minute(&self) -> Result<(), Failure> {
        self.hinted_within(Duration::from_secs(50)).await
    }

    /// The function is invoked by a hint, with so much time.
    pub(crate) async fn hinted_within(&self, time: Duration) -> Result<(), Failure> {
        self.alerting.handle(Event::Hint, Deadline::after(time)).await
    }

    /// A hint comes each minute for a time.
    pub(crate) async fn minutes(&self, minutes: i64) {
        for _ in 0..minutes {
            self.pass(TimeDelta::minutes(1));
            self.minute().await.expect("done");
        }
    }

    /// A hint comes after a time.
    pub(crate) async fn minute_after(&self, time: TimeDelta) {
        self.pass(time);
        self.minute().await.expect("done");
    }

    pub(crate) fn pass(&self, time: TimeDelta) {
        self.clock.advance(time.to_std().expect("forward"));
    }

    pub(crate) fn now(&self) -> Timestamp {
        runtime::clock::Clock::now(&self.clock)
    }

    /// The newest line of the log.
    pub(crate) fn line(&self) -> Value {
        let lines = self.lines.lock().expect("no panic");
        serde_json::from_str(lines.last().expect("a line")).expect("JSON")
    }

    /// A webhook at a host of its own name.
    pub(crate) async fn channel(&self, id: &str, quiet_hours: Option<&str>) {
        self.channel_at(id, &format!("https://{id}.example.org/geheim"), quiet_hours).await;
    }

    pub(crate) async fn channel_at(&self, id: &str, address: &str, quiet_hours: Option<&str>) {
        let secret = json!({
            "kind": "webhook", "address": address,
            "key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        });
        let secret = ChannelSecret(secret.as_object().expect("an object").clone());
        let quiet_hours = quiet_hours.map(|it| it.parse().expect("quiet hours"));
        let channel = StoredChannel { quiet_hours, ..given::channel(id) };
        self.put_channel(&channel, Some(&secret)).await;
    }

    pub(crate) async fn put_channel(
        &self,
        channel: &StoredChannel,
        secret: Option<&ChannelSecret>,
    ) {
        assert!(self.store.put_channel(channel, secret, &invocation()).await.expect("asked"));
    }

    pub(crate) async fn rule(&self, id: &str, ignores_quiet_hours: bool) -> StoredRule {
        let members = json!({
            "name": "Warm", "device": "freezer", "metric": "temperature", "above": 8,
            "ignores_quiet_hours": ignores_quiet_hours,
        });
        self.put_rule(id, members).await
    }

    /// A rule on each device of a kind: it can storm.
    pub(crate) async fn rule_on_each(&self, id: &str) -> StoredRule {
        let members = json!({"name": "Warm", "kind": "k", "metric": "temperature", "above": 8});
        self.put_rule(id, members).await
    }

    pub(crate) async fn put_rule(&self, id: &str, members: Value) -> StoredRule {
        let rule = Rule::from_json(members, at(NOON)).expect("a rule");
        let rule = StoredRule { id: id.parse().expect("an id"), version: 1, definition: rule };
        assert!(self.store.put_alert_rule(&rule, &invocation()).await.expect("asked"));
        rule
    }

    /// A rule that was put before.
    pub(crate) async fn stored_rule(&self, id: &str) -> StoredRule {
        let id: RuleId = id.parse().expect("an id");
        let found = ReadAlertRules::alert_rule(&self.store, &id, &invocation()).await;
        found.expect("read").expect("a rule")
    }

    /// A rule is saved anew.
    pub(crate) async fn edit_rule(&self, known: &StoredRule, edit: impl FnOnce(&mut Rule)) {
        let mut next = StoredRule { version: known.version + 1, ..known.clone() };
        edit(&mut next.definition);
        assert!(self.store.put_alert_rule(&next, &invocation()).await.expect("asked"));
    }

    pub(crate) async fn delete_rule(&self, id: &str) {
        let id: RuleId = id.parse().expect("an id");
        assert!(self.store.delete_alert_rule(&id, &invocation()).await.expect("asked"));
    }

    /// A judgement of a device is stored, with its message for channels, from a time on.
    pub(crate) async fn tell(
        &self,
        rule: &StoredRule,
        device: &str,
        news: News,
        channels: &[(&str, Timestamp)],
    ) {
        let key: AlertKey = given::alert_key(rule.id.as_str(), device);
        let known = self.store.stored_alert_state(&key);
        let mut state = given::firing(rule.id.as_str(), device);
        let AlertState::Episodes(episodes) = &mut state.state else { panic!("episodes") };
        let number = known.as_ref().map_or(1, |it| it.version + 1);
        let mut message = given::message(number, news);
        (message.since, message.fired, message.ended) = (self.now(), self.now(), None);
        episodes.number = number;
        episodes.told.is_firing = news.is_firing();
        episodes.told.since = Some(self.now());
        let state = StoredAlertState::next(known.as_ref(), key, state.state, self.now());
        self.put_judgement(rule, state, message, channels).await;
    }

    /// A rule fires on devices, and channel `a` may tell it from a time on.
    pub(crate) async fn storm(&self, rule: &StoredRule, devices: Range<usize>, next: Timestamp) {
        for device in devices {
            self.tell(rule, &format!("d{device:03}"), News::Fired, &[("a", next)]).await;
        }
    }

    /// Readings are stored, and each leaves a recheck of its device.
    pub(crate) async fn measured(&self, readings: &[Reading]) {
        given::store_home(&self.store, readings).await;
        let touched: Vec<_> =
            readings.iter().map(|reading| (reading.device.clone().into(), reading.at)).collect();
        self.recheck(&touched).await;
    }

    pub(crate) async fn recheck(&self, touched: &[(Rechecked, Timestamp)]) {
        assert!(self.store.note_rechecks(touched, &invocation()).await.cause.is_none());
    }

    /// The rechecks that are left.
    pub(crate) async fn rechecks(&self) -> Vec<Recheck> {
        self.store.rechecks(None, 99, &invocation()).await.expect("read").listing.found
    }

    /// The alert of a device is over, and nobody is told.
    pub(crate) async fn end_silently(&self, device: &str) {
        let states = self.store.all_alert_states();
        let known =
            states.iter().find(|known| known.key.subject.to_string() == format!("device:{device}"));
        let known = known.expect("a state");
        let AlertState::Episodes(mut episodes) = known.state.clone() else { panic!("episodes") };
        let rule = self.stored_rule(known.key.rule.as_str()).await;
        episodes.fold.phase = Phase::Normal { from: self.now() };
        // A pause leaves it as it was told.
        episodes.told.is_firing = !rule.definition.may_send(self.now());
        let over = AlertState::Episodes(episodes);
        let next = StoredAlertState::next(Some(known), known.key.clone(), over, self.now());
        let judgement = NewJudgement::new(&rule, next, Vec::new(), &[], self.now());
        let put = self.store.put_judgement(&judgement, &invocation()).await.expect("asked");
        assert_eq!(put, JudgementOutcome::Stored);
    }

    /// A step of a counter is judged, and stored as [`tell`](Self::tell) does.
    pub(crate) async fn tell_step(
        &self,
        rule: &StoredRule,
        device: &str,
        channels: &[(&str, Timestamp)],
    ) {
        let key: AlertKey = given::alert_key(rule.id.as_str(), device);
        let known = self.store.stored_alert_state(&key);
        let number = known.as_ref().map_or(1, |state| state.version + 1);
        let mut message = given::message(number, News::Fired);
        (message.since, message.fired, message.ended) = (self.now(), self.now(), None);
        let told = [(self.now(), number)].into();
        let once = AlertState::Figures(FigureState {
            told,
            number,
            changed: Some(rule.definition.changed),
            per: None,
        });
        let state = StoredAlertState::next(known.as_ref(), key, once, self.now());
        self.put_judgement(rule, state, message, channels).await;
    }

    async fn put_judgement(
        &self,
        rule: &StoredRule,
        state: StoredAlertState,
        message: Message,
        channels: &[(&str, Timestamp)],
    ) {
        let channels: Vec<_> =
            channels.iter().map(|(id, next)| (given::channel_id(id), *next)).collect();
        let judgement = NewJudgement::new(rule, state, vec![message], &channels, self.now());
        let put = self.store.put_judgement(&judgement, &invocation()).await.expect("asked");
        assert_eq!(put, JudgementOutcome::Stored);
    }

    /// Somebody tests a channel.
    pub(crate) async fn test_channel(&self, id: &str) {
        let name = "Roomtide".parse().expect("a name");
        let message = WaitingMessage::test(given::channel_id(id), name, self.now());
        assert!(self.store.put_test_message(&message, &invocation()).await.expect("asked"));
    }

    /// The state of a channel.
    pub(crate) async fn stored(&self, id: &str) -> StoredChannel {
        let channels = table::ReadChannels::channels(&self.store, &invocation()).await;
        let found = channels.expect("read").found.into_iter().find(|it| it.id.as_str() == id);
        found.expect("a channel")
    }
}

/// No test sends an e-mail.
#[tokio::test]
async fn a_system_that_is_not_deployed_says_that_it_sends_no_email() {
    let email = Email {
        topic_arn: "arn:aws:sns:eu-central-1:123456789012:geheim".to_owned(),
        subject: "s".to_owned(),
        text: "t".to_owned(),
    };
    let error = crate::PublishEmail::publish(&NoEmail, &email).await.expect_err("not deployed");
    assert!(error.is_lasting && error.to_string().contains("for a deployed server only"));
}
