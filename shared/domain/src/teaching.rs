//! What a sender teaches of a device beside the values, and how it is shown. No I/O.

use super::fold_settings::extent_of_change;
use super::{Device, DeviceParts, Hints, Label, MAX_KNOWN_METRICS};

impl Device {
    /// The device after the hints, if they teach anything: what is known already stays.
    #[must_use]
    pub fn taught(&self, hints: &Hints) -> Option<Self> {
        let mut device = self.clone();
        device.0.source.learn(hints);
        for (name, hints) in &hints.metrics {
            if let Some(info) = device.0.metrics.get_mut(name) {
                hints.apply(info);
            } else if device.metrics().len() < MAX_KNOWN_METRICS {
                let mut info = name.into();
                hints.apply(&mut info);
                device.0.metrics.insert(name.clone(), info);
            }
        }
        if device == *self {
            return None;
        }
        // Its readings may be folded already.
        if let Some(extent) = extent_of_change(self.metrics(), device.metrics()) {
            device.0.fold_settings.note(extent);
        }
        device.0.version += 1;
        Some(device)
    }

    /// A device that is being registered, with what the hints teach.
    #[must_use]
    pub fn described(self, hints: &Hints) -> Self {
        let DeviceParts { fold_settings, version, .. } = self.0.clone();
        // Nothing of it is folded yet.
        let taught = self.taught(hints).unwrap_or(self);
        Self(DeviceParts { fold_settings, version, ..taught.0 })
    }

    /// The name that people see: the one that a person set, else the sender's.
    #[must_use]
    pub fn shown_name(&self) -> Option<&Label> {
        self.name().or(self.source().name.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use crate::given::{self, label, metric, number};
    use crate::source::MAX_SOURCE;
    use crate::*;
    use crate::{DeviceObservation, Edit, FoldSettings, MetricPatch, Reading, Timestamp};

    fn device() -> Device {
        let metrics = [(metric("energy"), number("1"))].into();
        let id = given::device("d");
        let reading = Reading::new(id, Timestamp::MIN, None, metrics).expect("a reading");
        DeviceObservation::of(&reading).new_device(given::device("d"), |_| false)
    }

    fn hints() -> Hints {
        let field = SourceField { measurement: "kWh".to_owned(), field: "value".to_owned() };
        let energy = MetricHints {
            kind: Some(MetricKind::Counter),
            unit: Some(given::unit("kWh")),
            field: Some(field),
            ..MetricHints::default()
        };
        Hints {
            name: Some(label("Meter")),
            tags: [("host".to_owned(), "pi".to_owned())].into(),
            metrics: [(metric("energy"), energy)].into(),
            introduced_by: Some("mqtt:plug".to_owned()),
            ..Hints::default()
        }
    }

    #[test]
    fn hints_are_learned_once_and_note_a_change_of_the_fold() {
        let taught = device().taught(&hints()).expect("news");
        assert_eq!((taught.0.version, taught.fold_settings().number), (1, 1));
        assert_eq!(taught.0.metrics[&metric("energy")].kind, MetricKind::Counter);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Meter"));
        assert_eq!(taught.source().introduced_by.as_deref(), Some("mqtt:plug"));
        let of_another = Hints { introduced_by: Some("mqtt:other".to_owned()), ..hints() };
        assert_eq!(taught.taught(&of_another), None);
        let new = device().described(&hints());
        assert_eq!(
            new.changed(|it| (it.version, it.fold_settings) = (1, taught.fold_settings().clone())),
            Ok(taught)
        );
        assert_eq!((new.0.version, new.0.fold_settings), (0, FoldSettings::default()));
    }

    #[test]
    fn a_person_comes_first() {
        let mut device = device();
        let gauge = MetricPatch { kind: Edit::Set(MetricKind::Gauge), ..MetricPatch::default() };
        let name = metric("energy");
        gauge.apply(&name, device.0.metrics.get_mut(&name).expect("it has sent it"));
        device.0.name = Some(label("Cellar"));
        let taught = device.taught(&hints()).expect("tags and the field");
        assert_eq!(taught.0.metrics, device.0.metrics);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Cellar"));
    }

    #[test]
    fn a_source_is_bounded_and_what_was_first_stays() {
        let mut hints = hints();
        let taught = device().taught(&hints).expect("news");
        hints.tags = [("host".to_owned(), "other".to_owned())].into();
        assert_eq!(taught.taught(&hints), None);
        hints.tags = (0..1_000).map(|n| (format!("t{n:03}"), "x".repeat(100))).collect();
        let full = taught.taught(&hints).expect("news");
        assert!(full.source().size() <= MAX_SOURCE && full.source().tags.len() > 50);
        assert_eq!(full.taught(&hints), None, "and nothing is written again and again");
    }
}
