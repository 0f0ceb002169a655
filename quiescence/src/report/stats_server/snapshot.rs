//! The replies of [`super`]: JSON on one line, described in `docs/JSON.md`.
//!
//! Numbers and strings are formatted into the text of each object: that is less code than a JSON
//! writer with a call for each member.

use std::fmt::{self, Write};
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

use grace::{Number, word};

use crate::event::statistics::Statistics;
use crate::gp::engine::Engine;
use crate::gp::registry::Registry;
use crate::gp::slot::Slot;
use crate::os::fence::{self, Fences};
use crate::os::{clock, thread_state};
use crate::reclaim::domain_state::{self, DomainState};

/// The schema of the replies. The number grows when a program that reads the old ones would fail.
const SCHEMA: &str = "quiescence-stats/2";
/// The largest number of domains in a reply. A process may have more.
const DOMAINS_MAX: usize = 256;

/// A string of JSON, or `null`. Control characters are escaped, so the document stays on one line.
struct Text<'a>(Option<&'a str>);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(text) = self.0 else { return f.write_str("null") };
        f.write_char('"')?;
        for character in text.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                // All control characters are below U+00A0.
                control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

/// What was wrong with a request.
pub(super) fn of_mistake(mistake: &str) -> String {
    format!("{{\"schema\":\"{SCHEMA}\",\"error\":{}}}", Text(Some(mistake)))
}

/// Shown: the statistics of all domains.
pub(super) struct Process;

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time_ns, monotonic_ns) = (clock::time_ns(), clock::monotonic_ns());
        let pid = std::process::id();
        let program = std::env::current_exe().unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy();
        let program = Text(Some(&program));
        let fences = match fence::chosen() {
            Fences::Membarrier => "membarrier",
            Fences::Portable => "portable",
        };
        let (domains, total) = domain_state::list(DOMAINS_MAX);
        write!(
            f,
            "{{\"schema\":\"{SCHEMA}\",\"pid\":{pid},\"program\":{program},\
             \"time_ns\":{time_ns},\"monotonic_ns\":{monotonic_ns},\"fences\":\"{fences}\",\
             \"domains_total\":{total},\"domains\":["
        )?;
        let mut comma = "";
        // Dropping the last handle to a domain runs what waits in it, as on the worker.
        for domain in domains {
            f.write_str(comma)?;
            of_domain(f, &domain)?;
            comma = ",";
        }
        f.write_str("]}")
    }
}

fn of_domain(f: &mut fmt::Formatter<'_>, core: &DomainState) -> fmt::Result {
    let statistics = Statistics::of(core);
    let (engine, in_progress, longest_reader) = look(core);
    let tuning = &core.grace_periods.tuning;
    let observers = &core.grace_periods.observers;
    let label = observers.label();
    let (number, name) = (observers.identity(), Text(Some(&label)));
    write!(f, "{{\"number\":{number},\"name\":{name},\"engine\":\"{engine}\"")?;
    for (key, count) in statistics.counts() {
        write!(f, ",\"{key}\":{count}")?;
    }
    let waiting = statistics.callbacks_waiting();
    let (objects_max, bytes_max) = (tuning.objects_max(), tuning.bytes_max());
    write!(
        f,
        ",\"callbacks_waiting\":{waiting},\"objects_max\":{objects_max},\
         \"bytes_max\":{bytes_max},\"latency\":["
    )?;
    let mut comma = "";
    for (range, count) in statistics.latency.buckets() {
        let (from, below) = (range.start, range.end);
        write!(f, "{comma}{{\"from_ns\":{from},\"below_ns\":{below},\"count\":{count}}}")?;
        comma = ",";
    }
    f.write_str("],\"in_progress\":")?;
    match in_progress {
        None => f.write_str("null")?,
        Some((number, waits_ns)) => {
            write!(f, "{{\"number\":{number},\"waits_ns\":{waits_ns}}}")?;
        }
    }
    f.write_str(",\"longest_reader\":")?;
    match longest_reader {
        None => f.write_str("null")?,
        Some(reader) => of_reader(f, &reader)?,
    }
    f.write_char('}')
}

fn of_reader(f: &mut fmt::Formatter<'_>, reader: &LongestReader) -> fmt::Result {
    let LongestReader { qsbr, thread, at_least_ns, .. } = reader;
    let name = thread_state::look_at(*thread).name;
    let location = reader.location.map(|location| format!("{location}"));
    let (name, location) = (Text(name.as_deref()), Text(location.as_deref()));
    write!(
        f,
        "{{\"qsbr\":{qsbr},\"thread_id\":{thread},\"thread_name\":{name},\
         \"location\":{location},\"at_least_ns\":{at_least_ns}}}"
    )
}

/// The reader whose section began under the oldest number, of those in a section now.
struct LongestReader {
    qsbr: bool,
    /// The system's id of the thread; 0 if it has none.
    thread: u32,
    /// Where the outermost section began.
    location: Option<&'static Location<'static>>,
    /// The shortest time that it can have been in it: a grace period has waited for it so long.
    at_least_ns: u64,
}

/// Looks at a domain from outside while it works: its engine; the number of the grace period in
/// progress, which is how many have ended once it has, and how long it has been waiting for
/// holdouts; and the longest reader.
///
/// During the look, which takes as long as a grace period's scan, sections go on but grace periods
/// do not. So it is meant for a thread that looks about once a second, and is no part of
/// [`Statistics`].
fn look(core: &DomainState) -> (&'static str, Option<(u64, u64)>, Option<LongestReader>) {
    let now_ns = clock::monotonic_ns();
    // While these are held, no grace period takes a step, and no reader registers or unregisters.
    let (state, registry) = (core.grace_periods.lock(), core.grace_periods.registry());
    let machine = state.machine();
    let (sequence, waits_since_ns) = (machine.sequence(), state.current.waits_since_ns);
    let waited_ns = waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
    let in_progress = sequence.in_progress().then(|| (sequence.ended().wrapping_add(1), waited_ns));
    let waits_ns = in_progress.map_or(0, |(_, waits_ns)| waits_ns);
    let (engine, longest_reader) = if let Some(counted) = core.grace_periods.counted() {
        let reader = counted.oldest_guard().map(|(live, _)| LongestReader {
            qsbr: false,
            thread: live.thread,
            location: Some(live.location),
            at_least_ns: now_ns.saturating_sub(live.since_ns),
        });
        ("srcu", reader)
    } else {
        let reader = longest(&registry, core.grace_periods.announced());
        let reader = reader.map(|(slot, turns)| LongestReader {
            qsbr: slot.is_qsbr(),
            thread: slot.notes.thread.get(),
            location: slot.notes.began(),
            // A section under the latest number may have begun just now.
            at_least_ns: if turns == 0 { 0 } else { waits_ns },
        });
        (Engine::of_policy(machine.policy()).name(), reader)
    };
    (engine, in_progress, longest_reader)
}

/// The reader whose section began under the oldest number, and how many numbers have been announced
/// since.
fn longest(registry: &Registry, announced: Number) -> Option<(&Slot, u32)> {
    let inside = registry.readers().filter_map(|slot| {
        // Relaxed: it is only shown; nothing is freed because of it.
        let word = slot.word().load(Relaxed);
        match word::nesting(word) {
            0 => None,
            // A reader in a relay that has come online and has no number yet.
            nesting if slot.is_qsbr() && nesting != 1 => Some((slot, 0)),
            _ => Some((slot, announced.0.wrapping_sub(word::number(word).0))),
        }
    });
    inside.max_by_key(|(_, turns)| *turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_back() {
        let mut all: String =
            (0..if cfg!(miri) { 0xff } else { 0x2fff }).filter_map(char::from_u32).collect();
        all.push_str("\u{10ffff}\u{2028}é");
        for text in [all.as_str(), ""] {
            let json = Text(Some(text)).to_string();
            assert!(!json.contains(char::is_control));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
        assert_eq!(Text(None).to_string(), "null");
    }
}
