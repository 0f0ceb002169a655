//! `rcu top`: what the library is doing in a process that is running.
//!
//! The process has to serve its statistics (`QUIESCENCE_STATS=1`); nothing is attached to it, and
//! nothing stops. [`find`] knows where processes serve, [`answer`] what they answer, [`view`] shows
//! it. On a terminal it is drawn again and again, until `q`; else it is one line a domain.

mod answer;
mod find;
mod terminal;
mod view;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::exit::{Failure, Result};
use crate::number::{real_within, within};
use crate::output::{Output, SchemaId};
use answer::Process;
use terminal::Keyboard;
use view::Order;

/// The JSON that this command writes, and its version; see `docs/JSON.md`.
const SCHEMA: SchemaId = SchemaId("quiescence/top", 1);

/// The arguments of `rcu top`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TopArgs {
    /// The process to look at; without it, the processes that serve are listed
    #[arg(value_name = "PID", value_parser = within(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,
    /// Time between two samples
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// The order of the domains; on a terminal, the key `s` switches to the next one
    #[arg(long, value_name = "ORDER", value_enum, default_value = "none")]
    sort: Order,
}

fn seconds(text: &str) -> Result<Duration, String> {
    real_within(0.1, 3600.0)(text).map(Duration::from_secs_f64)
}

/// Runs the command.
pub(crate) fn run(args: &TopArgs, output: &mut Output) -> Result {
    let Some(pid) = args.pid else {
        let processes = find::all(output);
        if output.must_stop() {
            return Err(output.stopped());
        }
        document(&processes, output);
        view::list(&processes, output);
        return Ok(());
    };
    let socket = find::socket_of(pid)?;
    let first = find::ask(&socket, pid, output);
    let first = first.map_err(|error| find::explain(pid, error, output))?;
    if output.has_json() {
        document(&[first], output);
        return Ok(());
    }
    let is_live = io::stdout().is_terminal();
    let keyboard = is_live.then(Keyboard::open).flatten();
    let mut order = args.sort;
    let mut earlier = first;
    loop {
        // Ends early if the user has had enough.
        let is_whole = output.wait(args.interval, || {
            let key = keyboard.as_ref().and_then(Keyboard::key);
            order = if key == Some(b's') { order.next() } else { order };
            key != Some(b'q')
        });
        if !is_whole {
            return Ok(());
        }
        let later = match find::ask(&socket, pid, output) {
            Ok(later) => later,
            Err(_) if output.must_stop() => return Ok(()),
            Err(error) => {
                // A process takes its socket away before it ends.
                output.wait(Duration::from_secs(1), || find::is_alive(pid));
                if find::is_alive(pid) {
                    return Err(find::explain(pid, error, output));
                }
                output.line(format_args!("process {pid} has ended"));
                return Ok(());
            }
        };
        if !is_live {
            view::lines(&earlier, &later, order, output);
            return Ok(());
        }
        // The terminal's window begins anew.
        let cleared = io::stdout().write_all(b"\x1b[H\x1b[2J").and_then(|()| io::stdout().flush());
        cleared.map_err(|error| Failure::io("cannot write to standard output", error))?;
        view::process(&earlier, &later, order, output);
        output.line("q ends this, s sorts.");
        earlier = later;
    }
}

fn document(answers: &[Process], output: &mut Output) {
    // What the processes answered, as it came.
    let processes: Vec<&Value> = answers.iter().map(|answer| &answer.came).collect();
    output.json(SCHEMA, [json!({ "processes": processes })]);
}
