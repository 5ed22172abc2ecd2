//! `roomtide`: the whole system on one machine. Everything it does is in the library.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    local::cli::run().await
}
