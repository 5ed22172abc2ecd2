//! Home Assistant's `.storage`: the names and areas of entities, which the database lacks. Reads no database.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// The files of `.storage` that are read, in this order.
pub(super) const REGISTRIES: [&str; 3] =
    ["core.entity_registry", "core.device_registry", "core.area_registry"];

/// The description of an entity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EntityEntry {
    pub(super) name: Option<String>,
    /// The name of the area, which becomes the room.
    pub(super) area: Option<String>,
    pub(super) device_class: Option<String>,
    pub(super) state_class: Option<String>,
}

/// The entities that `.storage` describes.
#[derive(Debug, Clone, Default)]
pub struct Storage(HashMap<String, EntityEntry>);

/// A file of `.storage`. The rows of each registry are in a member of their own.
#[derive(Deserialize)]
struct File {
    data: RegistryData,
}

#[derive(Default, Deserialize)]
struct RegistryData {
    #[serde(default)]
    entities: Vec<EntityRow>,
    #[serde(default)]
    devices: Vec<DeviceEntry>,
    #[serde(default)]
    areas: Vec<AreaRow>,
}

#[derive(Deserialize)]
struct EntityRow {
    entity_id: String,
    name: Option<String>,
    original_name: Option<String>,
    #[serde(default)]
    has_entity_name: bool,
    area_id: Option<String>,
    device_id: Option<String>,
    device_class: Option<String>,
    original_device_class: Option<String>,
    capabilities: Option<Capabilities>,
}

#[derive(Deserialize)]
struct Capabilities {
    state_class: Option<String>,
}

#[derive(Deserialize)]
struct DeviceEntry {
    id: String,
    area_id: Option<String>,
    name: Option<String>,
    name_by_user: Option<String>,
}

#[derive(Deserialize)]
struct AreaRow {
    id: String,
    name: String,
}

impl Storage {
    /// Reads a directory: `.storage` itself, or its parent.
    pub fn read(directory: &Path) -> anyhow::Result<Self> {
        let inner = directory.join(".storage");
        let directory = if inner.is_dir() { inner } else { directory.to_owned() };

        let mut texts = Vec::new();
        for name in REGISTRIES {
            let path = directory.join(name);
            texts.push(std::fs::read(&path).ok());
        }

        if texts.iter().all(Option::is_none) {
            bail!("--storage: {} has no {}", directory.display(), REGISTRIES.join(" and no "));
        }
        Self::of(&texts)
    }

    /// Reads the files of [`REGISTRIES`], in that order.
    pub fn of(texts: &[Option<Vec<u8>>]) -> anyhow::Result<Self> {
        let mut data = RegistryData::default();
        for (text, name) in texts.iter().zip(REGISTRIES) {
            let Some(text) = text else { continue };
            let file: File = serde_json::from_slice(text)
                .with_context(|| format!("{name} is not as Home Assistant writes it"))?;
            data.entities.extend(file.data.entities);
            data.devices.extend(file.data.devices);
            data.areas.extend(file.data.areas);
        }

        let RegistryData { entities, devices, areas } = data;
        let areas: HashMap<String, String> =
            areas.into_iter().map(|area| (area.id, area.name)).collect();
        let devices: HashMap<String, DeviceEntry> =
            devices.into_iter().map(|device| (device.id.clone(), device)).collect();

        let described = |row: EntityRow| {
            let device = row.device_id.as_ref().and_then(|id| devices.get(id));
            let area = row.area_id.as_ref().or_else(|| device?.area_id.as_ref());
            let of_device =
                device.and_then(|device| device.name_by_user.as_ref().or(device.name.as_ref()));

            let original = match (of_device, row.original_name) {
                (Some(device), Some(name)) if row.has_entity_name => {
                    Some(format!("{device} {name}"))
                }
                (Some(device), None) if row.has_entity_name => Some(device.clone()),
                (_, name) => name,
            };

            let described = EntityEntry {
                name: row.name.or(original),
                area: area.and_then(|id| areas.get(id)).cloned(),
                device_class: row.device_class.or(row.original_device_class),
                state_class: row.capabilities.and_then(|capabilities| capabilities.state_class),
            };
            (row.entity_id, described)
        };

        Ok(Self(entities.into_iter().map(described).collect()))
    }

    /// Returns the description of an entity.
    pub(super) fn entity(&self, id: &str) -> Option<&EntityEntry> {
        self.0.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Storage {
        /// Returns whether any entity is in an area.
        pub(in crate::home_assistant) fn has_areas(&self) -> bool {
            self.0.values().any(|row| row.area.is_some())
        }
    }

    #[test]
    fn an_entity_is_in_its_own_area_or_in_its_device_s() {
        let entities = br#"{"version": 1, "data": {"entities": [
            {"entity_id": "sensor.a", "name": null, "original_name": "Power", "has_entity_name": true,
             "device_id": "d", "area_id": null, "original_device_class": "power",
             "capabilities": {"state_class": "measurement", "x": 1}},
            {"entity_id": "sensor.b", "name": "Mine", "device_id": "d", "area_id": "bath"},
            {"entity_id": "sensor.c", "original_name": "C"}]}}"#;
        let devices = br#"{"data": {"devices": [{"id": "d", "area_id": "hall", "name": "Plug", "name_by_user": null}]}}"#;
        let areas = br#"{"data": {"areas": [{"id": "hall", "name": "Hall"}, {"id": "bath", "name": "Bath room"}]}}"#;
        let texts = [entities.to_vec(), devices.to_vec(), areas.to_vec()].map(Some);
        let storage = Storage::of(&texts).unwrap();
        let shown = |id| {
            let it = storage.entity(id).unwrap();
            (
                it.name.as_deref(),
                it.area.as_deref(),
                it.device_class.as_deref(),
                it.state_class.as_deref(),
            )
        };
        assert_eq!(
            shown("sensor.a"),
            (Some("Plug Power"), Some("Hall"), Some("power"), Some("measurement"))
        );
        assert_eq!(shown("sensor.b"), (Some("Mine"), Some("Bath room"), None, None));
        assert_eq!(shown("sensor.c"), (Some("C"), None, None, None));
        assert!(storage.has_areas() && storage.entity("sensor.d").is_none());
    }

    #[test]
    fn a_directory_without_the_registries_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = Storage::read(directory.path()).err().unwrap().to_string();
        assert!(
            error.starts_with("--storage:") && error.contains("core.entity_registry"),
            "{error}"
        );
        std::fs::create_dir(directory.path().join(".storage")).unwrap();
        std::fs::write(directory.path().join(".storage/core.area_registry"), "{").unwrap();
        let error = Storage::read(directory.path()).err().unwrap().to_string();
        assert!(error.starts_with("core.area_registry is not"), "{error}");
    }
}
