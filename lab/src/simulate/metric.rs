//! What is notified of a run: one name and one way to write it for each figure, for all tables.

use bench::units;
use simulate::Report;

/// A table's worth of figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) metrics: &'static [Metric],
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) cell: fn(&Report) -> String,
}

const fn metric(name: &'static str, cell: fn(&Report) -> String) -> Metric {
    Metric { name, cell }
}

/// All that is reported, in the order of reading.
pub(super) const GROUPS: &[Group] = &[
    Group {
        title: "Grace periods",
        metrics: &[
            metric("a second", |report| rate(report, report.grace_period_ns.count)),
            metric("p50", |report| time(report.grace_period_ns.count, report.grace_period_ns.p50)),
            metric("p90", |report| time(report.grace_period_ns.count, report.grace_period_ns.p90)),
            metric("p99", |report| time(report.grace_period_ns.count, report.grace_period_ns.p99)),
            metric("max", |report| time(report.grace_period_ns.count, report.grace_period_ns.max)),
        ],
    },
    Group {
        title: "Callbacks, from queueing to running",
        metrics: &[
            metric("queued a second", |report| rate(report, report.callbacks.queued)),
            metric("p50", |report| callback(report, report.callback_latency_ns.p50)),
            metric("p90", |report| callback(report, report.callback_latency_ns.p90)),
            metric("p99", |report| callback(report, report.callback_latency_ns.p99)),
            metric("max", |report| callback(report, report.callback_latency_ns.max)),
            metric("in a batch", |report| match report.callbacks_per_batch.count {
                0 => "–".to_owned(),
                _ => units::count(report.callbacks_per_batch.mean),
            }),
            metric("waiting at most", |report| units::count(report.callbacks.waiting_peak)),
            metric("memory at most", |report| units::bytes(report.callbacks.waiting_bytes_peak)),
        ],
    },
    Group {
        title: "Tasks that wait, and work that is done",
        metrics: &[
            metric("waits", |report| units::count(report.waiter_latency_ns.count)),
            metric("p50", |report| waiter(report, report.waiter_latency_ns.p50)),
            metric("p99", |report| waiter(report, report.waiter_latency_ns.p99)),
            metric("max", |report| waiter(report, report.waiter_latency_ns.max)),
            metric("operations a second", |report| rate(report, report.operations)),
            metric("an iteration", |report| {
                time(report.iteration_ns.count, report.iteration_ns.mean)
            }),
        ],
    },
    Group {
        title: "CPU time",
        metrics: &[
            metric("busy", |report| percent(report.time.busy_ppm())),
            metric("engine", |report| percent(report.time.engine_ppm())),
            metric("callbacks", |report| percent(report.time.callback_ppm())),
            metric("longest awake", |report| time(1, report.worker_awake_max_ns)),
        ],
    },
    Group {
        title: "What the engine makes the machine do, a second",
        metrics: &[
            metric("IPIs", |report| rate(report, report.machinery.ipis)),
            metric("forced switches", |report| rate(report, report.machinery.forced_switches)),
            metric("line transfers", |report| rate(report, report.lines.transfers)),
            metric("locks taken", |report| rate(report, report.lines.lock_visits)),
            metric("of them contended", |report| rate(report, report.lines.lock_contended)),
        ],
    },
];

fn callback(report: &Report, ns: u64) -> String {
    time(report.callback_latency_ns.count, ns)
}

fn waiter(report: &Report, ns: u64) -> String {
    time(report.waiter_latency_ns.count, ns)
}

/// A time, if there was anything to take it of.
fn time(count: u64, ns: u64) -> String {
    if count == 0 { "–".to_owned() } else { units::nanoseconds(ns as f64) }
}

/// So many in the run, as so many a second.
fn rate(report: &Report, count: u64) -> String {
    let milli = report.per_second_milli(count);
    if milli == 0 {
        return "0".to_owned();
    }
    if milli >= 1_000_000 {
        units::count(milli / 1_000)
    } else {
        units::figures(milli as f64 / 1_000.0)
    }
}

/// Millionths as per cent.
pub(super) fn percent(ppm: u64) -> String {
    match ppm {
        0 => "0 %".to_owned(),
        ppm => format!("{} %", small(ppm as f64 / 10_000.0)),
    }
}

/// Three figures, but a share of a thousandth is not nothing.
fn small(percent: f64) -> String {
    if percent < 0.095 { format!("{percent:.4}") } else { units::figures(percent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_not_nothing() {
        assert_eq!(percent(0), "0 %");
        assert_eq!(percent(1), "0.0001 %");
        assert_eq!(percent(12_345), "1.23 %");
        assert_eq!(percent(1_000_000), "100 %");
    }

    #[test]
    fn a_time_of_nothing_is_no_time() {
        assert_eq!(time(0, 17), "–");
        assert_eq!(time(1, 0), "0.00 ns");
        assert_eq!(time(3, 1_500), "1.50 µs");
    }
}
