//! The program `roomtide`. The library does its work.

use std::process::ExitCode;

/// Storing readings allocates much; this allocator makes a POST a tenth faster. The static command for Linux would
/// otherwise use musl's allocator, which is slow with several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    roomtide_cli::main()
}
