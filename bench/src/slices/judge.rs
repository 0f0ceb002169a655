//! Whether a slice counts. Nothing here looks at a clock: spans come in, flaws go out.

use std::fmt;

use crate::units;

/// A thread that had its CPU used it for this share of its time. A tick of the kernel is missing
/// from it, which takes 30 us in some virtual machines: 3 % of a slice.
const CPU_MIN_PERCENT: u64 = 96;
/// All threads work at once for this share of the longest one's time.
const OVERLAP_MIN_PERCENT: u64 = 95;
/// A gap of this share of a slice is time that somebody stole. A tick is less, and a median of
/// slices does not feel those that have one.
const GAP_MAX: f64 = 0.08;

/// What one thread saw of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Span {
    /// By the clock that all threads share.
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    /// What the operations took of it, and how many they were.
    pub(super) took_ns: u64,
    pub(super) did: u64,
    /// The thread's own CPU time meanwhile.
    pub(super) cpu_ns: u64,
    /// Involuntary switches meanwhile.
    pub(super) switches: u64,
    /// The CPU before and after.
    pub(super) cpus: [usize; 2],
    /// The longest gap between two parts, as a share of all.
    pub(super) gap: f64,
    /// Threads of the whole machine that wanted a CPU and are none of this slice's.
    pub(super) others: u64,
}

impl Span {
    pub(super) fn wall_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// Why a slice does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Flaw {
    /// The threads did not work at once.
    Apart,
    /// A thread lost its CPU, or changed it.
    Taken,
    /// Time is missing that no switch explains: the hypervisor's, or an interrupt's.
    Stolen,
    /// Others wanted a CPU while the row slept.
    Others,
    /// The control was dearer than usual before or after.
    Control,
}

impl Flaw {
    pub(super) const ALL: [Flaw; 5] =
        [Self::Apart, Self::Taken, Self::Stolen, Self::Others, Self::Control];

    /// Whether another thread has a CPU of this slice.
    pub(super) fn is_loss(self) -> bool {
        matches!(self, Self::Apart | Self::Taken)
    }
}

/// Whether a slice counts that its threads saw so.
pub(super) fn judge(spans: &[Span], sleeps: bool) -> Result<(), Flaw> {
    let begin = spans.iter().map(|span| span.begin_ns).max().unwrap_or_default();
    let end = spans.iter().map(|span| span.end_ns).min().unwrap_or_default();
    let longest = spans.iter().map(Span::wall_ns).max().unwrap_or_default();
    let share_a_cpu = |(number, span): (usize, &Span)| {
        spans[..number].iter().any(|other| other.cpus[0] == span.cpus[0])
    };
    if end.saturating_sub(begin) * 100 < longest * OVERLAP_MIN_PERCENT
        || spans.iter().enumerate().any(share_a_cpu)
    {
        return Err(Flaw::Apart);
    }
    let is_taken = |span: &Span| {
        let is_short = span.cpu_ns * 100 < span.wall_ns() * CPU_MIN_PERCENT;
        !sleeps && (span.switches > 0 || is_short || span.cpus[0] != span.cpus[1])
    };
    if spans.iter().any(is_taken) {
        return Err(Flaw::Taken);
    }
    if !sleeps && spans.iter().any(|span| span.gap > GAP_MAX) {
        return Err(Flaw::Stolen);
    }
    if sleeps && spans.iter().any(|span| span.others > 0) {
        return Err(Flaw::Others);
    }
    Ok(())
}

/// By how much the longest part is longer than the middle one, as a share of all; 0 unless it is
/// more than twice as long: some operations take longer than others.
pub(super) fn gap(parts: &mut [u64]) -> f64 {
    parts.sort_unstable();
    let parts = &parts[parts.partition_point(|part| *part == 0)..];
    // Of few parts the middle one is that of chance.
    let (Some(longest), true) = (parts.last(), parts.len() >= 16) else { return 0.0 };
    let middle = parts[parts.len() / 2];
    let more = longest.saturating_sub(middle);
    if more > middle { more as f64 / parts.iter().sum::<u64>() as f64 } else { 0.0 }
}

/// Why something has no figure. Each of them is what was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// In most slices that did not count the threads were not on CPUs at once.
    NeverTogether {
        /// All slices.
        drawn: u32,
    },
    /// In most of them a thread lost its CPU.
    TakenAway {
        /// All slices.
        drawn: u32,
    },
    /// In most of them time was missing.
    Stolen {
        /// All slices.
        drawn: u32,
    },
    /// It sleeps, and others wanted the CPUs on which it wakes.
    OthersRan {
        /// All slices.
        drawn: u32,
    },
    /// The price of the control moved.
    ControlMoved {
        /// All slices.
        drawn: u32,
    },
    /// No slice was drawn before the time was over.
    NoTime,
    /// The run was stopped.
    Interrupted,
    /// It needs so many CPUs.
    NeedsCpus(usize),
    /// The kernel refuses to register for it.
    NoMembarrier,
    /// It had no one price: the quartiles are so far apart, in nanoseconds.
    Unsteady {
        /// The first and the last quartile.
        between: [f64; 2],
    },
    /// The figure cannot be: what it should have been.
    Impossible(String),
}

impl Missing {
    /// The reason of most slices that do not count.
    pub(super) fn of(flaws: &[u32; Flaw::ALL.len()], drawn: u32) -> Missing {
        let most = Flaw::ALL.into_iter().max_by_key(|flaw| flaws[*flaw as usize]);
        match most.filter(|flaw| flaws[*flaw as usize] > 0) {
            None => Self::NoTime,
            Some(Flaw::Apart) => Self::NeverTogether { drawn },
            Some(Flaw::Taken) => Self::TakenAway { drawn },
            Some(Flaw::Stolen) => Self::Stolen { drawn },
            Some(Flaw::Others) => Self::OthersRan { drawn },
            Some(Flaw::Control) => Self::ControlMoved { drawn },
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverTogether { drawn } => {
                write!(f, "too few of {drawn} slices in which its threads ran at once")
            }
            Self::TakenAway { drawn } => {
                write!(f, "too few of {drawn} slices in which it kept its CPU")
            }
            Self::Stolen { drawn } => {
                write!(f, "time was missing in nearly all of {drawn} slices")
            }
            Self::OthersRan { drawn } => {
                write!(f, "others wanted the CPUs in nearly all of {drawn} slices")
            }
            Self::ControlMoved { drawn } => {
                write!(f, "the CPU was slower than before in nearly all of {drawn} slices")
            }
            Self::NoTime => f.write_str("the time was over before"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::NeedsCpus(cpus) => write!(f, "needs {cpus} CPUs"),
            Self::NoMembarrier => f.write_str("the kernel has no membarrier"),
            Self::Unsteady { between: [low, high] } => {
                let [low, high] = [*low, *high].map(units::nanoseconds);
                write!(f, "it had no one price: {low} as often as {high}")
            }
            Self::Impossible(what) => write!(f, "thrown away: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A millisecond on this CPU, begun so much late.
    fn span(cpu: usize, late_ns: u64) -> Span {
        Span {
            begin_ns: 5_000 + late_ns,
            end_ns: 1_005_000 + late_ns,
            took_ns: 990_000,
            cpu_ns: 1_000_000,
            cpus: [cpu; 2],
            ..Span::default()
        }
    }

    #[test]
    fn a_slice_counts_whose_threads_had_their_cpus_at_once() {
        let two = [span(0, 0), span(1, 49_000)];
        assert_eq!(judge(&two, false), Ok(()));
        assert_eq!(judge(&two[..1], false), Ok(()));
        assert_eq!(judge(&[span(0, 0), span(1, 51_000)], false), Err(Flaw::Apart));
        assert_eq!(judge(&[span(0, 0), span(1, 2_000_000)], false), Err(Flaw::Apart));
        assert_eq!(judge(&[span(1, 0), span(1, 0)], false), Err(Flaw::Apart), "by turns");
    }

    #[test]
    fn a_slice_does_not_count_in_which_a_thread_lost_its_cpu() {
        let good = span(0, 0);
        for (bad, flaw) in [
            (Span { cpu_ns: 959_000, ..span(1, 0) }, Flaw::Taken),
            (Span { switches: 1, ..span(1, 0) }, Flaw::Taken),
            (Span { cpus: [1, 2], ..span(1, 0) }, Flaw::Taken),
            (Span { gap: 0.081, ..span(1, 0) }, Flaw::Stolen),
        ] {
            assert_eq!(judge(&[good, bad], false), Err(flaw), "{bad:?}");
            assert_eq!(judge(&[bad], false), Err(flaw), "{bad:?}");
        }
        assert_eq!(judge(&[Span { cpu_ns: 961_000, gap: 0.079, ..good }], false), Ok(()));
    }

    #[test]
    fn who_sleeps_of_its_own_accord_needs_a_machine_that_nobody_wants() {
        let asleep = Span { cpu_ns: 10_000, cpus: [0, 1], gap: 0.5, ..span(0, 0) };
        assert_eq!(judge(&[asleep], true), Ok(()));
        assert_eq!(judge(&[Span { others: 1, ..asleep }], true), Err(Flaw::Others));
        let turns = Span { switches: 9, ..asleep };
        assert_eq!(judge(&[turns], true), Ok(()), "threads of one CPU take it from each other");
    }

    #[test]
    fn a_gap_is_a_part_that_is_much_longer_than_the_others() {
        let with = |longest| [vec![100; 63], vec![longest]].concat();
        assert_eq!(gap(&mut with(100)), 0.0);
        assert_eq!(gap(&mut with(199)), 0.0, "some operations take longer");
        assert!((gap(&mut with(400)) - 300.0 / 6_700.0).abs() < 1e-9);
        assert_eq!(gap(&mut [1, 1, 1, 100]), 0.0, "too few parts to say");
        assert_eq!(gap(&mut [0; 64]), 0.0);
        assert!(gap(&mut [vec![0; 24], vec![10; 39], vec![100]].concat()) > GAP_MAX, "most empty");
    }

    #[test]
    fn the_reason_is_that_of_most_slices() {
        assert_eq!(Missing::of(&[0; 5], 0), Missing::NoTime);
        assert_eq!(Missing::of(&[3, 9, 0, 0, 1], 13), Missing::TakenAway { drawn: 13 });
        assert_eq!(Missing::of(&[9, 3, 0, 0, 1], 17), Missing::NeverTogether { drawn: 17 });
        for (place, flaw) in Flaw::ALL.into_iter().enumerate() {
            assert_eq!(flaw as usize, place, "flaws are counted by their place");
        }
    }
}
