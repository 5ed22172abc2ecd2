//! What the network and the table do on bad days: nothing acknowledged is lost, and nothing is paid twice.

mod alerts;
mod capacity;
mod damaged;
mod deletions;
mod ingest;
mod instances;
mod patience;
pub(crate) mod proxy;
mod query;
mod registry;

use fastrand::Rng;

use proxy::{Call, Effect, Fault, Share};

/// Spoils about `percent` of the requests, in every way but silence, the same for the same seed.
fn seeded(seed: u64, percent: u8) -> impl FnMut(&Call) -> Option<Fault> + Send + 'static {
    const FAULTS: [Fault; 11] = [
        Fault::Throttled,
        Fault::Failed(Effect::None),
        Fault::Failed(Effect::Done),
        Fault::NoService,
        Fault::Unprocessed(Share::One),
        Fault::Unprocessed(Share::Half),
        Fault::Unprocessed(Share::All),
        Fault::Reset(Effect::None),
        Fault::Reset(Effect::Done),
        Fault::CutShort,
        Fault::Throttled,
    ];
    let mut rng = Rng::with_seed(seed);
    move |_| (rng.u8(..100) < percent).then(|| FAULTS[rng.usize(..FAULTS.len())])
}
