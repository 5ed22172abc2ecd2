//! One run of one source: claimed, asked, delivered, noted. A kill at any step loses nothing that the maker still answers.

use std::time::Duration;

use chrono::TimeDelta;
use domain::Timestamp;
use polling::{
    AskContext, DirectoryDevice, FailurePause, PolledSource, Portion, RunReport, SecretTexts,
    SourceStatus, TimeWindow, schedule,
};
use runtime::clock::{Clock, Deadline};
use table::{Session, StoreResult, StoredSource, at_once};
use tokio::time::{sleep, timeout};

use crate::ask::{Answered, Question};
use crate::deliver::Delivering;
use crate::report::SourceRun;
use crate::{Fetching, Store};

/// The time of one source, which begins with its first request.
const TIME_OF_SOURCE: Duration = Duration::from_secs(40);
/// The requests of one source that are under way at once.
const AT_ONCE: usize = 4;

/// What a run works on.
struct SourceWork<'a> {
    stored: &'a StoredSource,
    source: &'a PolledSource,
    status: SourceStatus,
    secrets: &'a SecretTexts,
    window: TimeWindow,
    at: Timestamp,
    deadline: Deadline,
}

impl<S: Store, C: Clock> Fetching<S, C> {
    /// Runs a source that is due, if nobody else does.
    pub(crate) async fn run(&self, session: Session<'_, S>, stored: &StoredSource) -> SourceRun {
        match Box::pin(self.claim_and_run(session, stored)).await {
            Ok(run) => run,
            Err(error) => {
                let failures =
                    vec![format!("{}: {}", stored.id, runtime::telemetry::chain(&error))];
                SourceRun { failures, ..SourceRun::default() }
            }
        }
    }

    async fn claim_and_run(
        &self,
        session: Session<'_, S>,
        stored: &StoredSource,
    ) -> StoreResult<SourceRun> {
        let now = session.now;
        let Ok(source) = stored.source() else {
            let failures = vec![format!("{}: its settings cannot be read", stored.id)];
            return Ok(SourceRun { failures, ..SourceRun::default() });
        };

        let mut status = stored.status.clone().of_question(source.question());
        let planned = planned(&source, &status, now);
        let spent = stored.spent.with(planned, source.budget(), status.maker_now(now));
        let lease = Some(now.saturating_add(schedule::LEASE));
        let begun = session.begin_source_run(stored, spent.unwrap_or(stored.spent), lease).await?;
        let Some(claimed) = begun else { return Ok(SourceRun::default()) };

        let mut run = SourceRun { asked: 1, ..SourceRun::default() };
        let report = match spent {
            Ok(_) => self.wait_and_ask(session, &claimed, &source, &status, &mut run).await?,
            Err(until) => {
                let title = source.kind.title;
                let why = format!("{title} was asked as often as it may be in this time");
                RunReport { limited: Some((until, why)), ..RunReport::default() }
            }
        };

        let devices = report.listed.as_ref().or(status.listed.as_ref());
        let every = source.every(devices.map_or(0, |listed| listed.devices.len()));
        let ended = self.clock.now();
        // Behind the slot that was served, though the clock was put back meanwhile.
        let slot = schedule::next_slot(&claimed.id, every, ended.max(claimed.next));
        let next = status.note(report, slot, every, ended);
        self.tell_failing(session, &claimed, &source, &mut status).await;
        if status.error.is_some() && status.state(ended) != polling::SourceState::Ok {
            run.failing.push(claimed.id.to_string());
        }
        if !session.end_source_run(&claimed, next, &status).await? {
            // Somebody saved or deleted the source meanwhile, or the run has lost its lease.
            run.failures.push(format!("{}: was changed while it was asked", claimed.id));
        }
        Ok(run)
    }

    /// Waits for the slot, reads the secrets, and asks.
    async fn wait_and_ask(
        &self,
        session: Session<'_, S>,
        claimed: &StoredSource,
        source: &PolledSource,
        status: &SourceStatus,
        run: &mut SourceRun,
    ) -> StoreResult<RunReport> {
        let ahead = claimed.next.since(session.now).min(schedule::CLAIM_AHEAD);
        sleep(ahead.to_std().unwrap_or_default()).await;

        let secrets = session.source_secrets(&claimed.id).await?;
        let secrets = secrets.map(|stored| stored.of(source)).unwrap_or_default();
        if let Err(why) = source.check_secrets(&secrets) {
            let failing = Some((format!("{why}; save the source with it"), FailurePause::Mend));
            return Ok(RunReport { failing, ..RunReport::default() });
        }

        let at = self.clock.now();
        let history = source.history();
        let window = history.map_or(TimeWindow::moment(at), |history| {
            history.at(status.position, source.since, at)
        });
        let deadline = Deadline::after(TIME_OF_SOURCE.min(session.invocation.remaining()));
        let status = status.clone();
        let work =
            SourceWork { stored: claimed, source, status, secrets: &secrets, window, at, deadline };

        let mut report = RunReport::default();
        let asking = Box::pin(self.ask_all(&work, run, &mut report));
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

    /// Asks all that the run has to ask. What is read is stored before the next requests are made.
    async fn ask_all(&self, work: &SourceWork<'_>, run: &mut SourceRun, report: &mut RunReport) {
        let askings = work.source.askings();
        if work.source.kind.directory.is_none() {
            let questions: Vec<_> = askings
                .iter()
                .enumerate()
                .map(|(position, asking)| Question { position, asking, device: None })
                .collect();
            return self.ask_some(work, &questions, run, report).await;
        }

        let [list, state, ..] = &askings[..] else { return };
        if is_list_due(work.source, &work.status, work.at) {
            let question = Question { position: 0, asking: list, device: None };
            let answers = self.ask_some(work, &[question], run, report).await;
            // The states are asked for from the next minute on: the run has counted one request.
            report.is_behind = report.listed.is_some();
            return answers;
        }

        let Some(mut listed) = work.status.listed.clone() else { return };
        for device in in_turn(&listed.devices, listed.last.as_deref()) {
            let question = Question { position: 1, asking: state, device: Some(&device) };
            let accepted = run.accepted;
            let is_fine = report.failing.is_none();
            self.ask_some(work, &[question], run, report).await;
            if report.limited.is_some() {
                break;
            }

            listed.last = Some(device.id.clone());
            // A state without a number, such as that of a hub, is not asked for again before the next list.
            let is_silent = run.accepted == accepted && is_fine && report.failing.is_none();
            let known = listed.devices.iter_mut().find(|known| known.id == device.id);
            known.into_iter().for_each(|known| known.is_silent |= is_silent);
            report.listed = Some(listed.clone());
        }
    }

    /// Asks some questions at once, and delivers what they answer.
    async fn ask_some(
        &self,
        work: &SourceWork<'_>,
        questions: &[Question<'_>],
        run: &mut SourceRun,
        report: &mut RunReport,
    ) {
        let asked = questions.iter().enumerate().map(|(number, question)| {
            let device = question.device.map_or("", |device| &device.id);
            let context = AskContext {
                secrets: work.secrets,
                window: work.window,
                maker_now: work.status.maker_now(self.clock.now()),
                nonce: format!("{}-{}-{number}{device}", work.stored.id, work.stored.run),
                reach: self.reach(),
            };
            async move {
                let id = &work.stored.id;
                Ok::<_, std::convert::Infallible>(
                    self.ask(id, work.source, *question, &context).await,
                )
            }
        });
        let Ok(asked) = at_once(AT_ONCE, asked).await;

        run.requests += asked.len();
        for (question, asked) in questions.iter().zip(asked) {
            if let Some(answer) = asked.answer.as_ref().filter(|_| question.device.is_none()) {
                report.listed =
                    work.source.listed(answer, work.at).or_else(|| report.listed.take());
            }
            self.take(work, asked, run, report).await;
        }
    }

    /// Delivers what a question was answered, and notes it.
    async fn take(
        &self,
        work: &SourceWork<'_>,
        asked: Answered,
        run: &mut SourceRun,
        report: &mut RunReport,
    ) {
        report.clock_ahead = asked.clock_ahead.or(report.clock_ahead);
        report.reserved_until = asked.reserved_until.max(report.reserved_until);
        report.limited = report.limited.take().or(asked.limited);
        report.is_read |= asked.failing.is_none() && report.limited.is_none();
        report.failing = report.failing.take().or(asked.failing);
        report.refused = report.refused.take().or(asked.read.refused.into_iter().next());

        let delivering = Delivering {
            id: &work.stored.id,
            source: work.source,
            run: work.stored.run,
            at: work.at,
            is_dry: false,
            deadline: work.deadline,
        };
        for portion in asked.read.portions {
            let digest = portion.digest();
            if portion.is_timed && work.status.has_seen(&portion.key, &digest) {
                continue;
            }
            match self.deliver(&portion, &delivering).await {
                Ok(delivered) => {
                    run.accepted += delivered.accepted;
                    report.refused = report.refused.take().or_else(|| delivered.refusal());
                    report.stored.push((portion.key, digest));
                    let new = delivered.devices.into_iter();
                    let new: Vec<_> = new.filter(|id| !report.devices.contains(id)).collect();
                    report.devices.extend(new);
                }
                Err(why) => {
                    report.is_read = false;
                    report.failing.get_or_insert((why, FailurePause::Transient));
                }
            }
        }
    }

    /// Stores the metric `failing` of the device `source:<id>`, by which alerts are told.
    async fn tell_failing(
        &self,
        session: Session<'_, S>,
        claimed: &StoredSource,
        source: &PolledSource,
        status: &mut SourceStatus,
    ) {
        let at = self.clock.now();
        let Some(failing) = status.failing_to_tell(at) else { return };
        // The API saves no source whose id is too long for it.
        let Ok(device) = claimed.id.device() else { return };
        let row =
            serde_json::json!({"device_id": device, "timestamp": at, "failing": u8::from(failing)});
        let portion = Portion::of_reading("failing", &row);
        let delivering = Delivering {
            id: &claimed.id,
            source,
            run: claimed.run,
            at,
            is_dry: false,
            deadline: Deadline::after(session.invocation.remaining()),
        };
        if self.deliver(&portion, &delivering).await.is_ok() {
            status.note_told(failing, at);
        }
    }
}

/// The requests that a run will make.
fn planned(source: &PolledSource, status: &SourceStatus, now: Timestamp) -> u32 {
    let requests = match &status.listed {
        _ if source.kind.directory.is_none() => source.askings().len(),
        _ if is_list_due(source, status, now) => 1,
        Some(listed) => listed.devices.iter().filter(|device| !device.is_silent).count(),
        None => 1,
    };
    u32::try_from(requests).unwrap_or(u32::MAX)
}

/// Whether the list of devices is to be asked for: it is not there, or too old.
fn is_list_due(source: &PolledSource, status: &SourceStatus, now: Timestamp) -> bool {
    let Some(directory) = &source.kind.directory else { return false };
    status.listed.as_ref().is_none_or(|listed| {
        let age = now.since(listed.at);
        age >= directory.every || age < TimeDelta::zero()
    })
}

/// The devices that are asked for, from behind the last one on.
fn in_turn(devices: &[DirectoryDevice], last: Option<&str>) -> Vec<DirectoryDevice> {
    let behind = last.and_then(|last| devices.iter().position(|device| device.id == last));
    let (before, after) = devices.split_at(behind.map_or(0, |behind| behind + 1));
    after.iter().chain(before).filter(|device| !device.is_silent).cloned().collect()
}
