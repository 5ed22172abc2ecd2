//! The server of tests, with a client that takes it for Roomtide. Knows no endpoint.

use std::ops::Deref;
use std::time::Duration;

use history::fake_server;

pub(crate) use fake_server::{Reply, Request};

use crate::client::Client;

/// A running server.
pub(crate) struct FakeRoomtide(fake_server::FakeServer);

impl Deref for FakeRoomtide {
    type Target = fake_server::FakeServer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FakeRoomtide {
    /// A client that waits for nothing.
    pub(crate) fn client(&self) -> Client {
        Client::impatient(&self.url, Duration::ZERO)
    }
}

/// Starts a server that answers every request so.
pub(crate) fn always(status: u16, body: &str) -> FakeRoomtide {
    FakeRoomtide(fake_server::always(status, body))
}

/// Starts a server with these answers one after the other.
pub(crate) fn in_turn(answers: &[(u16, &str)]) -> FakeRoomtide {
    FakeRoomtide(fake_server::in_turn(answers))
}

/// Starts a server that answers the n-th request, from 0, with `answer(n, request)`.
pub(crate) fn serve(
    answer: impl Fn(usize, Request) -> Reply + Send + Sync + 'static,
) -> FakeRoomtide {
    FakeRoomtide(fake_server::serve(answer))
}
