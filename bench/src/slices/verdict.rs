//! How good a run was: what counted of it, and who else used the machine meanwhile.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use super::judge::{Flaw, Flaws};
use crate::clock::cpu_time;
use crate::units;

/// A run of which so many slices count was a calm one.
const CALM_PERCENT: f64 = 90.0;

/// How good a run was.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct RunVerdict {
    /// Slices that were drawn, and those of them that count.
    #[serde(rename = "slices")]
    pub drawn: u32,
    /// Those that count.
    #[serde(rename = "slices_that_count")]
    pub counted: u32,
    /// Rows that were to be measured, and those of them that have no figure.
    pub rows: u32,
    /// Rows without a figure.
    #[serde(rename = "rows_without_figure")]
    pub without_figure: u32,
    /// Of the slices of several threads, those in which the threads worked at once, in per cent.
    /// Nothing where there were none.
    pub met_percent: Option<f64>,
    /// How far apart the CPUs of two threads mostly were: what a cache line takes from one to the
    /// other, in nanoseconds. Slices at another distance do not count.
    pub distance_ns: Option<f64>,
    /// The CPUs that other programs used, on average; nothing where the kernel does not say.
    pub foreign_cpus: Option<f64>,
    /// The CPUs that the hypervisor gave to other machines though this one wanted them.
    pub stolen_cpus: Option<f64>,
    /// By how much the price of the control moved from the first third of the run to the last.
    pub drift_percent: Option<f64>,
    /// The threads that measured had the highest priority.
    #[serde(rename = "raised")]
    pub is_raised: bool,
    /// Each had a CPU of its own.
    #[serde(rename = "pinned")]
    pub is_pinned: bool,
    /// How long it took.
    pub seconds: f64,
    /// Slices of several threads, and those in which they met.
    #[serde(skip)]
    together: (u32, u32),
}

impl RunVerdict {
    /// Of several threads, or of one; how many count, and what was wrong with the others.
    pub(crate) fn add_row(&mut self, several: bool, counted: u32, flaws: &Flaws, is_missing: bool) {
        let drawn = counted + flaws.iter().sum::<u32>();
        self.drawn += drawn;
        self.counted += counted;
        self.rows += 1;
        self.without_figure += u32::from(is_missing);
        if several {
            self.add_together(drawn, drawn - flaws[Flaw::Apart as usize]);
        }
    }

    fn add_together(&mut self, drawn: u32, met: u32) {
        self.together = (self.together.0 + drawn, self.together.1 + met);
        let (drawn, met) = self.together;
        self.met_percent = (drawn > 0).then(|| 100.0 * f64::from(met) / f64::from(drawn));
    }

    /// That of two runs, one after the other.
    #[must_use]
    pub fn and(mut self, other: RunVerdict) -> RunVerdict {
        if self.rows == 0 {
            return other;
        }
        let (a, b) = (self.seconds, other.seconds);
        let mean = |one: Option<f64>, two: Option<f64>| Some((one? * a + two? * b) / (a + b));
        self.foreign_cpus = mean(self.foreign_cpus, other.foreign_cpus);
        self.stolen_cpus = mean(self.stolen_cpus, other.stolen_cpus);
        self.drawn += other.drawn;
        self.counted += other.counted;
        self.rows += other.rows;
        self.without_figure += other.without_figure;
        let drifts = [self.drift_percent, other.drift_percent];
        self.drift_percent = drifts.into_iter().flatten().reduce(f64::max);
        self.is_raised &= other.is_raised;
        self.is_pinned &= other.is_pinned;
        self.seconds += other.seconds;
        self.add_together(other.together.0, other.together.1);
        self.distance_ns = self.distance_ns.or(other.distance_ns);
        self
    }

    /// The slices that count, of those that were drawn.
    pub fn counted_percent(&self) -> f64 {
        100.0 * f64::from(self.counted) / f64::from(self.drawn.max(1))
    }

    /// `calm`, `disturbed` (slices were left out, and the figures are from those that count), or
    /// `incomplete` (rows have no figure).
    pub fn name(&self) -> &'static str {
        if self.without_figure > 0 || self.rows == 0 {
            "incomplete"
        } else if self.counted_percent() < CALM_PERCENT {
            "disturbed"
        } else {
            "calm"
        }
    }
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "This run was {}: ", self.name())?;
        if self.without_figure > 0 {
            write!(f, "{} of {} rows have no figure; ", self.without_figure, self.rows)?;
        }
        write!(f, "{} of {} slices count", self.counted, self.drawn)?;
        if let Some(met) = self.met_percent {
            write!(f, "; threads overlapped in {met:.0} %")?;
        }
        if let Some(distance) = self.distance_ns {
            write!(f, "; their CPUs were {} apart", units::nanoseconds(distance))?;
        }
        let cpus =
            |cpus: Option<f64>| cpus.map_or("unknown".to_owned(), |cpus| format!("{cpus:.2}"));
        write!(f, "; CPUs used by other programs: {}", cpus(self.foreign_cpus))?;
        write!(f, ", stolen by the host: {}", cpus(self.stolen_cpus))?;
        if let Some(drift) = self.drift_percent {
            write!(f, "; the CPU's speed moved by {drift:.1} %")?;
        }
        f.write_str(if self.is_raised { "; priority raised" } else { "; priority not raised" })?;
        f.write_str(if self.is_pinned { ", threads pinned." } else { "." })
    }
}

/// The clocks at the beginning of a run.
#[derive(Debug)]
pub struct Watch {
    begin: Instant,
    /// See [`busy_and_stolen`].
    system: [Option<f64>; 2],
    own: Duration,
}

impl Watch {
    /// Looks at them.
    pub fn begin() -> Watch {
        Watch { begin: Instant::now(), system: busy_and_stolen(), own: cpu_time() }
    }

    /// What there was since, apart from slices.
    pub fn end(&self, is_raised: bool, is_pinned: bool) -> RunVerdict {
        let seconds = self.begin.elapsed().as_secs_f64();
        let own = (cpu_time() - self.own).as_secs_f64();
        let (before, after) = (self.system, busy_and_stolen());
        let since = |which: usize| Some(after[which]? - before[which]?);
        let share = |of: f64| (of / seconds.max(1e-9)).max(0.0);
        RunVerdict {
            foreign_cpus: since(0).map(|busy| share(busy - own)),
            stolen_cpus: since(1).map(share),
            is_raised,
            is_pinned,
            seconds,
            ..RunVerdict::default()
        }
    }
}

/// For how many seconds all CPUs have worked since the machine began, and for how many their time
/// was stolen; nothing where the kernel does not say.
fn busy_and_stolen() -> [Option<f64>; 2] {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    of_all_cpus(&text, rustix::param::clock_ticks_per_second())
}

/// By the first line: user, nice, system, idle, iowait, irq, softirq, steal, all in ticks.
fn of_all_cpus(text: &str, ticks_per_second: u64) -> [Option<f64>; 2] {
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let field = |text: &str| text.parse::<f64>().ok().map(|of| of / ticks_per_second as f64);
    let fields: Vec<f64> = line.unwrap_or_default().split_whitespace().map_while(field).collect();
    let busy = [0, 1, 2, 5, 6].map(|place| fields.get(place));
    [busy.into_iter().sum(), fields.get(7).copied()]
}

/// Threads of the machine that run or want to, the caller among them. 1 where it is not said.
pub(super) fn runnable() -> u64 {
    load_field(3).and_then(|field| field.split('/').next()?.parse().ok()).unwrap_or(1)
}

/// A field of what the machine says about its load. The first is the average of a minute.
pub fn load_field(number: usize) -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().nth(number).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_cpus_did_is_read_from_the_first_line() {
        let text = "cpu  100 10 40 9000 5 6 4 30 0 0\ncpu0 50 5 20 4500 2 3 2 15 0 0\n";
        assert_eq!(of_all_cpus(text, 100), [Some(1.6), Some(0.3)]);
        assert_eq!(of_all_cpus("cpu  100 10 40 9000 5 6 4\n", 100), [Some(1.6), None]);
        assert_eq!((of_all_cpus("intr 1", 100), of_all_cpus("", 100)), ([None; 2], [None; 2]));
        assert!(runnable() >= 1);
    }

    #[test]
    fn the_verdict_says_how_good_the_run_was() {
        let mut calm = RunVerdict { seconds: 1.0, foreign_cpus: Some(0.5), ..Default::default() };
        calm.distance_ns = Some(41.0);
        calm.add_row(true, 38, &[1, 1, 0, 0, 0, 0, 0], false);
        assert_eq!((calm.name(), calm.met_percent), ("calm", Some(97.5)));
        let mut bad = RunVerdict { seconds: 3.0, foreign_cpus: Some(1.5), ..Default::default() };
        bad.add_row(true, 3, &[57, 0, 0, 0, 0, 0, 0], true);
        let both = calm.clone().and(bad);
        assert_eq!((both.name(), both.rows, both.without_figure), ("incomplete", 2, 1));
        assert_eq!((both.met_percent, both.foreign_cpus), (Some(42.0), Some(1.25)));
        let said = both.to_string();
        assert!(said.starts_with("This run was incomplete: 1 of 2 rows have no figure"), "{said}");
        assert!(
            said.contains(
                "41 of 100 slices count; threads overlapped in 42 %; their CPUs were 41.0 ns apart"
            ),
            "{said}"
        );
        let disturbed = RunVerdict { drawn: 100, counted: 50, rows: 1, ..calm };
        assert_eq!(disturbed.name(), "disturbed");
    }
}
