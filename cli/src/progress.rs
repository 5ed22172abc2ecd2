//! The progress of a command: a bar on a terminal; elsewhere a line now and then, for a log. Counts nothing.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use runtime::clock::Stopwatch;

/// The time between two lines.
const EVERY: Duration = Duration::from_secs(10);
/// The picture of a bar, which no line has.
const PICTURE: &str = "{bar:40} ";
/// The width of a line: more than any line has.
const WIDTH: u16 = 1_000;

/// Makes a bar of this length and template.
pub(crate) fn bar(length: u64, template: &str) -> anyhow::Result<ProgressBar> {
    let is_seen = io::stderr().is_terminal();
    let template = if is_seen { template.to_owned() } else { template.replace(PICTURE, "") };
    let style = ProgressStyle::with_template(&template)?;
    Ok(ProgressBar::with_draw_target(Some(length), target(is_seen)).with_style(style))
}

/// Makes what shows a message.
pub(crate) fn spinner() -> ProgressBar {
    let is_seen = io::stderr().is_terminal();
    let bar = ProgressBar::with_draw_target(None, target(is_seen));
    let template = if is_seen { "{spinner} {msg}" } else { "  {msg}" };
    bar.with_style(ProgressStyle::with_template(template).expect("a template"))
}

fn target(is_seen: bool) -> ProgressDrawTarget {
    if is_seen {
        return ProgressDrawTarget::stderr();
    }
    let lines = Lines::new(io::stderr(), EVERY);
    ProgressDrawTarget::term_like_with_hz(Box::new(lines), 1)
}

/// A terminal that writes the newest line of some seconds, and no other.
#[derive(Debug)]
struct Lines<W>(Mutex<State<W>>);

#[derive(Debug)]
struct State<W> {
    out: W,
    every: Duration,
    since: Stopwatch,
    newest: String,
}

impl<W: Write> Lines<W> {
    fn new(out: W, every: Duration) -> Self {
        Self(Mutex::new(State { out, every, since: Stopwatch::start(), newest: String::new() }))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State<W>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<W: Write + Send + std::fmt::Debug> TermLike for Lines<W> {
    fn width(&self) -> u16 {
        WIDTH
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.with(|it| it.newest.push_str(text));
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(|it| it.newest.clear());
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.with(|State { out, every, since, newest }| {
            let line = std::mem::take(newest);
            if line.trim().is_empty() || since.elapsed() < *every {
                return Ok(());
            }
            *since = Stopwatch::start();
            writeln!(out, "{}", line.trim_end())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(every: Duration) -> String {
        let out = Shared::default();
        let lines = Lines::new(out.clone(), every);
        let target = ProgressDrawTarget::term_like(Box::new(lines));
        let style = ProgressStyle::with_template("  {percent:>3} %  {msg}").unwrap();
        let bar = ProgressBar::with_draw_target(Some(4), target).with_style(style);
        for n in 1..4 {
            bar.set_message(format!("{n} readings"));
            bar.set_position(n);
            bar.tick();
        }
        bar.finish_and_clear();
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn where_nobody_sees_a_bar_a_line_comes_now_and_then() {
        let all = written(Duration::ZERO);
        assert!(all.ends_with("\n   75 %  3 readings\n"), "{all:?}");
        assert!(
            all.lines().all(|line| line.ends_with(" readings") || line.ends_with('%')),
            "{all}"
        );
        assert_eq!(written(EVERY), "", "a short command says nothing");
    }
}
