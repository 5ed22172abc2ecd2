//! The wrong designs that were thought of, each as a table that does something else than it is asked.
//! Ours does what it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{FoldRules, QuarterHour, Reading, Timestamp};
use table::db::{If, Op, Write, WriteChange, absent, any};
use table::item::attribute::{RAW_UNTIL, SEALED, SETTINGS};
use table::item::{Attribute, Decode as _, Item, Kind as _};
use table::keys::{Key, PK, SK, reading_sk};
use table::memory_db::MemoryDb;
use table::{Action, ItemKey, StoredRollup};

use crate::gate::Gated;
use crate::gate::rules::{Ruled, Rules, compares, key_of};

/// A design of the rollups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// Recompute and compare-and-swap.
    Ours,
    /// Each fold is added to what is there.
    Add,
    /// Each fold is put, whatever is there.
    BlindPut,
    /// A fold that is what is there is not put.
    SkipUnchanged,
    /// A quarter is swept when it ends, and a batch of the stream does not see that it was.
    NoGrace,
    /// A rollup of nothing is deleted.
    DeleteEmptied,
    /// A rollup of nothing is deleted, and a put expects no rollup or the version, in one condition.
    JointCondition,
    /// A fold with older settings may replace one with newer settings.
    NoSettings,
    /// A rollup is folded again whether or not its readings have begun to expire.
    IgnoreExpiry,
    /// No mark ever moves back, and a batch of the stream does not see a mark that is ahead.
    OnlyForward,
    /// A rollup has its share of the step to the first reading of the next quarter.
    StoredShare,
}

/// The table as one instance of the function sees it.
pub(super) type Steps = Gated<Ruled<InstanceDesign>>;

/// A design, at one instance of the function.
#[derive(Clone)]
pub(super) struct InstanceDesign {
    design: Design,
    /// Whether the instance is at a batch of the stream.
    is_streaming: Arc<AtomicBool>,
}

impl InstanceDesign {
    pub(super) fn new(design: Design) -> Self {
        Self { design, is_streaming: Arc::default() }
    }

    /// Notes what the instance is at.
    pub(super) fn begin(&self, is_streaming: bool) {
        self.is_streaming.store(is_streaming, Ordering::Relaxed);
    }

    /// Whether the instance does not see the marks.
    fn hides_marks(&self) -> bool {
        matches!(self.design, Design::NoGrace | Design::OnlyForward)
            && self.is_streaming.load(Ordering::Relaxed)
    }

    fn shown_item(&self, mut item: Item) -> Item {
        match key_of(&item) {
            Some(Key::Rollup(..)) if self.design == Design::NoSettings => {
                item.insert(SETTINGS.to_owned(), Attribute::number(0));
            }
            Some(Key::Rollup(..)) if self.design == Design::IgnoreExpiry => {
                item.remove(RAW_UNTIL);
            }
            Some(Key::RollupState) if self.hides_marks() => {
                if let Some(Attribute::M(marks)) = item.get_mut(SEALED) {
                    let never = Attribute::S(Timestamp::MIN.to_string());
                    marks.values_mut().for_each(|mark| mark.clone_from(&never));
                }
            }
            _ => {}
        }
        item
    }
}

impl Rules for InstanceDesign {
    fn are_ours(&self) -> bool {
        self.design == Design::Ours
    }

    fn made(&self, write: Write, known: Option<Item>) -> Option<Write> {
        let ItemKey { pk, sk } = write.key();
        match (Key::parse(&pk, &sk), &write.change) {
            (Some(Key::Rollup(..)), WriteChange::Put(item)) => {
                let rollup = rollup_of(item.clone());
                self.design.made(write, &rollup, known.map(rollup_of))
            }
            (Some(Key::RollupState), WriteChange::Update(..)) => {
                let is_left_out = self.design == Design::OnlyForward && moves_back(&write);
                (!is_left_out).then_some(write)
            }
            _ => Some(write),
        }
    }

    fn shown(&self, action: Action, found: Vec<Item>, db: &MemoryDb) -> Vec<Item> {
        if self.design == Design::StoredShare && action == Action::Query {
            return with_shares(found, &db.items());
        }
        found.into_iter().map(|item| self.shown_item(item)).collect()
    }
}

impl Design {
    /// The write that the design makes where a rollup is put.
    fn made(
        self,
        mut put: Write,
        rollup: &StoredRollup,
        known: Option<StoredRollup>,
    ) -> Option<Write> {
        match (self, known) {
            (Self::Add, Some(known)) => {
                let mut sum = StoredRollup { rollup: known.rollup, ..rollup.clone() };
                sum.rollup.append(&rollup.rollup, &FoldRules::default());
                put.change = WriteChange::Put(sum.item());
            }
            (Self::BlindPut, _) => put.conditions.clear(),
            (Self::SkipUnchanged, Some(known)) => {
                let is_same = known.rollup == rollup.rollup && known.settings == rollup.settings;
                return (!is_same).then_some(put);
            }
            (Self::DeleteEmptied, _) => put = deleted_if_empty(put, rollup),
            (Self::JointCondition, _) => {
                let or_new = |condition| any([absent(PK), condition]);
                put.conditions = put.conditions.into_iter().map(or_new).collect();
                put = deleted_if_empty(put, rollup);
            }
            (Self::NoSettings, _) => {
                put.conditions.retain(|condition| !compares(condition, SETTINGS));
            }
            _ => {}
        }
        Some(put)
    }

    /// The readings in a table as the design folds them, each device's in the order of their timestamps.
    pub(super) fn folded(self, db: &MemoryDb) -> Vec<Reading> {
        if self != Self::StoredShare {
            return db.readings();
        }
        let items = db.items();
        let readings = with_shares(items.clone(), &items);
        readings.into_iter().filter_map(|item| Reading::decode(item).ok()).collect()
    }
}

/// A rollup of nothing is deleted, on the conditions of the put.
fn deleted_if_empty(put: Write, rollup: &StoredRollup) -> Write {
    if !rollup.rollup.is_empty() {
        return put;
    }
    Write { change: WriteChange::Delete(put.key()), conditions: put.conditions }
}

/// Whether an update moves a mark back, which it does where the mark is ahead.
fn moves_back(update: &Write) -> bool {
    update.conditions.iter().any(|condition| matches!(condition, If::Compare(_, Op::Above, _)))
}

/// The items, with the first reading of a quarter among those of the quarter before, as if it were the last there: then
/// the step to it counts. `all` are those of the table, by their keys.
fn with_shares(found: Vec<Item>, all: &[Item]) -> Vec<Item> {
    let mut shown = Vec::new();
    for item in found {
        let share = share_of(&item, all);
        shown.push(item);
        shown.extend(share);
    }
    shown
}

/// What a reading has as the last of its quarter, if its device has readings in the next.
fn share_of(item: &Item, all: &[Item]) -> Option<Item> {
    let Some(Key::Reading(device, at)) = key_of(item) else { return None };
    let behind = ItemKey::of_item(item);
    let mut next = all.iter().find(|other| ItemKey::of_item(other) > behind)?.clone();
    let Some(Key::Reading(next_device, next_at)) = key_of(&next) else { return None };

    let quarter = QuarterHour::of(at);
    if next_device != device || QuarterHour::of(next_at) != quarter.next() {
        return None;
    }
    next.insert(SK.to_owned(), Attribute::S(reading_sk(quarter.range().last())));
    Some(next)
}

fn rollup_of(item: Item) -> StoredRollup {
    StoredRollup::decode(item).expect("a rollup")
}
