//! The replies of [`super`]: JSON on one line, described in `docs/JSON.md`.
//!
//! Numbers and strings are formatted into the text of each object: that is less code than a JSON
//! writer with a call for each member.

use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::statistics::Statistics;
use crate::os::fence::{self, Fences};
use crate::os::{clock, thread_state};
use crate::reclaim::domain_state::{self, DomainState};
use crate::report::inspect::{InProgress, LongestReader, Look};

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

/// The statistics of all domains.
pub(super) fn of_process() -> String {
    format!("{Process}")
}

/// What was wrong with a request.
pub(super) fn of_mistake(mistake: &str) -> String {
    format!("{{\"schema\":\"{SCHEMA}\",\"error\":{}}}", Text(Some(mistake)))
}

struct Process;

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (time_ns, monotonic_ns) = (since_epoch.as_nanos() as u64, clock::monotonic_ns());
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
    let Look { engine, in_progress, longest_reader } = core.look();
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
        Some(InProgress { number, waits_ns }) => {
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
