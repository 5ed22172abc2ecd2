//! Some requests at once. Knows none of them.

use std::pin::Pin;
use std::vec::IntoIter;

use futures_util::stream::{self, Buffered, Iter, TryCollect};
use futures_util::{StreamExt as _, TryStreamExt as _};

/// Requests, several of them made at once.
pub type AtOnce<F, T> = TryCollect<Buffered<Iter<IntoIter<Pin<Box<F>>>>>, Vec<T>>;

/// The results of requests in their order, at most so many made at once. The first error ends all.
pub fn at_once<T, E, F: Future<Output = Result<T, E>>>(
    most: usize,
    requests: impl IntoIterator<Item = F>,
) -> AtOnce<F, T> {
    // Before the first of them is waited for: so the future holds no iterator.
    let requests: Vec<_> = requests.into_iter().map(Box::pin).collect();
    stream::iter(requests).buffered(most).try_collect()
}
