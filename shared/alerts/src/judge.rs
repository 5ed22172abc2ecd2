//! Judges a rule on one subject: readings make the state, and the state says which messages are sent. Reads and stores
//! nothing.

use chrono::TimeDelta;
use domain::{TimeRange, Timestamp};

use crate::fold::{EpisodeChange, FiredEpisode, Fold, Observation, Phase, SilenceLimit};
use crate::message::{Message, News, next_number};
use crate::rule::{Rule, Side};
use crate::start::{ReadingsBefore, Start};
use crate::state::{Anchor, EpisodeState, ToldAlert};
use crate::{MAX_AHEAD, MAX_BACK, MAX_UNJUDGED, MAX_UNKNOWN, SETTLING};

/// The readings of a device or a room that a judgement needs.
#[derive(Debug, Clone)]
pub struct JudgedReadings {
    /// Readings from [`Start`] on, in order of time, including those ahead of the clock.
    pub readings: Vec<Observation>,
    /// The longest time between two readings of a subject that is not silent, for this rule.
    pub silent_after: TimeDelta,
    /// The pauses of the system, in order of time.
    pub pauses: Vec<TimeRange>,
    /// Whether the subject has left the rule's group. A firing alert still ends as usual, and no other message is made.
    pub has_left: bool,
}

/// A new state and its messages. Both are stored in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The state to store, also if it has not changed.
    pub state: EpisodeState,
    /// The messages, in the order of sending.
    pub messages: Vec<Message>,
}

impl Judgement {
    /// Whether another judgement of the readings agrees in messages, phase, and the phase where the next fold begins.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let phases = |state: &EpisodeState| [state.fold.phase, state.anchor.fold.phase];
        phases(&self.state) == phases(&other.state) && self.messages == other.messages
    }
}

/// Judges readings. A rule that is off or paused has a state but sends nothing. Once switched on again, the rule sends
/// what is then true.
pub fn fold_episodes(
    rule: &Rule,
    state: Option<&EpisodeState>,
    start: &Start,
    input: &JudgedReadings,
    now: Timestamp,
) -> Judgement {
    // An edit keeps the state. Only an edit that makes the rule watch another metric ends the alert.
    let (same, edited) = match state {
        Some(state) if state.changed == rule.changed => (Some(state), None),
        edited => (None, edited),
    };
    let watched = rule.watched();
    let watches_other =
        |state: &&EpisodeState| state.watched.as_ref().is_some_and(|was| *was != watched);
    let watching_other = state.filter(watches_other);

    let known = same.and_then(|state| state.silence);
    let silence = SilenceLimit { limit: input.silent_after, pauses: &input.pauses, known };

    let (all, latest) = (&input.readings, now.saturating_add(MAX_AHEAD));
    let (by_now, ahead) = all.split_at(all.partition_point(|reading| reading.at <= latest));
    let readings = start.needed(rule, by_now);

    let range = judged_range(state, start, readings, now);
    let AnchoredFold { anchor, fold, changes } =
        fold_by_anchor(rule, silence, start.fold(rule, readings), readings, &range);

    let mut maker = MessageMaker::after(state, rule, &fold, input.has_left, now);
    let watching_same = state.filter(|_| watching_other.is_none());
    let acknowledged = watching_same.and_then(|state| state.acknowledged_in(&fold, &changes));
    if rule.may_send(now) {
        if let Some(other) = watching_other {
            maker.tell_edited(other);
        }
        maker.tell_ended(&changes, range.judged_before);
        maker.tell_present(&changes, start.known_from(rule, readings), edited);
        maker.repeat(acknowledged.is_some());
    }

    let MessageMaker { told, number, messages, has_new_episode, .. } = maker;
    let links = state.map(|state| state.links.clone()).unwrap_or_default();
    let was_watched = state.and_then(|state| state.watched.clone());

    let mut state = EpisodeState {
        changed: rule.changed,
        watched: if rule.may_send(now) { Some(watched) } else { was_watched },
        silence: fold.silence(silence).or(known),
        fold,
        judged_until: range.judged_until,
        anchor,
        links: if has_new_episode { Vec::new() } else { links },
        told,
        number,
        acknowledged,
        due: None,
    };

    state.due = due(rule, &state, silence, ahead, now);
    Judgement { state, messages }
}

/// The instants that bound a judgement.
struct JudgedRange {
    /// The time of the newest reading of earlier judgements.
    judged_before: Option<Timestamp>,
    /// The time of the newest reading of this and of earlier judgements.
    judged_until: Option<Timestamp>,
    /// Where the next judgement begins: an hour before `judged_until`, or at the start of this fold if that is later.
    anchor_at: Timestamp,
    /// The end of the fold: now, or the newest reading if it is ahead of the clock.
    to: Timestamp,
}

fn judged_range(
    state: Option<&EpisodeState>,
    start: &Start,
    readings: &[Observation],
    now: Timestamp,
) -> JudgedRange {
    let latest = now.saturating_add(MAX_AHEAD);
    let newest = readings.last().map(|reading| reading.at);
    let judged_before = state.and_then(|state| state.judged_until).map(|at| at.min(latest));
    let judged_until = newest.max(judged_before);
    let anchor_at = judged_until.map_or(start.from, |at| at.saturating_add(-SETTLING));
    let to = newest.map_or(now, |at| at.max(now));
    JudgedRange { judged_before, judged_until, anchor_at: anchor_at.max(start.from), to }
}

/// The fold over all readings, and as it was at the anchor, where the next judgement begins.
struct AnchoredFold {
    anchor: Anchor,
    fold: Fold,
    changes: Vec<EpisodeChange>,
}

/// Folds readings up to the end of the range. Also returns the fold as it was at the anchor.
fn fold_by_anchor(
    rule: &Rule,
    silence: SilenceLimit<'_>,
    mut fold: Fold,
    readings: &[Observation],
    range: &JudgedRange,
) -> AnchoredFold {
    let mut changes = Vec::new();
    let is_before = |reading: &Observation| reading.at <= range.anchor_at;
    let (before_anchor, after_anchor) = readings.split_at(readings.partition_point(is_before));
    fold.run(rule, silence, before_anchor, range.anchor_at, &mut changes);
    let anchor = Anchor { at: range.anchor_at, fold: fold.clone() };
    fold.run(rule, silence, after_anchor, range.to, &mut changes);
    AnchoredFold { anchor, fold, changes }
}

/// The message that ends an alert whose rule was edited to watch something else.
pub fn ended_by_edit(state: &EpisodeState, now: Timestamp) -> Message {
    let told = state.told.episode().unwrap_or(FiredEpisode { since: now, at: now });
    Message {
        number: next_number(state.number, now),
        news: News::Edited,
        since: told.since,
        fired: told.at,
        ended: None,
        value: state.fold.value.clone(),
        seen: state.fold.seen,
        is_silent: state.fold.is_silent,
    }
}

/// Whether the first decisive one of some observations is beyond a limit.
pub fn begins_in_breach(rule: &Rule, observations: &[Observation]) -> bool {
    let mut sides = observations.iter().filter_map(|each| rule.side(each.value.as_ref()));
    sides.find(|side| *side != Side::Between) == Some(Side::Breach)
}

/// Whether a batch of one device, in order of time, certainly changes no state, so that no reading has to be read.
///
/// A batch changes no state if the state is at rest and every value is within the clearing limit. Not skipped are:
///
/// - A value between the clearing limit and the limit. It could prolong an earlier breach.
/// - A reading without a value, unless it is newer than all judged readings. It may have replaced the reading that ended
///   a breach, or the device may have come into the rule's group in a breach.
/// - Late readings of the last day, as of a gateway that was offline for hours. They may show a breach that still lasts.
/// - An older batch that may correct the cause of an alert that fires.
pub fn can_be_skipped(
    rule: &Rule,
    state: Option<&EpisodeState>,
    batch: &[Observation],
    now: Timestamp,
) -> bool {
    let Some(newest) = batch.last().map(|newest| newest.at) else { return true };
    if newest < now.saturating_add(-MAX_BACK) {
        let episode = state.and_then(|state| state.fold.phase.fired_episode());
        return episode.is_none_or(|episode| newest < episode.since);
    }

    let is_at_rest = state.is_none_or(|state| state.due.is_none() && state.changed == rule.changed);
    let judged_until = state.and_then(|state| state.judged_until);
    let changes_nothing = |reading: &Observation| match rule.side(reading.value.as_ref()) {
        Some(side) => side == Side::Clear,
        None => judged_until.is_some_and(|until| reading.at > until),
    };
    is_at_rest && batch.iter().all(changes_nothing)
}

impl Start {
    /// The readings from the start on, and those before that the start needs.
    fn needed<'a>(&self, rule: &Rule, readings: &'a [Observation]) -> &'a [Observation] {
        let start = readings.partition_point(|reading| reading.at <= self.from);
        let first = match self.before() {
            ReadingsBefore::None => start,
            ReadingsBefore::Newest => start.saturating_sub(1),
            ReadingsBefore::Decisive => {
                let is_decisive = |reading: &Observation| rule.is_decisive(reading.value.as_ref());
                readings[..start].iter().rposition(is_decisive).unwrap_or(0)
            }
        };
        &readings[first..]
    }

    /// From when on the phase is known: from the start, or from the decisive reading before it; `None` without one.
    fn known_from(&self, rule: &Rule, readings: &[Observation]) -> Option<Timestamp> {
        if self.before() != ReadingsBefore::Decisive {
            return Some(self.from);
        }
        let first = readings.first().filter(|first| first.at <= self.from)?;
        rule.is_decisive(first.value.as_ref()).then_some(first.at)
    }

    /// The fold at the start. Where decisive readings show the phase, the episode of the state goes on only if the
    /// first of these readings is in breach. If none was found, [`keeps_phase`](Self::keeps_phase) decides.
    fn fold(&self, rule: &Rule, readings: &[Observation]) -> Fold {
        let first = readings.first().filter(|first| first.at <= self.from);
        let goes_on = match first.and_then(|first| rule.side(first.value.as_ref())) {
            Some(Side::Breach) => true,
            Some(Side::Clear) => false,
            Some(Side::Between) | None => self.keeps_phase(),
        };
        if self.before() == ReadingsBefore::Decisive && !goes_on {
            return Fold::normal(self.from);
        }
        self.fold.clone()
    }
}

impl Fold {
    /// Adds all observations in order, and advances the fold to `to`.
    pub(crate) fn run(
        &mut self,
        rule: &Rule,
        silence: SilenceLimit<'_>,
        observations: &[Observation],
        to: Timestamp,
        changes: &mut Vec<EpisodeChange>,
    ) {
        for observation in observations {
            self.advance(rule, silence, observation.at, changes);
            self.take(rule, observation);
        }
        self.advance(rule, silence, to, changes);
    }
}

/// How an episode ended, and when, if that is known.
struct EpisodeEnd {
    news: News,
    ended: Option<Timestamp>,
}

/// Collects messages in order of time, so that each recovery follows the message of its alert.
struct MessageMaker<'a> {
    rule: &'a Rule,
    /// The fold over all readings.
    fold: &'a Fold,
    has_left: bool,
    now: Timestamp,
    told: ToldAlert,
    number: u64,
    messages: Vec<Message>,
    /// Whether an episode has begun or ended, so that the links to the episode before acknowledge nothing.
    has_new_episode: bool,
}

impl<'a> MessageMaker<'a> {
    /// Goes on after the last message of the state before.
    fn after(
        before: Option<&EpisodeState>,
        rule: &'a Rule,
        fold: &'a Fold,
        has_left: bool,
        now: Timestamp,
    ) -> Self {
        let told = before.map(|before| before.told.clone()).unwrap_or_default();
        let number = before.map_or(0, |before| before.number);
        let (messages, has_new_episode) = (Vec::new(), false);
        Self { rule, fold, has_left, now, told, number, messages, has_new_episode }
    }

    /// Ends the alert that was told before an edit, if the edit made the rule watch something else.
    fn tell_edited(&mut self, before: &EpisodeState) {
        if self.told.is_firing {
            // The value is of the metric that the rule no longer watches.
            let message = Message { value: None, ..ended_by_edit(before, self.now) };
            (self.told.is_firing, self.number) = (false, message.number);
            self.has_new_episode = true;
            self.messages.push(message);
        }
    }

    /// Makes messages about episodes that have ended since the last judgement. [`tell_present`](Self::tell_present)
    /// makes the message about an episode that fires now.
    fn tell_ended(&mut self, changes: &[EpisodeChange], judged_before: Option<Timestamp>) {
        // An episode that ended over an hour ago, or before the rule was saved, has passed without a message. A time of
        // saving ahead of the clock is ignored.
        let saved =
            Some(self.rule.changed).filter(|saved| *saved <= self.now.saturating_add(MAX_AHEAD));
        let oldest = saved.max(Some(self.now.saturating_add(-SETTLING)));

        // Found before the first message is made, because each message changes what was told.
        let is_news = |change: &&EpisodeChange| self.is_news(change, judged_before);
        let news: Vec<_> = changes.iter().filter(is_news).collect();

        for change in news {
            if self.told.is_firing {
                self.tell(News::Recovered, change.episode, change.ended);
            } else if change.ended >= oldest {
                self.tell(News::Passed, change.episode, change.ended);
            }
        }
    }

    /// Whether an episode has ended after the last judgement and after the last message. An episode may fire and end at
    /// one instant. If its firing was told, that instant is `told.until`, and its end is still news.
    fn is_news(&self, change: &EpisodeChange, judged_before: Option<Timestamp>) -> bool {
        let told_until = self.told.until.map(|at| at.min(self.now.saturating_add(MAX_AHEAD)));
        // An episode that fires has no end: `None` is never greater, so it is no news here.
        change.ended > judged_before
            && (change.ended > told_until || self.told.is_firing && change.ended == told_until)
    }

    /// Makes a message if the present phase differs from what the last message said. `known_from` is the time from
    /// which readings or the state show the phase.
    fn tell_present(
        &mut self,
        changes: &[EpisodeChange],
        known_from: Option<Timestamp>,
        edited: Option<&EpisodeState>,
    ) {
        match (self.told.is_firing, self.fold.phase.fired_episode()) {
            (false, Some(episode)) => self.tell(News::Fired, episode, None),
            (true, None) => {
                let EpisodeEnd { news, ended } =
                    self.end_of_told_episode(changes, known_from, edited);
                let now = FiredEpisode { since: self.now, at: self.now };
                self.tell(news, self.told.episode().unwrap_or(now), ended);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// The end of the episode that the last message was about. `edited` is the state by the rule before an edit. If
    /// this state still fires, the edit has ended the alert.
    fn end_of_told_episode(
        &self,
        changes: &[EpisodeChange],
        known_from: Option<Timestamp>,
        edited: Option<&EpisodeState>,
    ) -> EpisodeEnd {
        if edited.is_some_and(EpisodeState::is_firing) {
            return EpisodeEnd { news: News::Edited, ended: None };
        }

        // Late readings may have moved the begin and the end of the told episode.
        let told = self.told.episode();
        let overlaps_told = |change: &&EpisodeChange| {
            let (begun, ended) = (change.episode.since, change.ended);
            told.is_some_and(|told| begun <= told.at && ended.is_some_and(|end| end >= told.since))
        };
        let begins_before_known =
            |at: Timestamp| known_from.is_some_and(|known_from| at <= known_from);

        match changes.iter().rev().find(overlaps_told) {
            Some(change) => EpisodeEnd { news: News::Recovered, ended: change.ended },
            None if edited.is_some() => EpisodeEnd { news: News::Edited, ended: None },
            // The told episode began before the time that this fold knows, so no reading shows that it never was.
            None if told.is_none_or(|told| begins_before_known(told.since)) => {
                let ended = match self.fold.phase {
                    Phase::Normal { from } => known_from.min(Some(from)),
                    _ => None,
                };
                EpisodeEnd { news: News::Recovered, ended }
            }
            None => EpisodeEnd { news: News::TakenBack, ended: None },
        }
    }

    fn repeat(&mut self, is_acknowledged: bool) {
        let at = next_repeat(self.rule, &self.told, is_acknowledged, self.now);
        let (Some(at), Some(episode)) = (at, self.fold.phase.fired_episode()) else {
            return;
        };
        if at <= self.now {
            self.tell(News::Repeated, episode, None);
        }
    }

    /// Notes the news in `told`, and makes a message of the news. A recovery that the rule does not send is only noted.
    fn tell(&mut self, news: News, episode: FiredEpisode, ended: Option<Timestamp>) {
        if self.has_left && (news.is_firing() || !self.told.is_firing) {
            return;
        }

        self.has_new_episode |= news != News::Repeated;
        self.told = ToldAlert {
            is_firing: news.is_firing(),
            since: Some(episode.since),
            fired: Some(episode.at),
            until: self.told.until.max(ended.or(Some(episode.at))),
            told_at: Some(self.now),
        };
        if news == News::Recovered && !self.rule.sends_recovery {
            return;
        }

        self.number = next_number(self.number, self.now);
        self.messages.push(Message {
            number: self.number,
            news,
            since: episode.since,
            fired: episode.at,
            ended,
            value: self.fold.value.clone(),
            seen: self.fold.seen,
            is_silent: self.fold.is_silent,
        });
    }
}

/// When the message of a firing alert is repeated. If the last message has a time ahead of the clock, the repetition
/// counts from now.
fn next_repeat(
    rule: &Rule,
    told: &ToldAlert,
    is_acknowledged: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    let every = rule.repeat.filter(|_| told.is_firing && !is_acknowledged)?;
    Some(told.told_at?.min(now).saturating_add(every))
}

/// When the state is judged again. `None` if the state has been normal for an hour, without a message.
///
/// If a pause of the rule holds an alert back, the state is judged again soon, because a person may end the pause.
fn due(
    rule: &Rule,
    state: &EpisodeState,
    silence: SilenceLimit<'_>,
    ahead: &[Observation],
    now: Timestamp,
) -> Option<Timestamp> {
    if let Phase::Normal { from } = state.fold.phase
        && state.told.told_at.is_none_or(|at| at.saturating_add(SETTLING) <= now)
        && from.saturating_add(SETTLING) <= now
        && !state.told.is_firing
        && ahead.iter().all(|reading| rule.is_clear(reading.value.as_ref()))
    {
        return None;
    }

    let pause = rule.paused_until.filter(|until| *until > now);
    let is_held_back = state.is_firing() != state.told.is_firing;
    let next = [
        state.fold.due(rule, silence).filter(|at| *at > now),
        next_repeat(rule, &state.told, state.acknowledged.is_some(), now).filter(|at| *at > now),
        pause,
        pause.filter(|_| is_held_back).map(|_| now.saturating_add(MAX_UNKNOWN)),
        ahead.first().map(|reading| reading.at.saturating_add(-MAX_AHEAD)),
    ];
    let latest = now.saturating_add(MAX_UNJUDGED);
    Some(next.into_iter().flatten().fold(latest, Timestamp::min))
}

#[cfg(test)]
mod tests;
