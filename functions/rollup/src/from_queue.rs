//! Folds the bucket that a message of the queue names. Sends no message: SQS delivers a failed message again.

use runtime::clock::Clock;
use runtime::queue::{Failure, MessageConsumer};
use runtime::telemetry::WideEvent;
use runtime::work_queue::{FoldRequest, WorkQueue};
use table::{Invocation, Session};

use crate::bucket_folding::{BucketFolding, LocalDay};
use crate::ports::Store;
use crate::state::ZonedRollupState;

impl<S: Store, W: WorkQueue, C: Clock> MessageConsumer for BucketFolding<S, W, C> {
    type Message = FoldRequest;

    async fn apply(
        &self,
        FoldRequest { device, quarter }: FoldRequest,
        invocation: &Invocation,
        log: &mut WideEvent,
    ) -> Result<(), Failure> {
        // Each message gets a third of the time for retries, so that one throttled device leaves time for others.
        let invocation = &invocation.with_patience(invocation.patience() / 3);
        let session = Session::new(&self.store, invocation, self.clock.now());

        let ZonedRollupState { stored, zone } = self.state(session, log).await?;
        let sealed = stored.sealed_of(&device);
        let found = self.rules(session, std::slice::from_ref(&device)).await?.remove(&device);
        let mut rules = match found {
            Some(Ok(rules)) => rules,
            Some(Err(_)) => self.rules_of(session, &device).await?,
            // The device is deleted.
            None => return Ok(()),
        };

        self.quarter(session, &mut rules, quarter).await?;
        let day = LocalDay { zone, date: zone.date(quarter.start()) };
        self.day_of(session, &mut rules, day, quarter, sealed).await?;
        Ok(())
    }
}
