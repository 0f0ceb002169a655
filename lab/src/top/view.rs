//! What `rcu top` shows: the processes that serve, or the domains of one of them; as a table that
//! fits the window, or one line a domain.

use std::cmp::Reverse;

use bench::units;
use clap::ValueEnum;

use super::answer::{Domain, Process};
use crate::output::{self, Output};

/// The processes that serve.
pub(super) fn list(processes: &[Process], output: &mut Output) {
    if processes.is_empty() {
        return output.paragraph(
            "No process of this user serves its statistics in the usual places. Start one with \
             QUIESCENCE_STATS=1 in its environment; if it names a path, use rcu top PID.",
        );
    }
    let header = ["pid", "program", "domains", "grace periods", "waiting", "stalls"];
    let row = |Process { pid, program, domains_total, domains, .. }: &Process| {
        let sum = |count: fn(&Domain) -> u64| {
            units::count(domains.iter().map(count).fold(0, u64::saturating_add))
        };
        [
            pid.to_string(),
            program.clone(),
            units::count(*domains_total),
            sum(|domain| domain.grace_periods),
            sum(|domain| domain.callbacks_waiting),
            sum(|domain| domain.stalls),
        ]
    };
    output.table(output::table(&header, [0, 2, 3, 4, 5], processes.iter().map(row)));
    output.line("rcu top PID shows one of them.");
}

/// What the domains are sorted by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Order {
    /// As the process reports them
    None,
    /// By name
    Name,
    /// Most callbacks waiting first
    Waiting,
    /// Most bytes waiting first
    Bytes,
    /// Most stalls first
    Stalls,
}

impl Order {
    pub(super) fn next(self) -> Order {
        let all = Order::value_variants();
        all[(self as usize + 1) % all.len()]
    }

    fn sorted(self, process: &Process) -> Vec<&Domain> {
        let mut domains: Vec<&Domain> = process.domains.iter().collect();
        match self {
            Order::None => {}
            Order::Name => domains.sort_by_key(|each| in_parts(&each.name)),
            Order::Waiting => domains.sort_by_key(|each| Reverse(each.callbacks_waiting)),
            Order::Bytes => domains.sort_by_key(|each| Reverse(each.bytes_waiting)),
            Order::Stalls => domains.sort_by_key(|each| Reverse(each.stalls)),
        }
        domains
    }
}

/// A name as it is sorted: the number at its end is one, as of domains without a name ("#10").
fn in_parts(name: &str) -> (&str, Option<u64>, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().ok(), name)
}

/// What a domain has done since an earlier answer; no rates, if that says nothing of them.
struct Since<'a> {
    before: &'a Domain,
    domain: &'a Domain,
    seconds: Option<f64>,
}

impl Since<'_> {
    fn rate(&self, count: fn(&Domain) -> u64, written: fn(f64) -> String) -> String {
        let since = count(self.domain).saturating_sub(count(self.before));
        self.seconds.map_or_else(|| "–".to_owned(), |seconds| written(since as f64 / seconds))
    }

    fn latency(&self, share: f64) -> String {
        let below_ns = self.domain.quantile_since(self.before, share);
        below_ns.map_or_else(|| "–".to_owned(), |ns| units::nanoseconds(ns as f64))
    }
}

/// A column: its title; when a narrow window loses it, the greatest first, and those with 0 never;
/// and its cells.
type Column = (&'static str, u8, fn(&Since<'_>) -> String);

const COLUMNS: [Column; 11] = [
    ("domain", 0, |of| of.domain.name.clone()),
    ("engine", 4, |of| of.domain.engine.clone()),
    ("grace periods/s", 0, |of| of.rate(|domain| domain.grace_periods, per_second)),
    ("p50 below", 7, |of| of.latency(0.5)),
    ("p99 below", 3, |of| of.latency(0.99)),
    ("waiting", 0, |of| units::count(of.domain.callbacks_waiting)),
    ("bytes", 2, |of| units::bytes(of.domain.bytes_waiting)),
    ("of limit", 6, |of| share(of.domain.fullness())),
    ("callbacks/s", 5, |of| of.rate(|domain| domain.callbacks_run, per_second)),
    ("stalls", 1, |of| units::count(of.domain.stalls)),
    ("worker", 8, |of| of.rate(Domain::worker_ns, |ns| share(ns / 1e9))),
];

/// The columns that fit, in their order, none of them broken.
fn columns_that_fit(rows: &[[String; 11]], width: usize) -> Vec<usize> {
    const BETWEEN: usize = 3;
    let characters = |text: &str| text.chars().count();
    let wide = |column: usize| {
        let cells = rows.iter().map(|row| characters(&row[column])).max().unwrap_or(0);
        cells.max(characters(COLUMNS[column].0)) + BETWEEN
    };
    let mut kept: Vec<usize> = (0..COLUMNS.len()).collect();
    for least_needed in (1..=8).rev() {
        if kept.iter().map(|&column| wide(column)).sum::<usize>() > width {
            kept.retain(|&column| COLUMNS[column].1 != least_needed);
        }
    }
    kept
}

/// The rows of these domains, in their order.
fn rows(earlier: &Process, later: &Process, domains: &[&Domain]) -> Vec<[String; 11]> {
    let seconds = later.seconds_since(earlier);
    let nothing = Domain::default();
    // A domain that is new began with nothing.
    let before = |domain: &Domain| earlier.domain(domain.number).unwrap_or(&nothing);
    let since = domains.iter().map(|domain| Since { before: before(domain), domain, seconds });
    since.map(|of| COLUMNS.map(|(.., cell)| cell(&of))).collect()
}

/// One line a domain, for programs that read lines.
pub(super) fn lines(earlier: &Process, later: &Process, order: Order, output: &mut Output) {
    let domains = order.sorted(later);
    let rows = rows(earlier, later, &domains);
    for (domain, row) in domains.into_iter().zip(rows) {
        let cells = COLUMNS.iter().zip(row).map(|((title, ..), cell)| format!("{title}: {cell}"));
        let longest = longest(domain).map(|text| format!("longest reader: {text}"));
        let kept = protected(domain).map(|text| format!("kept by hazard pointers: {text}"));
        let line: Vec<String> = cells.chain(longest).chain(kept).collect();
        output.line(line.join("; "));
    }
}

/// The domains of a process, and what they did between two replies.
pub(super) fn process(earlier: &Process, later: &Process, order: Order, output: &mut Output) {
    output.paragraph(format_args!(
        "{} (process {}), {} fences, {} {}",
        later.program,
        later.pid,
        later.fences,
        units::count(later.domains_total),
        if later.domains_total == 1 { "domain" } else { "domains" },
    ));
    let hidden = later.domains_total.saturating_sub(later.domains.len() as u64);
    if hidden != 0 {
        output.line(format_args!("{} of them are not listed", units::count(hidden)));
    }
    let domains = order.sorted(later);
    let rows = rows(earlier, later, &domains);
    let kept = columns_that_fit(&rows, output.width.into());
    let header: Vec<&str> = kept.iter().map(|&column| COLUMNS[column].0).collect();
    let numbers = (0..kept.len()).filter(|place| kept[*place] >= 2);
    let rows = rows.iter().map(|row| kept.iter().map(|&column| &row[column]));
    output.table(output::table(&header, numbers, rows));
    output.line("");
    let of =
        |domain: &&Domain| Some((format!("longest reader of {}", domain.name), longest(domain)?));
    let in_it = |domain: &&Domain| {
        Some((format!("kept in {} by hazard pointers", domain.name), protected(domain)?))
    };
    output.entries(domains.iter().filter_map(of).chain(domains.iter().filter_map(in_it)));
}

/// What hazard pointers keep from being freed.
fn protected(domain: &Domain) -> Option<String> {
    let (objects, bytes) = (domain.objects_protected, domain.bytes_protected);
    (objects != 0).then(|| format!("{} objects, {}", units::count(objects), units::bytes(bytes)))
}

fn per_second(rate: f64) -> String {
    if rate >= 1000.0 { units::count(rate.round() as u64) } else { units::figures(rate) }
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Who has been in its section longest, for how long at least, and where; no time for one that no
/// grace period has had to wait for.
fn longest(domain: &Domain) -> Option<String> {
    let reader = domain.longest_reader.as_ref()?;
    let name = reader.thread_name.as_deref().unwrap_or("thread");
    let time = match reader.at_least_ns {
        0 => String::new(),
        ns => format!(" for {} at least", units::nanoseconds(ns as f64)),
    };
    let location = reader.location.as_deref().unwrap_or("an unknown place");
    Some(format!("{name} ({}), reading{time}, since {location}", reader.thread_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_row() -> [String; 11] {
        let cells = ["routes", "adaptive", "1,234", "131 µs", "1.05 ms", "12,345", "1.5 MiB"];
        let rest = ["12.5 %", "1,234,567", "0", "1.2 %"];
        let cells: Vec<String> = cells.into_iter().chain(rest).map(str::to_owned).collect();
        cells.try_into().unwrap()
    }

    #[test]
    fn a_narrow_window_loses_columns_and_no_words() {
        assert_eq!(columns_that_fit(&[a_row()], 140).len(), COLUMNS.len());
        let kept = columns_that_fit(&[a_row()], 80);
        assert!(kept.len() < COLUMNS.len() && kept.starts_with(&[0]), "{kept:?}");
        let header: usize = kept.iter().map(|&column| COLUMNS[column].0.len() + 3).sum();
        assert!(header <= 80, "{kept:?}");
        // What matters most stays, however narrow it is.
        assert_eq!(columns_that_fit(&[a_row()], 10), [0, 2, 5]);
    }

    #[test]
    fn domains_are_sorted() {
        let mut process = Process::default();
        for (name, waiting) in [("b", 1), ("a", 3), ("c", 2)] {
            let mut domain = Domain::default();
            domain.name = name.to_owned();
            domain.callbacks_waiting = waiting;
            process.domains.push(domain);
        }
        let names = |order: Order| -> String {
            order.sorted(&process).iter().map(|domain| domain.name.as_str()).collect()
        };
        assert_eq!(names(Order::None), "bac");
        assert_eq!(names(Order::Name), "abc");
        assert_eq!(names(Order::Waiting), "acb");
    }

    /// "#10" came before "#4".
    #[test]
    fn numbers_in_names_are_sorted_as_numbers() {
        let mut names = ["#10", "shard 10", "#4", "shard 9", "shard", "#", "4"];
        names.sort_by_key(|name| in_parts(name));
        assert_eq!(names, ["4", "#", "#4", "#10", "shard", "shard 9", "shard 10"]);
    }
}
