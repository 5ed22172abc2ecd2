//! A table in memory that claims, notes and saves a source as a design says, and what is noted of it. Asks nobody.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize;
use serde_json::Value;
use table::db::{AttributeChange, Write, WriteChange, present, remove, set};
use table::item::attribute::{SETTINGS, SPENT, STATUS};
use table::item::{Attribute, Decode as _, Item};
use table::keys::{Key, PK};
use table::{Action, StoredSource};

use crate::gate::rules::{Rules, changes, key_of};
use crate::given::at;

/// A design of claims, notes and edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// A claim counts before it asks, and is of what was read. A note is of whoever has the claim. An edit keeps the count.
    Ours,
    /// A claim takes the source whatever has happened since it was read.
    BlindClaim,
    /// A claim counts nothing.
    UncountedClaim,
    /// A note is written whoever has the claim.
    BlindNote,
    /// An edit forgets what was counted.
    ForgetfulEdit,
    /// A claim notes that all was answered up to now.
    AnsweredByClaim,
}

/// What a task, which is a minute or a test, has counted and asked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) is_test: bool,
    counted: u32,
    requests: u32,
    /// A test of a source that is not saved counts nothing.
    is_uncounted: bool,
}

/// The count of a source, as it is stored.
#[derive(Deserialize)]
struct Count {
    day: i64,
    today: u32,
}

impl Count {
    fn of(source: &StoredSource) -> Self {
        let stored = serde_json::to_value(source.spent).expect("numbers");
        serde_json::from_value(stored).expect("a count")
    }

    /// What was counted since; `None` if something was forgotten.
    fn since(&self, old: &Self) -> Option<u32> {
        match self.day.cmp(&old.day) {
            Ordering::Less => None,
            Ordering::Equal => self.today.checked_sub(old.today),
            Ordering::Greater => Some(self.today),
        }
    }
}

/// What is known of the source and of whoever asks it.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The source after the newest write.
    pub(super) source: Option<StoredSource>,
    /// The instance whose step it is.
    pub(super) stepping: usize,
    /// By instance what its task has done.
    pub(super) tasks: Vec<Asked>,
    /// The instance that has the claim; none since a note, a save or a deletion.
    claimant: Option<usize>,
    pub(super) wrong: Vec<String>,
}

impl Log {
    /// A person has made or deleted the source: what is under way may note nothing.
    pub(super) fn replace(&mut self, source: Option<StoredSource>) {
        for task in &mut self.tasks {
            task.is_uncounted |= task.is_test && source.is_none();
        }
        (self.source, self.claimant) = (source, None);
    }

    /// A task begins.
    pub(super) fn begin(&mut self, instance: usize, is_test: bool) {
        let is_uncounted = is_test && self.source.is_none();
        self.tasks[instance] = Asked { is_test, is_uncounted, ..Asked::default() };
    }

    /// A request reaches the maker.
    pub(super) fn ask(&mut self) {
        let task = &mut self.tasks[self.stepping];
        task.requests += 1;
        if task.requests > task.counted && !task.is_uncounted {
            self.wrong.push(format!("{task:?}: more is asked than was counted"));
        }
    }

    /// The source is written by a claim, a note or an edit.
    fn see(&mut self, new: &StoredSource) {
        let Some(old) = self.source.replace(new.clone()) else {
            return self.wrong.push("a note makes a source".to_owned());
        };
        let Some(counted) = Count::of(new).since(&Count::of(&old)) else {
            return self.wrong.push("requests are forgotten".to_owned());
        };

        if new.version > old.version {
            self.claimant = None;
        } else if new.run > old.run {
            self.tasks[self.stepping].counted += counted;
            if new.claim != old.claim {
                self.claimant = Some(self.stepping);
            }
        } else if self.claimant.take() != Some(self.stepping) {
            self.wrong.push("a note of an old run stands over a newer one".to_owned());
        }
    }
}

/// A design, whose table notes what the judge needs.
#[derive(Clone)]
pub(super) struct LoggedDesign {
    pub(super) design: Design,
    pub(super) log: Arc<Mutex<Log>>,
}

impl LoggedDesign {
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }
}

impl Rules for LoggedDesign {
    fn are_ours(&self) -> bool {
        self.design == Design::Ours
    }

    fn made(&self, mut write: Write, known: Option<Item>) -> Option<Write> {
        let is_claim = changes(&write, SPENT);
        match self.design {
            Design::BlindClaim if is_claim => write.conditions = vec![present(PK)],
            Design::BlindNote if changes(&write, STATUS) => write.conditions = vec![present(PK)],
            Design::UncountedClaim if is_claim => {
                changes_of(&mut write).retain(|change| *change.path() != SPENT.into());
            }
            Design::ForgetfulEdit if changes(&write, SETTINGS) => {
                changes_of(&mut write).push(remove(SPENT));
            }
            Design::AnsweredByClaim if is_claim => {
                let status = known.and_then(|mut item| item.remove(STATUS));
                let answered = status.map(|status| set(STATUS, answered(&status)));
                changes_of(&mut write).extend(answered);
            }
            _ => {}
        }
        Some(write)
    }

    fn note(&self, action: Action, item: &Item) {
        if action == Action::UpdateItem && matches!(key_of(item), Some(Key::Source(_))) {
            let source = StoredSource::decode(item.clone()).expect("a source");
            self.log().see(&source);
        }
    }
}

fn changes_of(write: &mut Write) -> &mut Vec<AttributeChange> {
    match &mut write.change {
        WriteChange::Update(_, changes) => changes,
        other => panic!("{other:?} is no update"),
    }
}

/// The status of a source, as if all was answered up to the start of the schedule.
fn answered(status: &Attribute) -> Attribute {
    let Attribute::S(text) = status else { panic!("{status:?} is no text") };
    let mut status: Value = serde_json::from_str(text).expect("JSON");
    status["position"] = at(0).to_string().into();
    Attribute::S(status.to_string())
}
