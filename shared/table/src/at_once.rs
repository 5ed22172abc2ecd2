//! Runs several requests at once. Knows no particular request.

use std::pin::Pin;
use std::vec::IntoIter;

use futures_util::stream::{self, Buffered, Iter, TryCollect};
use futures_util::{StreamExt as _, TryStreamExt as _};

/// A future that runs several requests at once.
pub type AtOnce<F, T> = TryCollect<Buffered<Iter<IntoIter<Pin<Box<F>>>>>, Vec<T>>;

/// Runs at most `most` requests at once, and returns their results in order. The first error ends all.
pub fn at_once<T, E, F: Future<Output = Result<T, E>>>(
    most: usize,
    requests: impl IntoIterator<Item = F>,
) -> AtOnce<F, T> {
    // All requests are collected first, so that the future does not hold the caller's iterator.
    let requests: Vec<_> = requests.into_iter().map(Box::pin).collect();
    stream::iter(requests).buffered(most).try_collect()
}
