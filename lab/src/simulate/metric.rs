//! What is told of a run: one name and one way to write it for each figure, for all tables.

use bench::units;
use simulate::Report;
use simulate::histogram::Summary;

use super::shape::Group;

/// All that is told, in the order of reading.
pub(super) fn groups(report: &Report) -> [Group; 5] {
    let Report { grace_period_ns, waiter_latency_ns: waits, callbacks, machinery, .. } = report;
    let rate = |count| rate(report, count);
    let of = |summary: &Summary, ns| time(summary.count, ns);
    let quantiles = |of_all: &Summary| {
        let Summary { p50, p90, p99, max, .. } = *of_all;
        [("p50", p50), ("p90", p90), ("p99", p99), ("max", max)]
            .map(|(name, ns)| (name, of(of_all, ns)))
    };
    let in_a_batch = match report.callbacks_per_batch.count {
        0 => "–".to_owned(),
        _ => units::count(report.callbacks_per_batch.mean),
    };
    let grace_periods = vec![("a second", rate(grace_period_ns.count))];
    let queued = vec![("queued per second", rate(callbacks.queued))];
    let waiting = vec![
        ("in a batch", in_a_batch),
        ("waiting at most", units::count(callbacks.waiting_peak)),
        ("memory at most", units::bytes(callbacks.waiting_bytes_peak)),
    ];
    let work = vec![
        ("waits", units::count(waits.count)),
        ("p50", of(waits, waits.p50)),
        ("p99", of(waits, waits.p99)),
        ("max", of(waits, waits.max)),
        ("operations per second", rate(report.operations)),
        ("an iteration", of(&report.iteration_ns, report.iteration_ns.mean)),
    ];
    let cpu = vec![
        ("busy", percent(report.time.busy_ppm())),
        ("engine", percent(report.time.engine_ppm())),
        ("callbacks", percent(report.time.callback_ppm())),
        ("longest awake", time(report.worker_awake_max_ns, report.worker_awake_max_ns)),
    ];
    let made = vec![
        ("IPIs", rate(machinery.ipis)),
        ("forced switches", rate(machinery.forced_switches)),
        ("line transfers", rate(report.lines.transfers)),
        ("locks taken", rate(report.lines.lock_visits)),
        ("of them contended", rate(report.lines.lock_contended)),
    ];
    let latency = quantiles(&report.callback_latency_ns).to_vec();
    [
        ("Grace periods", [grace_periods, quantiles(grace_period_ns).to_vec()].concat()),
        ("Callbacks, from queueing to running", [queued, latency, waiting].concat()),
        ("Tasks that wait, and work that is done", work),
        ("CPU time", cpu),
        ("What the engine makes the machine do, a second", made),
    ]
}

/// A time, if there was anything to take it of: `count` is not 0.
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
        // A share of a thousandth is not nothing.
        ppm if ppm < 950 => format!("{:.4} %", ppm as f64 / 10_000.0),
        ppm => format!("{} %", units::figures(ppm as f64 / 10_000.0)),
    }
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
