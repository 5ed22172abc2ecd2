//! The retry policy of an event source mapping for a failed batch. Does not wait and invokes nothing.
//!
//! The rules are those of `ReportBatchItemFailures` with `BisectBatchOnFunctionError`. Records before the first
//! reported failure are done; the rest is tried again from that record. A batch that fails as a whole is tried again in
//! halves, which uses up no attempt. One rule differs from AWS: when the attempts of a partial failure are used up,
//! only the failed record is given up, and not all records after it.

use std::ops::Range;

/// The outcome of an invocation for the records that it received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All records are done.
    Done,
    /// The records before this position in the batch are done; this record is not.
    FailedFrom(usize),
    /// No record is known to be done: the function failed, took too long or reported an unknown record.
    FailedWhole,
}

/// What the poller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Go on at once.
    GoOn,
    /// Go on after a pause; the number counts the failures of these records.
    Pause(u32),
    /// Give up these records, and go on at once.
    GiveUp(Range<usize>),
}

/// The delivery of one batch, until each of its records is done or given up.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The number of times that the same records are tried again before they are given up.
    retries: u32,
    // A stack: the first part of the batch is on top.
    open: Vec<BatchPart>,
}

#[derive(Debug)]
struct BatchPart {
    records: Range<usize>,
    failures: u32,
}

impl Delivery {
    /// Begins the delivery of a batch of `length` records.
    pub(crate) fn new(length: usize, retries: u32) -> Self {
        let whole = BatchPart { records: 0..length, failures: 0 };
        Self { retries, open: if length == 0 { Vec::new() } else { vec![whole] } }
    }

    /// Returns the records to deliver next; `None` at the end of the batch.
    pub(crate) fn next(&self) -> Option<Range<usize>> {
        self.open.last().map(|part| part.records.clone())
    }

    /// Records the outcome for the records that [`next`](Self::next) returned.
    pub(crate) fn report(&mut self, outcome: Outcome) -> NextStep {
        let Some(BatchPart { records, failures }) = self.open.pop() else { return NextStep::GoOn };

        match outcome {
            Outcome::Done => NextStep::GoOn,
            Outcome::FailedFrom(first) if records.contains(&first) => {
                let failures = if first == records.start { failures + 1 } else { 1 };
                if failures > self.retries {
                    self.push(first + 1..records.end, 0);
                    return NextStep::GiveUp(first..first + 1);
                }
                self.push(first..records.end, failures);
                NextStep::Pause(failures)
            }
            Outcome::FailedWhole | Outcome::FailedFrom(_) if records.len() > 1 => {
                let middle = records.start + records.len() / 2;
                self.push(middle..records.end, failures);
                self.push(records.start..middle, failures);
                NextStep::Pause(failures + 1)
            }
            Outcome::FailedWhole | Outcome::FailedFrom(_) => {
                let failures = failures + 1;
                if failures > self.retries {
                    return NextStep::GiveUp(records);
                }
                self.push(records, failures);
                NextStep::Pause(failures)
            }
        }
    }

    fn push(&mut self, records: Range<usize>, failures: u32) {
        if !records.is_empty() {
            self.open.push(BatchPart { records, failures });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: u32 = 2;

    /// Runs a delivery against a function. Returns the ranges that it received and the records given up.
    fn run(
        length: usize,
        mut function: impl FnMut(Range<usize>) -> Outcome,
    ) -> (Vec<Range<usize>>, Vec<usize>) {
        let mut delivery = Delivery::new(length, RETRIES);
        let (mut seen, mut given_up) = (Vec::new(), Vec::new());
        while let Some(records) = delivery.next() {
            seen.push(records.clone());
            assert!(seen.len() < 10_000, "it does not end");
            if let NextStep::GiveUp(records) = delivery.report(function(records)) {
                given_up.extend(records);
            }
        }
        (seen, given_up)
    }

    #[test]
    fn a_batch_that_succeeds_is_handed_over_once() {
        let (seen, given_up) = run(5, |_| Outcome::Done);
        assert_eq!((seen.len(), &seen[0], given_up), (1, &(0..5), vec![]));
        assert_eq!(run(0, |_| Outcome::Done), (vec![], vec![]));
    }

    #[test]
    fn a_partial_failure_is_tried_again_from_its_record() {
        let mut failed = false;
        let (seen, given_up) = run(5, |_| {
            if std::mem::replace(&mut failed, true) {
                Outcome::Done
            } else {
                Outcome::FailedFrom(3)
            }
        });
        assert_eq!((seen, given_up), (vec![0..5, 3..5], vec![]));
    }

    #[test]
    fn a_record_that_always_fails_is_given_up_and_the_rest_goes_on() {
        let (seen, given_up) =
            run(
                5,
                |records| {
                    if records.contains(&2) { Outcome::FailedFrom(2) } else { Outcome::Done }
                },
            );
        assert_eq!(seen, [0..5, 2..5, 2..5, 3..5]);
        assert_eq!(given_up, [2]);
    }

    #[test]
    fn a_batch_that_fails_as_a_whole_is_halved_down_to_the_record_that_spoils_it() {
        let mut done = Vec::new();
        let (_, given_up) = run(100, |records| {
            if records.contains(&37) {
                return Outcome::FailedWhole;
            }
            done.extend(records);
            Outcome::Done
        });
        assert_eq!(given_up, [37]);
        assert_eq!(done, (0..100).filter(|n| *n != 37).collect::<Vec<_>>(), "in order, each once");
    }

    #[test]
    fn a_position_outside_of_the_batch_counts_as_a_whole_failure() {
        let (seen, given_up) = run(2, |_| Outcome::FailedFrom(7));
        assert_eq!(seen[..3], [0..2, 0..1, 0..1]);
        assert_eq!(given_up, [0, 1]);
    }

    #[test]
    fn progress_gives_the_next_record_all_its_attempts() {
        let (_, given_up) = run(4, |records| Outcome::FailedFrom(records.start));
        assert_eq!(given_up, [0, 1, 2, 3]);
        let mut failures = [0; 4];
        let (_, given_up) = run(4, |mut records| {
            let Some(failing) = records.find(|n| failures[*n] < RETRIES) else {
                return Outcome::Done;
            };
            failures[failing] += 1;
            Outcome::FailedFrom(failing)
        });
        assert!(given_up.is_empty(), "{given_up:?}");
    }
}
