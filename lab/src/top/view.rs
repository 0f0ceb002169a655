//! What `rcu top` shows: the processes that serve, or the domains of one of them.

use bench::units;

use super::answer::{Answer, Domain, Process, Reader};
use crate::exit::Failure;
use crate::output::{self, Output};

/// The processes that serve.
pub(super) fn list(answers: &[Answer], output: &mut Output) -> Result<(), Failure> {
    if answers.is_empty() {
        return output.paragraph(
            "No process of this user serves its statistics here. Start one with \
             QUIESCENCE_STATS=1 in its environment.",
        );
    }
    let header = ["pid", "program", "domains", "grace periods", "waiting", "stalls"];
    let mut table = output::table(&header);
    output::numeric(&mut table, [0, 2, 3, 4, 5]);
    for Process { pid, program, domains_total, domains, .. } in
        answers.iter().map(|answer| &answer.process)
    {
        let sum = |count: fn(&Domain) -> u64| {
            units::count(domains.iter().map(count).fold(0, u64::saturating_add))
        };
        table.add_row([
            pid.to_string(),
            program.clone(),
            units::count(*domains_total),
            sum(|domain| domain.grace_periods),
            sum(|domain| domain.callbacks_waiting),
            sum(|domain| domain.stalls),
        ]);
    }
    output.table(table)?;
    output.line("rcu top PID shows one of them.")
}

/// The domains of a process, and what they did between two replies.
pub(super) fn process(
    earlier: &Answer,
    later: &Answer,
    output: &mut Output,
) -> Result<(), Failure> {
    let (earlier, later) = (&earlier.process, &later.process);
    let seconds = later.seconds_since(earlier);
    output.line(format_args!(
        "{} (process {}), {} fences, {} {}",
        later.program,
        later.pid,
        later.fences,
        units::count(later.domains_total),
        if later.domains_total == 1 { "domain" } else { "domains" },
    ))?;
    let hidden = later.domains_total.saturating_sub(later.domains.len() as u64);
    if hidden != 0 {
        output.line(format_args!("{} of them are not told of", units::count(hidden)))?;
    }
    let header = [
        "domain",
        "engine",
        "grace periods/s",
        "p50 below",
        "p99 below",
        "waiting",
        "bytes",
        "of limit",
        "callbacks/s",
        "stalls",
        "worker",
    ];
    let mut table = output::table(&header);
    output::numeric(&mut table, 2..11);
    let nothing = Domain::default();
    for domain in &later.domains {
        // A domain that is new began with nothing.
        let before = earlier.domain(domain.number()).unwrap_or(&nothing);
        table.add_row(row(before, domain, seconds));
    }
    output.table(table)?;
    output.line("")?;
    let readers = later.domains.iter().filter_map(|domain| {
        let longest = domain.longest_reader.as_ref()?;
        Some((format!("longest reader of {}", domain.name), reader(longest)))
    });
    let protected = later.domains.iter().filter(|domain| domain.objects_protected != 0);
    let protected = protected.map(|domain| {
        let (objects, bytes) = (domain.objects_protected, domain.bytes_protected);
        let shown = format!("{} objects, {}", units::count(objects), units::bytes(bytes));
        (format!("kept in {} by hazard pointers", domain.name), shown)
    });
    output.entries(readers.chain(protected))
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

/// Who, for how long at least, and where; no time for one that no grace period has had to wait for.
fn reader(reader: &Reader) -> String {
    let name = reader.thread_name.as_deref().unwrap_or("thread");
    let time = match reader.at_least_ns {
        0 => String::new(),
        ns => format!(" for {} at least", units::nanoseconds(ns as f64)),
    };
    let location = reader.location.as_deref().unwrap_or("an unknown place");
    format!("{name} ({}), reading{time}, since {location}", reader.thread_id)
}
