//! The progress of a command: a bar on a terminal; elsewhere an occasional line, for a log. Counts nothing.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike,
};
use runtime::clock::Stopwatch;

/// The interval between two lines.
const EVERY: Duration = Duration::from_secs(10);
/// The drawing in a bar's template. The lines for a log leave the drawing out.
const PICTURE: &str = "{bar:40} ";
/// The width of a line, larger than any line.
const WIDTH: u16 = 1_000;

/// Makes a bar of this length that shows the share done, and a message.
pub(crate) fn share(length: u64) -> anyhow::Result<ProgressBar> {
    bar(length, "  {bar:40} {percent:>3} %  {msg}  {left}")
}

/// Makes a bar of this length and template; `{left}` is the remaining time.
pub(crate) fn bar(length: u64, template: &str) -> anyhow::Result<ProgressBar> {
    let is_seen = io::stderr().is_terminal();
    let template = if is_seen { template.to_owned() } else { template.replace(PICTURE, "") };
    Ok(ProgressBar::with_draw_target(Some(length), target(is_seen)).with_style(style(&template)?))
}

fn style(template: &str) -> anyhow::Result<ProgressStyle> {
    Ok(ProgressStyle::with_template(template)?.with_key("left", write_left))
}

/// Writes the remaining time at the mean pace so far; nothing at the beginning.
#[expect(clippy::cast_precision_loss, reason = "a time for people")]
fn write_left(state: &ProgressState, text: &mut dyn fmt::Write) {
    let (done, all) = (state.pos(), state.len().unwrap_or_default());
    if done == 0 || all < done {
        return;
    }

    let seconds = state.elapsed().as_secs_f64() * (all - done) as f64 / done as f64;
    if let Ok(left) = Duration::try_from_secs_f64(seconds) {
        write!(text, "{:#} left", HumanDuration(left)).unwrap_or_default();
    }
}

/// Makes a spinner with a message.
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

/// A terminal for logs, which writes only the newest line of every few seconds.
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

impl<W: Write + Send + fmt::Debug> TermLike for Lines<W> {
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
        self.with(|shared| shared.newest.push_str(text));
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(|shared| shared.newest.clear());
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
    fn no_time_is_left_before_something_is_done() {
        let out = Shared::default();
        let lines = Lines::new(out.clone(), Duration::ZERO);
        let target = ProgressDrawTarget::term_like(Box::new(lines));
        let style = style("  {percent:>3} %  {left}").unwrap();
        let bar = ProgressBar::with_draw_target(Some(4), target).with_style(style);
        for position in [0, 1] {
            std::thread::sleep(Duration::from_millis(20));
            bar.set_position(position);
            bar.tick();
        }
        bar.finish_and_clear();
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("    0 %\n"), "{text:?}");
        assert!(text.contains("\n   25 %  ") && text.ends_with("s left\n"), "{text:?}");
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
