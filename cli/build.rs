//! Tells the command its version: in a release build with the commit, if the source is a clone. Generates no code.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut version = env!("CARGO_PKG_VERSION").to_owned();
    // In a debug build each commit would compile the command again.
    if variable("PROFILE") == "release" {
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo::rerun-if-changed={log}");
        }
        if let Some(commit) = git(&["log", "-1", "--format=%h %cs", "--abbrev=12"]) {
            version = format!("{version} ({commit})");
        }
    }
    println!("cargo::rustc-env=ROOMTIDE_VERSION={version}");
}

/// What git says; nothing where there is no git, or no clone.
fn git(words: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script by the environment")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
