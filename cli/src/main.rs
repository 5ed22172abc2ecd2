//! The program `roomtide`. What it does is in the library.

use std::process::ExitCode;

/// Storing readings allocates and frees much; this allocator takes a tenth less time for a POST. The static command for
/// Linux would have that of musl, which is slow where several threads allocate.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    roomtide_cli::main()
}
