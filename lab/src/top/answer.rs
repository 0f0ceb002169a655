//! What a process replies, and what can be said of the time between two replies.
//!
//! The answer comes from another program, which may be of another version or mean ill: what is
//! missing is taken as nothing, and no text of it reaches a terminal with control characters.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::output::shortened;

/// The replies that we can read.
const SCHEMA: &str = "quiescence-stats/2";
/// Characters of a name that are shown: tables have other columns, too.
const NAME_MAX: usize = 32;
/// Domains that are shown: as many as a process lists.
const DOMAINS_MAX: usize = 256;

/// A process's answer: see `docs/JSON.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Process {
    /// The document, with what we do not know of as well.
    #[serde(skip)]
    pub(super) came: Value,
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) fences: String,
    monotonic_ns: u64,
    pub(super) domains_total: u64,
    pub(super) domains: Vec<Domain>,
}

/// One domain of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Domain {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) engine: String,
    pub(super) grace_periods: u64,
    pub(super) stalls: u64,
    pub(super) readers: u64,
    pub(super) callbacks_run: u64,
    pub(super) callbacks_waiting: u64,
    pub(super) bytes_waiting: u64,
    pub(super) objects_protected: u64,
    pub(super) bytes_protected: u64,
    pub(super) objects_max: u64,
    pub(super) bytes_max: u64,
    worker_ns: u64,
    worker_callbacks_ns: u64,
    latency: Vec<Bucket>,
    pub(super) longest_reader: Option<Reader>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Bucket {
    below_ns: u64,
    count: u64,
}

/// The reader that has been in its section longest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reader {
    pub(super) thread_id: u32,
    pub(super) thread_name: Option<String>,
    pub(super) location: Option<String>,
    pub(super) at_least_ns: u64,
}

impl Process {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Result<Process, String> {
        let came: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if came["schema"] != SCHEMA {
            return Err(format!("it is not {SCHEMA:?}"));
        }
        let mut process: Process =
            serde_json::from_value(printable(came.clone())).map_err(|error| error.to_string())?;
        process.domains.truncate(DOMAINS_MAX);
        let domains = process.domains.iter_mut().map(|domain| &mut domain.name);
        domains.chain([&mut process.program]).for_each(|name| *name = shortened(name, NAME_MAX));
        process.came = came;
        Ok(process)
    }

    /// Seconds since an earlier answer; `None` if it is another process's, or another program's
    /// (after `exec` a process counts anew), or no time has gone by.
    pub(super) fn seconds_since(&self, earlier: &Process) -> Option<f64> {
        let ns = self.monotonic_ns.checked_sub(earlier.monotonic_ns).filter(|ns| *ns > 0)?;
        let falls = |domain: &Domain| {
            let before = earlier.domain(domain.number);
            before.is_some_and(|before| domain.grace_periods < before.grace_periods)
        };
        let is_same = self.pid == earlier.pid && !self.domains.iter().any(falls);
        is_same.then_some(ns as f64 / 1e9)
    }

    /// The same domain, earlier or later.
    pub(super) fn domain(&self, number: u64) -> Option<&Domain> {
        self.domains.iter().find(|domain| domain.number == number)
    }
}

/// With a question mark for each control character: a terminal would obey it.
fn printable(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace(char::is_control, "?").into(),
        Value::Array(all) => all.into_iter().map(printable).collect(),
        Value::Object(all) => all.into_iter().map(|(key, each)| (key, printable(each))).collect(),
        other => other,
    }
}

impl Domain {
    /// How much of what may wait does, as a share; the greater of the two.
    pub(super) fn fullness(&self) -> f64 {
        let share = |waiting: u64, most: u64| waiting as f64 / most.max(1) as f64;
        let objects = share(self.callbacks_waiting, self.objects_max);
        objects.max(share(self.bytes_waiting, self.bytes_max))
    }

    /// CPU time of the worker, in nanoseconds.
    pub(super) fn worker_ns(&self) -> u64 {
        self.worker_ns.saturating_add(self.worker_callbacks_ns)
    }

    /// The latency, in nanoseconds, that this share of the grace periods since `earlier` stayed
    /// below; `None` if there were none, or it is beyond all measure.
    pub(super) fn quantile_since(&self, earlier: &Domain, share: f64) -> Option<u64> {
        let counts = self.latency.iter().map(|bucket| (bucket.below_ns, bucket.count));
        let mut since: BTreeMap<u64, u64> = counts.collect();
        for Bucket { below_ns, count } in &earlier.latency {
            since.entry(*below_ns).and_modify(|later| *later = later.saturating_sub(*count));
        }
        let count = since.values().fold(0u64, |sum, count| sum.saturating_add(*count));
        let rank = ((share * count as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        let found = since.into_iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        found.map(|(below_ns, _)| below_ns).filter(|below_ns| *below_ns != u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rates_are_of_one_program_in_one_process() {
        let process = |pid, monotonic_ns, grace_periods| {
            let domains = vec![Domain { number: 1, grace_periods, ..Domain::default() }];
            Process { pid, monotonic_ns, domains, ..Process::default() }
        };
        let since = |later: Process| later.seconds_since(&process(7, 1_000_000_000, 5));
        assert_eq!(since(process(7, 3_000_000_000, 5)), Some(2.0));
        assert_eq!(since(process(7, 3_000_000_000, 4)), None, "another program, after `exec`");
        assert_eq!(since(process(8, 3_000_000_000, 5)), None, "another process");
        for no_time in [0, 1_000_000_000] {
            assert_eq!(since(process(7, no_time, 5)), None);
        }
    }

    fn domain(latency: Value) -> Domain {
        serde_json::from_value(json!({"latency": latency})).unwrap()
    }

    #[test]
    fn quantiles_are_of_the_time_between() {
        let earlier = domain(json!([{"below_ns": 1024, "count": 1000}]));
        let later = domain(json!([
            {"below_ns": 1024, "count": 1001},
            {"below_ns": 4096, "count": 98},
            {"below_ns": 8192, "count": 1},
        ]));
        assert_eq!(later.quantile_since(&earlier, 0.5), Some(4096));
        assert_eq!(later.quantile_since(&earlier, 0.99), Some(4096));
        assert_eq!(later.quantile_since(&earlier, 1.0), Some(8192));
        assert_eq!(later.quantile_since(&Domain::default(), 0.5), Some(1024));
        assert_eq!(earlier.quantile_since(&earlier, 0.5), None);
    }

    #[test]
    fn no_answer_reaches_the_terminal_as_more_than_text() {
        let reader = json!({"location": "\u{9b}1m", "thread_name": "é"});
        let domains = json!([{"name": "a\nb", "longest_reader": reader}]);
        let line = json!({
            "schema": "quiescence-stats/2", "program": "\u{1b}[2J", "news": 1, "domains": domains,
        });
        let answer = Process::read(&line.to_string()).unwrap();
        assert_eq!(answer.program, "?[2J");
        let domain = &answer.domains[0];
        assert_eq!(domain.name, "a?b");
        let reader = domain.longest_reader.as_ref().unwrap();
        assert_eq!(reader.location.as_deref(), Some("?1m"));
        assert_eq!(reader.thread_name.as_deref(), Some("é"));
        assert_eq!(answer.came["news"], 1);
    }

    /// A program's name once filled the window.
    #[test]
    fn a_long_name_leaves_room_for_the_rest_of_the_table() {
        for (length, shown) in [(1, 1), (NAME_MAX, NAME_MAX), (100_000, NAME_MAX)] {
            let name = "é".repeat(length);
            let domains = [json!({"name": name})];
            let line = json!({"schema": "quiescence-stats/2", "program": name, "domains": domains});
            let answer = Process::read(&line.to_string()).unwrap();
            for seen in [&answer.domains[0].name, &answer.program] {
                assert_eq!((seen.chars().count(), seen.ends_with('…')), (shown, length > NAME_MAX));
            }
            assert_eq!(answer.came["domains"][0]["name"], name, "JSON has all of it");
        }
    }

    /// Each was looked for among all of the answer before: two of 4 MiB took minutes.
    #[test]
    fn more_domains_than_a_process_lists_are_not_compared() {
        let domains: Vec<_> = (0..1_000).map(|number| json!({"number": number})).collect();
        let line = json!({"schema": "quiescence-stats/2", "domains": domains});
        let answer = Process::read(&line.to_string()).unwrap();
        assert_eq!(answer.domains.len(), DOMAINS_MAX);
        assert_eq!(answer.came["domains"].as_array().unwrap().len(), 1_000);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let wrong = r#"{"schema": "quiescence-stats/2", "domains": 7}"#;
        assert!(Process::read(wrong).is_err());
    }
}
