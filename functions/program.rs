//! The program of a function, as Lambda starts it. Each function's manifest names this file as a test of its own.

#[test]
fn without_its_environment_it_ends_and_names_what_is_missing() {
    let program = env!(concat!("CARGO_BIN_EXE_", env!("CARGO_PKG_NAME")));
    let ended = std::process::Command::new(program).env_clear().output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("AWS_REGION"), "{said}");
}
