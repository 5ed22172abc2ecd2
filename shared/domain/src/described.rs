//! Adds facts from senders to a device. A person's edits take precedence. No I/O.

use super::about::{About, AboutMetric};
use super::fold_settings::extent_of_change;
use super::source::MAX_SOURCE;
use super::{Device, DeviceParts, MAX_KNOWN_METRICS};

impl Device {
    /// The new facts that the item of the device has space for; `None` if there are none. Facts about the room do not
    /// belong to a device.
    pub fn news(&self, about: &About) -> Option<About> {
        let source = self.source();
        let mut news = About {
            name: about.name.clone().filter(|_| source.name.is_none()),
            introduced_by: about.introduced_by.clone().filter(|_| source.introduced_by.is_none()),
            ..About::default()
        };

        let mut added = 0;
        for (name, metric) in &about.metrics {
            let info = self.metrics().get(name);
            if info.is_none() && self.metrics().len() + added >= MAX_KNOWN_METRICS {
                continue;
            }
            let described = metric.news(info.unwrap_or(&name.into()));
            added += usize::from(described.is_some() && info.is_none());
            let field = metric.field.clone().filter(|_| !source.fields.contains_key(name));
            if described.is_some() || field.is_some() {
                let described = described.unwrap_or_default();
                news.metrics.insert(name.clone(), AboutMetric { field, ..described });
            }
        }

        let tags = about.tags.iter().filter(|(name, _)| !source.tags.contains_key(*name));
        news.tags = tags.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !news.is_empty() {
            news.keep_what_fits(MAX_SOURCE.saturating_sub(source.size()));
        }

        (!news.is_empty()).then_some(news)
    }

    /// The device with the facts of `about` added; `None` if nothing changes. Known facts are not replaced.
    pub fn with_about(&self, about: &About) -> Option<Self> {
        let About { name, tags, metrics, introduced_by, .. } = self.news(about)?;
        let mut device = self.clone();
        let Device(parts) = &mut device;

        parts.source.name = parts.source.name.take().or(name);
        parts.source.introduced_by = parts.source.introduced_by.take().or(introduced_by);
        parts.source.tags.extend(tags);
        for (name, mut metric) in metrics {
            if let Some(field) = metric.field.take() {
                parts.source.fields.insert(name.clone(), field);
            }
            if metric != AboutMetric::default() {
                let info = parts.metrics.entry(name.clone()).or_insert_with(|| (&name).into());
                metric.apply(info);
            }
        }

        // Readings of the device may have been folded with the old settings.
        if let Some(extent) = extent_of_change(self.metrics(), &parts.metrics) {
            parts.fold_settings.note(extent);
        }

        parts.version += 1;
        Some(device)
    }

    /// A new device with the facts of `about`.
    #[must_use]
    pub fn described(self, about: &About) -> Self {
        let DeviceParts { fold_settings, version, .. } = self.0.clone();
        // No reading of a new device is folded yet, so the facts change neither its fold settings nor its version.
        let described = self.with_about(about).unwrap_or(self);
        Self(DeviceParts { fold_settings, version, ..described.0 })
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

    fn about() -> About {
        let field = SourceField { measurement: "kWh".to_owned(), field: "value".to_owned() };
        let energy = AboutMetric {
            kind: Some(MetricKind::Counter),
            unit: Some(given::unit("kWh")),
            field: Some(field),
            ..AboutMetric::default()
        };
        About {
            name: Some(label("Meter")),
            tags: [("host".to_owned(), "pi".to_owned())].into(),
            metrics: [(metric("energy"), energy)].into(),
            introduced_by: Some("mqtt:plug".to_owned()),
            ..About::default()
        }
    }

    #[test]
    fn facts_are_learned_once_and_note_a_change_of_the_fold() {
        let taught = device().with_about(&about()).expect("news");
        assert_eq!((taught.0.version, taught.fold_settings().number), (1, 1));
        assert_eq!(taught.0.metrics[&metric("energy")].kind, MetricKind::Counter);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Meter"));
        assert_eq!(taught.source().introduced_by.as_deref(), Some("mqtt:plug"));
        let of_another = About { introduced_by: Some("mqtt:other".to_owned()), ..about() };
        assert_eq!(taught.with_about(&of_another), None);
        let new = device().described(&about());
        assert_eq!(
            new.changed(|it| (it.version, it.fold_settings) = (1, taught.fold_settings().clone())),
            Ok(taught)
        );
        assert_eq!((new.0.version, new.0.fold_settings), (0, FoldSettings::default()));
    }

    #[test]
    fn news_are_what_the_device_lacks() {
        let known = device().with_about(&about()).expect("news");
        let mut more = about();
        more.tags.insert("site".to_owned(), "roof".to_owned());
        more.room_name = Some(label("Hall"));
        let role =
            AboutMetric { role: Some(Role::Import), ..more.metrics[&metric("energy")].clone() };
        more.metrics.insert(metric("energy"), role);

        let news = known.news(&more).expect("a tag and a role");
        let role = AboutMetric { role: Some(Role::Import), ..AboutMetric::default() };
        let expected = About {
            tags: [("site".to_owned(), "roof".to_owned())].into(),
            metrics: [(metric("energy"), role)].into(),
            ..About::default()
        };
        assert_eq!(news, expected);
        assert_eq!(known.with_about(&news), known.with_about(&more));
        assert_eq!(known.news(&about()), None);
    }

    #[test]
    fn a_person_comes_first() {
        let mut device = device();
        let gauge = MetricPatch { kind: Edit::Set(MetricKind::Gauge), ..MetricPatch::default() };
        let name = metric("energy");
        gauge.apply(&name, device.0.metrics.get_mut(&name).expect("it has sent it"));
        device.0.name = Some(label("Cellar"));
        let taught = device.with_about(&about()).expect("tags and the field");
        assert_eq!(taught.0.metrics, device.0.metrics);
        assert_eq!(taught.shown_name().map(Label::as_str), Some("Cellar"));
    }

    #[test]
    fn a_source_is_bounded_and_what_was_first_stays() {
        let mut about = about();
        let taught = device().with_about(&about).expect("news");
        about.tags = [("host".to_owned(), "other".to_owned())].into();
        assert_eq!(taught.with_about(&about), None);
        about.tags = (0..1_000).map(|n| (format!("t{n:03}"), "x".repeat(100))).collect();
        let full = taught.with_about(&about).expect("news");
        assert!(full.source().size() <= MAX_SOURCE && full.source().tags.len() > 50);
        assert_eq!(full.with_about(&about), None, "and nothing is written again and again");
    }
}
