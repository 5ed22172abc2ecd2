//! Tariffs: saved over the version that was read, and deleted.

use table::StoredTariff;

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
    let [first, second] = [of(1, "{}"), of(2, "[]")];
    assert_eq!(answer!(store.tariff(&first.id)), None);
    assert!(!answer!(store.save_tariff(&second)), "there is no first version");
    for (tariff, is_saved) in [(&first, true), (&first, false), (&second, true), (&second, false)] {
        assert_eq!(answer!(store.save_tariff(tariff)), is_saved);
    }
    assert_eq!(answer!(store.tariff(&first.id)), Some(second.clone()));

    let other = StoredTariff { id: "an-offer".parse().expect("an id"), ..first.clone() };
    assert!(answer!(store.save_tariff(&other)));
    assert_eq!(all(store).await, [other.clone(), second], "sorted by id");
    for _ in 0..2 {
        answer!(store.delete_tariff(&first.id));
        assert_eq!(all(store).await, std::slice::from_ref(&other));
    }
    assert!(answer!(store.save_tariff(&first)), "the first version again");
}
