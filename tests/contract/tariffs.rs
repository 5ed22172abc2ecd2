//! Tariffs: saved over the version that was read, and deleted.

use table::{Expected, StoredTariff};

use super::Ports;
use crate::given::{answer, at};

async fn all(store: &impl Ports) -> Vec<StoredTariff> {
    answer!(store.tariffs()).found
}

pub(super) async fn a_tariff_is_saved_over_what_was_read_and_deleted(store: &impl Ports) {
    let of = |version: u64, written: &str| StoredTariff {
        id: "grid".parse().expect("an id"),
        version,
        edited: at(i64::try_from(version).expect("small")),
        written: written.to_owned(),
    };
    let [first, second] = [of(7, "{}"), of(9, "[]")];
    let (absent, over_first) = (Expected::Absent, Expected::Version(7));
    assert_eq!(answer!(store.tariff(&first.id)), None);
    assert!(!answer!(store.save_tariff(&second, over_first)), "there is no first version");
    for (tariff, before, is_saved) in [
        (&first, absent, true),
        (&first, absent, false),
        (&second, over_first, true),
        (&second, over_first, false),
    ] {
        assert_eq!(answer!(store.save_tariff(tariff, before)), is_saved);
    }
    assert_eq!(answer!(store.tariff(&first.id)), Some(second.clone()));

    let other = StoredTariff { id: "an-offer".parse().expect("an id"), ..first.clone() };
    assert!(answer!(store.save_tariff(&other, absent)));
    assert_eq!(all(store).await, [other.clone(), second.clone()], "sorted by id");
    for (tariff, is_deleted) in [(&first, false), (&second, true), (&second, false)] {
        assert_eq!(answer!(store.delete_tariff(tariff)), is_deleted);
    }
    assert_eq!(all(store).await, [other]);
    assert!(answer!(store.save_tariff(&first, absent)), "as if it had never been there");
}
