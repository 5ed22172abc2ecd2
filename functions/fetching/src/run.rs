//! One run of one source: claims it, makes its requests, delivers the answers, notes the result. A kill at any step
//! loses nothing that the maker still has.

use std::time::Duration;

use futures_util::future::join_all;
use polling::{
    FailurePause, PolledSource, Portion, Question, RunReport, SourceState, SourceStatus,
    TimeWindow, schedule,
};
use runtime::clock::{Clock, Deadline};
use table::{Session, StoreResult, StoredSource};
use tokio::time::{sleep, timeout};

use crate::ask::{Answered, Errand};
use crate::deliver::Delivering;
use crate::report::SourceRun;
use crate::{Fetching, Store};

/// The longest time for the requests of one source. The wait until the run's time slot does not count.
const TIME_OF_SOURCE: Duration = Duration::from_secs(40);
/// The maximum number of requests that are made at once for one source.
const AT_ONCE: usize = 4;

/// The source of a run.
#[derive(Clone, Copy)]
struct SourceWork<'a> {
    stored: &'a StoredSource,
    source: &'a PolledSource,
    status: &'a SourceStatus,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Runs a due source, unless another process has claimed it.
    pub(crate) async fn run(&self, session: Session<'_, S>, stored: &StoredSource) -> SourceRun {
        match Box::pin(self.claim_and_run(session, stored)).await {
            Ok(run) => run,
            Err(error) => SourceRun::failed(&stored.id, &runtime::telemetry::chain(&error)),
        }
    }

    async fn claim_and_run(
        &self,
        session: Session<'_, S>,
        stored: &StoredSource,
    ) -> StoreResult<SourceRun> {
        let now = session.now;
        let Ok(source) = stored.source() else {
            return Ok(SourceRun::failed(&stored.id, "its settings cannot be read"));
        };

        // The requests are chosen before the run is claimed, because the claim counts them.
        let mut status = stored.status.clone().of_question(source.question());
        let questions = source.questions(&status, now);
        let requests = u32::try_from(questions.len()).unwrap_or(u32::MAX);

        let (budget, maker_now) = (source.budget(), status.maker_now(now));
        let known = stored.spent.at(budget, maker_now);
        let spent = known.with(requests, budget, maker_now);
        let lease = Some(now.saturating_add(schedule::LEASE));

        let begun = session.begin_source_run(stored, spent.unwrap_or(known), lease).await?;
        let Some(claimed) = begun else { return Ok(SourceRun::default()) };

        let mut run = SourceRun { asked: 1, ..SourceRun::default() };
        let report = match spent {
            Ok(_) => {
                let work = SourceWork { stored: &claimed, source: &source, status: &status };
                self.wait_and_ask(session, work, &questions, &mut run).await?
            }
            Err(until) => {
                let title = source.kind.title;
                let why = format!("{title} was asked as often as it may be in this time");
                RunReport { limited: Some((until, why)), ..RunReport::default() }
            }
        };

        let devices = report.listed.as_ref().or(status.listed.as_ref());
        let every = source.every(devices.map_or(0, |listed| listed.devices.len()));
        let ended = self.clock.now();
        // The next time slot is after the slot of this run, even if the clock was set back meanwhile. A slot that is
        // far ahead was stored by a wrong clock, and does not count.
        let this_slot = claimed.next.min(now.saturating_add(schedule::CLAIM_AHEAD));
        let slot = schedule::next_slot(&claimed.id, every, ended.max(this_slot));

        let next = status.note(report, slot, every, ended);
        self.tell_failing(session, &claimed, &source, &mut status).await;
        if status.error.is_some() && status.state(ended) != SourceState::Ok {
            run.failing.push(claimed.id.to_string());
        }

        if !session.end_source_run(&claimed, next, &status).await? {
            // A person saved or deleted the source meanwhile, or the run has lost its lease.
            run.failures.push(format!("{}: was changed while it was asked", claimed.id));
        }
        Ok(run)
    }

    /// Waits for the run's time slot, reads the secrets, and makes the requests.
    async fn wait_and_ask(
        &self,
        session: Session<'_, S>,
        SourceWork { stored, source, status }: SourceWork<'_>,
        questions: &[Question],
        run: &mut SourceRun,
    ) -> StoreResult<RunReport> {
        let ahead = stored.next.since(session.now).min(schedule::CLAIM_AHEAD);
        sleep(ahead.to_std().unwrap_or_default()).await;

        let secrets = session.source_secrets(&stored.id).await?;
        let secrets = secrets.map(|stored| stored.of(source)).unwrap_or_default();
        if let Err(why) = source.check_secrets(&secrets) {
            let failing = Some((why.to_string(), FailurePause::Mend));
            return Ok(RunReport { failing, ..RunReport::default() });
        }

        let at = self.clock.now();
        let history = source.history();
        let window = history.map_or(TimeWindow::moment(at), |history| {
            history.at(status.position, source.since, at)
        });
        let deadline = Deadline::after(TIME_OF_SOURCE.min(session.invocation.remaining()));
        let run_id = stored.run.to_string();
        let to = Delivering { id: &stored.id, source, run: run_id, at, is_dry: false, deadline };
        let errand = Errand { to, secrets: &secrets, status, window };

        let mut report = RunReport::default();
        let asking = Box::pin(self.ask_all(&errand, questions, run, &mut report));
        if timeout(deadline.remaining(), asking).await.is_err() {
            let why = format!("{} has not answered within 40 seconds", source.kind.title);
            report.failing.get_or_insert((why, FailurePause::Transient));
            return Ok(report);
        }

        let is_whole = report.failing.is_none() && report.limited.is_none();
        if history.is_some() && is_whole {
            report.position = Some(window.position());
            report.is_behind = window.is_behind();
        }
        Ok(report)
    }

    /// Makes the requests, some at once, until the maker sets a limit. Their answers are stored before the next
    /// requests are made.
    async fn ask_all(
        &self,
        errand: &Errand<'_>,
        questions: &[Question],
        run: &mut SourceRun,
        report: &mut RunReport,
    ) {
        for some in questions.chunks(AT_ONCE) {
            let requests = some.iter().map(|question| Box::pin(self.ask(errand, question)));
            let answers = join_all(requests).await;

            run.requests += answers.len();
            for (question, answered) in some.iter().zip(answers) {
                run.accepted += answered.delivered.accepted;
                note_round(question, &answered, errand.status, report);
                note_answer(answered, report);
            }
            if report.limited.is_some() {
                return;
            }
        }
    }

    /// Stores the metric `failing` of the device `source:<id>`, which rules of alerts can watch.
    async fn tell_failing(
        &self,
        session: Session<'_, S>,
        claimed: &StoredSource,
        source: &PolledSource,
        status: &mut SourceStatus,
    ) {
        let at = self.clock.now();
        let Some(failing) = status.failing_to_tell(at) else { return };

        // If a person saved the source meanwhile, or if the sources cannot be read, `failing` is not stored. The result
        // of the run is noted all the same.
        let part = session.invocation.with_quarter_patience();
        let saved =
            session.within(&part).sources().await.map(|listing| listing.found).unwrap_or_default();
        let is_mine = |now: &StoredSource| now.id == claimed.id && now.claim == claimed.claim;
        if !saved.iter().any(is_mine) {
            return;
        }

        // The API saves no source whose id is too long for the device's id.
        let Ok(device) = claimed.id.device() else { return };
        let row =
            serde_json::json!({"device_id": device, "timestamp": at, "failing": u8::from(failing)});
        let portion = Portion::of_reading("failing", &row);
        let (id, run) = (&claimed.id, claimed.run.to_string());
        let deadline = Deadline::after(session.invocation.remaining());
        let to = Delivering { id, source, run, at, is_dry: false, deadline };
        if self.deliver(&portion, &to).await.is_ok() {
            status.note_told(failing, at);
        }
    }
}

/// Notes how far the round of requests through the listed devices has come. The device whose request met a limit of the
/// maker is requested again when the round goes on.
fn note_round(
    question: &Question,
    answered: &Answered,
    status: &SourceStatus,
    report: &mut RunReport,
) {
    if answered.listed.is_some() {
        // The devices' states are requested in the next run: this run has counted only the request for the list.
        report.listed.clone_from(&answered.listed);
        report.is_behind = true;
    }

    let is_limited = report.limited.is_some() || answered.limited.is_some();
    let Some(device) = question.device.as_ref().filter(|_| !is_limited) else { return };
    let known = report.listed.take().or_else(|| status.listed.clone());
    report.listed = known.map(|mut listed| {
        listed.note(&device.id, answered.is_good() && answered.delivered.is_empty());
        report.is_behind = listed.is_in_round();
        listed
    });
}

/// Notes the result of a question.
fn note_answer(answered: Answered, report: &mut RunReport) {
    report.is_read |= answered.is_good() && report.limited.is_none();
    report.refused = report.refused.take().or_else(|| answered.delivered.rejected.first().cloned());
    report.clock_ahead = answered.clock_ahead.or(report.clock_ahead);
    report.reserved_until = answered.reserved_until.max(report.reserved_until);
    report.limited = report.limited.take().or(answered.limited);
    report.failing = report.failing.take().or(answered.failing);
    report.stored.extend(answered.stored);
    let new = answered.delivered.devices.into_iter();
    let new: Vec<_> = new.filter(|id| !report.devices.contains(id)).collect();
    report.devices.extend(new);
}
