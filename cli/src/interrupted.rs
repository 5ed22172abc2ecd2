//! The stop of a command by a signal: the error, the exit code, and the removal of unfinished files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io, process};

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

use crate::output::print_error;

/// The exit code of a command that Ctrl-C stopped: 128 and the signal's number, as shells count.
pub(crate) const EXIT_CODE: u8 = 130;

/// The error of a command that a person stopped.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Whether the command itself handles Ctrl-C and SIGTERM. Then the handlers of `remove_if_stopped` ignore these
/// signals.
static ENDS_IN_ORDER: AtomicBool = AtomicBool::new(false);

/// The files that a signal removes before it ends the process.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes an unfinished file or directory when a signal ends this process.
///
/// The handlers run in tasks of their own, because the command may be busy and cannot be asked to end.
pub(crate) fn remove_if_stopped(file: &Path) -> io::Result<()> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(file.to_owned());
    #[cfg(not(unix))]
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            if !ENDS_IN_ORDER.load(Ordering::Acquire) {
                end(EXIT_CODE.into());
            }
        }
    });

    #[cfg(unix)]
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        if is_ignored(kind) {
            continue;
        }
        let mut signal = signal(kind)?;
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                if kind == SignalKind::hangup() || !ENDS_IN_ORDER.load(Ordering::Acquire) {
                    end(128 + kind.as_raw_value());
                }
            }
        });
    }

    Ok(())
}

fn end(code: i32) -> ! {
    remove_unfinished();
    print_error(Interrupted);
    process::exit(code)
}

/// Removes the unfinished files and directories.
fn remove_unfinished() {
    for file in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // A finished file has another name already. A directory is tried again, because the command may add a file
        // meanwhile.
        for _ in 0..10 {
            if fs::remove_file(file).or_else(|_| fs::remove_dir_all(file)).is_ok() {
                break;
            }
        }
    }
}

/// Returns whether the signal is ignored, as the parent process asked for with `nohup`. Only Linux tells; on other
/// systems the hangup signal counts as ignored.
#[cfg(unix)]
fn is_ignored(kind: SignalKind) -> bool {
    let ignored = || {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        Some(mask >> (kind.as_raw_value() - 1) & 1 == 1)
    };
    ignored().unwrap_or(kind == SignalKind::hangup())
}

/// Sets the flag on Ctrl-C or SIGTERM, so that the command ends in order and reports its progress. A second signal ends
/// the process at once.
pub(crate) fn stop_on_ctrl_c(interrupted: Arc<AtomicBool>) {
    ENDS_IN_ORDER.store(true, Ordering::Release);
    tokio::spawn(async move {
        let Ok(stopped) = stop_signal() else { return };
        stopped.await;
        interrupted.store(true, Ordering::Release);
        end_at_next_signal().await;
    });
}

/// Ends the process at once when it is stopped again: its end in order may wait for other commands.
async fn end_at_next_signal() {
    let Ok(stopped) = stop_signal() else { return };
    stopped.await;
    remove_unfinished();
    process::exit(EXIT_CODE.into());
}

/// Works until Ctrl-C, after which the same command continues. A second Ctrl-C ends the process at once.
pub(crate) async fn until_ctrl_c<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => {
            tokio::spawn(end_at_next_signal());
            Err(anyhow::Error::new(Interrupted).context("the same command continues where it stopped"))
        }
    }
}

/// Returns a future that ends when a person or a supervisor stops the command.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        drop(tokio::signal::ctrl_c().await);
    })
}

/// The exit code of a command that failed with this error.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let interrupted = error.chain().find_map(|cause| cause.downcast_ref::<Interrupted>());
    if interrupted.is_some() { ExitCode::from(EXIT_CODE) } else { ExitCode::FAILURE }
}
