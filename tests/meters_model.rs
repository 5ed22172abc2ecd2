//! Meters under random schedules: whatever is put behind what at once, deleted, comes again or is given up half-way,
//! devices are never behind one another in a circle, and none is behind a meter that is not there.
//!
//! Each read and each transaction is a step. Transactions are serializable, as `DynamoDB`'s are; what they read, check
//! and write is `table::MeterChange`'s. The contract runs the same edits on real engines.

use std::collections::BTreeMap;

use domain::{Device, DeviceId, DevicePatch, Edit};
use fastrand::Rng;
use table::{Companion, MeterChange};

use crate::given::{at, device, device_of, reading};
use crate::schedules::{assert_each_seen, assert_right};

const DEVICES: [&str; 5] = ["a", "b", "c", "d", "e"];
const TASKS: usize = 3;
/// The schedules of a normal run: some seconds.
const SCHEDULES: u64 = 4_000;

/// A design of the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Design {
    Ours,
    /// Only the meter itself is looked at when the device is written, none of those above it.
    NearestOnly,
    /// The meters are looked at before, and none when the device is written.
    CheckedBefore,
    /// A deletion marks the device whatever has happened since it was read.
    BlindDeletion,
    /// The meter that a device leaves goes on to name it.
    NotForgotten,
}

/// Somebody who edits or deletes a device.
struct Task {
    id: DeviceId,
    /// What is set of `behind`; `None` is a deletion.
    patch: Option<DevicePatch>,
    read: Option<(Device, MeterChange)>,
}

struct World {
    rng: Rng,
    design: Design,
    table: BTreeMap<DeviceId, Device>,
    tasks: Vec<Task>,
    wrong: Vec<String>,
}

/// What comes of a step.
enum Step {
    GoesOn,
    Over,
}

impl World {
    fn new(seed: u64, design: Design) -> Self {
        let table = DEVICES.map(|id| (device(id), registered(id))).into();
        Self { rng: Rng::with_seed(seed), design, table, tasks: Vec::new(), wrong: Vec::new() }
    }

    fn any_device(&mut self) -> &'static str {
        DEVICES[self.rng.usize(..DEVICES.len())]
    }

    fn live(&mut self) {
        for _ in 0..self.rng.usize(20..120) {
            match self.rng.u8(..100) {
                0..30 if self.tasks.len() < TASKS => self.begin(),
                30..33 => {
                    let id = self.any_device();
                    self.table.entry(device(id)).or_insert_with(|| registered(id));
                }
                33..35 if !self.tasks.is_empty() => {
                    let given_up = self.rng.usize(..self.tasks.len());
                    self.tasks.swap_remove(given_up);
                }
                _ => self.step_any(),
            }
            self.judge();
        }
    }

    fn begin(&mut self) {
        let id = device(self.any_device());
        let behind = match self.rng.u8(..10) {
            0..7 => Some(Edit::Set(device(self.any_device()))),
            7..8 => Some(Edit::Clear),
            _ => None,
        };
        let patch = behind.map(|behind| DevicePatch { behind, ..DevicePatch::default() });
        self.tasks.push(Task { id, patch, read: None });
    }

    fn step_any(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let n = self.rng.usize(..self.tasks.len());
        let mut task = self.tasks.swap_remove(n);
        if matches!(self.step(&mut task), Step::GoesOn) {
            self.tasks.push(task);
        }
    }

    /// One read of an item, or the transaction.
    fn step(&mut self, task: &mut Task) -> Step {
        let Some((old, mut change)) = task.read.take() else { return self.read(task) };
        if let Some(id) = change.next() {
            let found = self.table.get(id).cloned();
            if change.see(found).is_err() {
                return Step::Over;
            }
            task.read = Some((old, change));
            return Step::GoesOn;
        }
        let companions = change.companions();
        if self.may_write(task, &old, &companions) {
            self.write(task, &old, companions);
            return Step::Over;
        }
        // Somebody was faster.
        Step::GoesOn
    }

    fn read(&self, task: &mut Task) -> Step {
        let Some(old) = self.table.get(&task.id) else { return Step::Over };
        let change = match &task.patch {
            Some(patch) if patch.check(old).is_err() => return Step::Over,
            Some(patch) => MeterChange::of(old, patch),
            None if !old.behind_it().is_empty() => return Step::Over,
            None => MeterChange::of_deletion(old),
        };
        task.read = Some((old.clone(), change));
        Step::GoesOn
    }

    /// Whether all conditions of a transaction hold.
    fn may_write(&self, task: &Task, old: &Device, companions: &[Companion]) -> bool {
        let is_still = |known: &Device| {
            self.table.get(known.id()).is_some_and(|now| now.version() == known.version())
        };
        let is_blind = task.patch.is_none() && self.design == Design::BlindDeletion;
        let own = is_still(old) || (is_blind && self.table.contains_key(&task.id));
        own && companions.iter().all(|it| match it {
            _ if self.design == Design::CheckedBefore => true,
            Companion::NoteBehind(meter, _) | Companion::ForgetBehind(meter, _) => is_still(meter),
            Companion::StillBehind { .. } if self.design == Design::NearestOnly => true,
            Companion::StillBehind { device, meter } => {
                self.table.get(device).and_then(|now| now.behind()) == meter.as_ref()
            }
            other => panic!("{other:?}"),
        })
    }

    fn write(&mut self, task: &Task, old: &Device, companions: Vec<Companion>) {
        match &task.patch {
            Some(patch) => {
                let new = patch.edited(old, at(0)).expect("it was checked");
                if new == *old && companions.is_empty() {
                    return;
                }
                self.table.insert(new.id().clone(), new.next_version());
            }
            None => drop(self.table.remove(&task.id)),
        }
        for companion in companions {
            let (meter, device, is_behind) = match companion {
                Companion::NoteBehind(meter, device) => (meter, device, true),
                Companion::ForgetBehind(..) if self.design == Design::NotForgotten => continue,
                Companion::ForgetBehind(meter, device) => (meter, device, false),
                _ => continue,
            };
            let Some(meter) = self.table.get_mut(meter.id()) else { continue };
            let noted = meter.changed(|it| {
                it.version += u64::from(self.design != Design::CheckedBefore);
                if is_behind {
                    it.behind_it.insert(device);
                } else {
                    it.behind_it.remove(&device);
                }
            });
            *meter = noted.expect("a device");
        }
    }

    fn judge(&mut self) {
        let up = |it: &Device| it.behind().and_then(|meter| self.table.get(meter));
        for device in self.table.values() {
            let mut above = std::iter::successors(up(device), |it| up(it)).take(DEVICES.len());
            if above.any(|it| it.id() == device.id()) {
                self.wrong.push(format!("{} is behind itself", device.id()));
            }
            match device.behind() {
                Some(meter) if up(device).is_none() => {
                    self.wrong
                        .push(format!("{} is behind {meter}, which is not there", device.id()));
                }
                _ => {}
            }
            let behind = self.table.values().filter(|it| it.behind() == Some(device.id()));
            if !behind.map(Device::id).eq(device.behind_it()) {
                self.wrong.push(format!("{} names {:?}", device.id(), *device.behind_it()));
            }
        }
    }
}

fn registered(id: &str) -> Device {
    device_of([&reading(id, 0, &[("temperature", "21.5")])])
}

fn run(seed: u64, design: Design) -> Vec<String> {
    let mut world = World::new(seed, design);
    world.live();
    world.wrong
}

#[test]
fn no_device_is_behind_itself_or_behind_a_meter_that_is_not_there() {
    assert_right(SCHEDULES, |seed| run(seed, Design::Ours));
}

#[test]
fn every_wrong_design_of_meters_is_found() {
    let designs = [
        (Design::NearestOnly, 2_402),
        (Design::CheckedBefore, 1),
        (Design::BlindDeletion, 1),
        (Design::NotForgotten, 0),
    ];
    assert_each_seen(&designs, SCHEDULES, run);
}
