//! What `rcu top` shows: the processes that serve, or the domains of one of them; as a table that
//! fits the window, or one line a domain.

use std::cmp::Reverse;

use bench::units;
use clap::ValueEnum;

use super::answer::{Answer, Domain, Process};
use crate::output::{self, Output};

/// The processes that serve.
pub(super) fn list(answers: &[Answer], output: &mut Output) {
    if answers.is_empty() {
        return output.paragraph(
            "No process of this user serves its statistics in the usual places. Start one with \
             QUIESCENCE_STATS=1 in its environment; if it names a path, use rcu top PID.",
        );
    }
    let header = ["pid", "program", "domains", "grace periods", "waiting", "stalls"];
    let row = |answer: &Answer| {
        let Process { pid, program, domains_total, domains, .. } = &answer.process;
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
    output.table(output::table(&header, [0, 2, 3, 4, 5], answers.iter().map(row)));
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
            Order::Name => domains.sort_by(|a, b| a.name.cmp(&b.name)),
            Order::Waiting => domains.sort_by_key(|each| Reverse(each.callbacks_waiting)),
            Order::Bytes => domains.sort_by_key(|each| Reverse(each.bytes_waiting)),
            Order::Stalls => domains.sort_by_key(|each| Reverse(each.stalls)),
        }
        domains
    }
}

/// The columns of a domain, and the order in which a narrow window loses them: the greatest first;
/// those with 0 stay.
const COLUMNS: [(&str, u8); 11] = [
    ("domain", 0),
    ("engine", 4),
    ("grace periods/s", 0),
    ("p50 below", 7),
    ("p99 below", 3),
    ("waiting", 0),
    ("bytes", 2),
    ("of limit", 6),
    ("callbacks/s", 5),
    ("stalls", 1),
    ("worker", 8),
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
    while kept.iter().map(|&column| wide(column)).sum::<usize>() > width {
        let least_needed = kept.iter().copied().max_by_key(|&column| COLUMNS[column].1);
        match least_needed.filter(|&column| COLUMNS[column].1 > 0) {
            Some(dropped) => kept.retain(|&column| column != dropped),
            None => break,
        }
    }
    kept
}

/// The rows of all domains, in their order.
fn rows<'a>(
    earlier: &Process,
    later: &'a Process,
    order: Order,
) -> (Vec<&'a Domain>, Vec<[String; 11]>) {
    let seconds = later.seconds_since(earlier);
    let nothing = Domain::default();
    let domains = order.sorted(later);
    // A domain that is new began with nothing.
    let before = |domain: &Domain| earlier.domain(domain.number).unwrap_or(&nothing).clone();
    let rows = domains.iter().map(|domain| row(&before(domain), domain, seconds)).collect();
    (domains, rows)
}

/// One line a domain, for programs that read lines.
pub(super) fn lines(earlier: &Answer, later: &Answer, order: Order, output: &mut Output) {
    let (domains, rows) = rows(&earlier.process, &later.process, order);
    for (domain, row) in domains.into_iter().zip(rows) {
        let cells = COLUMNS.iter().zip(row).map(|((title, _), cell)| format!("{title}: {cell}"));
        let longest = longest(domain).map(|text| format!("longest reader: {text}"));
        let kept = protected(domain).map(|text| format!("kept by hazard pointers: {text}"));
        let line: Vec<String> = cells.chain(longest).chain(kept).collect();
        output.line(line.join("; "));
    }
}

/// The domains of a process, and what they did between two replies.
pub(super) fn process(earlier: &Answer, later: &Answer, order: Order, output: &mut Output) {
    let (earlier, later) = (&earlier.process, &later.process);
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
    let (domains, rows) = rows(earlier, later, order);
    let kept = columns_that_fit(&rows, output.width.into());
    let header: Vec<&str> = kept.iter().map(|&column| COLUMNS[column].0).collect();
    let is_number = |place: &usize| kept[*place] >= 2;
    let numbers = (0..kept.len()).filter(is_number);
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

fn row(before: &Domain, domain: &Domain, seconds: Option<f64>) -> [String; 11] {
    let rate = |count: fn(&Domain) -> u64| {
        let since = count(domain).saturating_sub(count(before));
        seconds.map(|seconds| since as f64 / seconds)
    };
    let nothing = || "–".to_owned();
    let latency = |share| {
        let below_ns = domain.quantile_since(before, share);
        below_ns.map_or_else(nothing, |ns| units::nanoseconds(ns as f64))
    };
    let figures = |rate: Option<f64>| rate.map_or_else(nothing, per_second);
    [
        domain.name.clone(),
        domain.engine.clone(),
        figures(rate(|domain| domain.grace_periods)),
        latency(0.5),
        latency(0.99),
        units::count(domain.callbacks_waiting),
        units::bytes(domain.bytes_waiting),
        share(domain.fullness()),
        figures(rate(|domain| domain.callbacks_run)),
        units::count(domain.stalls),
        rate(Domain::worker_ns).map_or_else(nothing, |ns| share(ns / 1e9)),
    ]
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
}
