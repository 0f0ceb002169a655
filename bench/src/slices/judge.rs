//! Whether a slice counts. This file looks at no clock: it gets the spans, and returns the flaws.

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
/// Parts of operations that are all alike are so uneven that the CPU was slower in some.
pub(super) const UNEVEN: f64 = 1.1;

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
    /// It slept until another thread of its row woke it.
    pub(super) slept: bool,
    /// The CPU before and after.
    pub(super) cpus: [usize; 2],
    /// By its parts.
    pub(super) told: Told,
    /// What instructions cost just before, while all threads of the row were at them, in ticks.
    pub(super) at_once: u64,
    /// How far the first two CPUs were apart just before, in ticks: to the first thread, if there
    /// was time.
    pub(super) distance: Option<u64>,
    /// How long it waited for a CPU, in a scene, where the kernel says.
    pub(super) waited_ns: Option<u64>,
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
pub(crate) enum Flaw {
    /// The threads did not work at once.
    Apart,
    /// A thread lost its CPU, or changed it.
    Taken,
    /// Time is missing that no switch explains: the hypervisor's, or an interrupt's.
    Stolen,
    /// Others wanted a CPU while the row slept.
    Others,
    /// Two of its threads were on one core.
    Shared,
    /// Its CPUs were not as far apart as mostly.
    Moved,
    /// The control was dearer than usual before or after.
    Control,
}

/// What each flaw is, in their order.
const FLAWS: [&str; Flaw::Control as usize + 1] = [
    "its threads did not run at the same time",
    "it lost its CPU",
    "time was missing",
    "other programs wanted the CPUs",
    "its threads shared a core",
    "its CPUs were another distance apart",
    "the CPU was slower than at its best",
];

/// Whether it counts, of what was judged.
pub(crate) type Judged = Option<Result<(), Flaw>>;

/// Whether two of them count together.
pub(crate) fn both(one: Judged, two: Judged) -> Judged {
    Some(one?.and(two?))
}

/// How many slices had each flaw.
pub(crate) type Flaws = [u32; FLAWS.len()];

/// Whether a slice counts of which its threads saw this.
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
        let is_away = is_short || span.cpus[0] != span.cpus[1];
        !sleeps && (span.switches > 0 || is_away && !span.slept)
    };
    if spans.iter().any(is_taken) {
        return Err(Flaw::Taken);
    }
    if !sleeps && spans.iter().any(|span| span.told.gap > GAP_MAX) {
        return Err(Flaw::Stolen);
    }
    if sleeps && spans.iter().any(|span| span.others > 0) {
        return Err(Flaw::Others);
    }
    Ok(())
}

/// Whether a scene counts of which its threads saw this, while workers of the process used so much.
pub(super) fn judge_scene(spans: &[Span], workers_ns: u64) -> Result<(), Flaw> {
    let begins = || spans.iter().map(|span| span.begin_ns);
    let late = begins().max().unwrap_or_default() - begins().min().unwrap_or_default();
    let longest = spans.iter().map(Span::wall_ns).max().unwrap_or_default();
    if late * 100 > longest * (100 - OVERLAP_MIN_PERCENT) {
        return Err(Flaw::Apart);
    }
    let is_taken = |span: &Span| {
        let waited = span.waited_ns.unwrap_or_default().saturating_sub(workers_ns);
        waited * 100 > span.wall_ns() * (100 - CPU_MIN_PERCENT)
    };
    if spans.iter().any(is_taken) { Err(Flaw::Taken) } else { Ok(()) }
}

/// What the parts of a slice tell, by how long each took; too few of them tell nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// By how much the longest part is longer than the middle one, as a share of all; 0 unless it
    /// is more than twice as long: some operations take longer than others.
    pub(super) gap: f64,
    /// How many times as long as the first quartile the third one is; 0 if too few parts tell.
    pub(super) uneven: f64,
}

impl Told {
    pub(super) fn by(parts: &mut [u64]) -> Told {
        parts.sort_unstable();
        let parts = &parts[parts.partition_point(|part| *part == 0)..];
        // Of few parts the middle one is that of chance.
        let (Some(longest), true) = (parts.last(), parts.len() >= 16) else {
            return Told::default();
        };
        let [first, middle, third] = [1, 2, 3].map(|quarter| parts[parts.len() * quarter / 4]);
        let more = longest.saturating_sub(middle);
        let sum = parts.iter().sum::<u64>() as f64;
        let gap = if more > middle { more as f64 / sum } else { 0.0 };
        Told { gap, uneven: third as f64 / first as f64 }
    }
}

/// Why something has no figure. Each of them is what was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// Too few slices count.
    TooFew {
        /// Those that do, and all.
        slices: [u32; 2],
        /// The most frequent reason why the others do not, and how often it was that.
        flaw: &'static str,
        /// So often.
        times: u32,
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
    /// Whether another run may have the figure: the machine has all that it needs.
    pub fn is_of_the_run(&self) -> bool {
        !matches!(self, Self::NeedsCpus(_) | Self::NoMembarrier)
    }

    /// What is wrong with slices of which so many count.
    pub(crate) fn of(flaws: &Flaws, counted: u32) -> Missing {
        let drawn = counted + flaws.iter().sum::<u32>();
        match flaws.iter().zip(FLAWS).max_by_key(|(times, _)| **times) {
            Some((&times, flaw)) if times > 0 => {
                Self::TooFew { slices: [counted, drawn], flaw, times }
            }
            _ => Self::NoTime,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { slices: [counted, drawn], flaw, times } => {
                write!(f, "{counted} of {drawn} slices count: in {times} {flaw}")
            }
            Self::NoTime => f.write_str("time ran out before"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::NeedsCpus(cpus) => write!(f, "needs {cpus} CPUs"),
            Self::NoMembarrier => f.write_str("the kernel has no membarrier"),
            Self::Unsteady { between: [low, high] } => {
                let [low, high] = [*low, *high].map(units::nanoseconds);
                write!(f, "it took {low} as often as {high}")
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

    fn gap_of(gap: f64) -> Told {
        Told { gap, ..Told::default() }
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
            (Span { told: gap_of(0.081), ..span(1, 0) }, Flaw::Stolen),
        ] {
            assert_eq!(judge(&[good, bad], false), Err(flaw), "{bad:?}");
            assert_eq!(judge(&[bad], false), Err(flaw), "{bad:?}");
        }
        assert_eq!(judge(&[Span { cpu_ns: 961_000, told: gap_of(0.079), ..good }], false), Ok(()));
    }

    #[test]
    fn who_slept_on_a_lock_had_its_cpu_unless_it_was_taken() {
        let slept = Span { slept: true, cpu_ns: 500_000, ..span(0, 0) };
        assert_eq!(judge(&[slept, span(1, 0)], false), Ok(()));
        let taken = Span { switches: 1, ..slept };
        assert_eq!(judge(&[taken, span(1, 0)], false), Err(Flaw::Taken));
    }

    #[test]
    fn who_sleeps_of_its_own_accord_needs_a_machine_that_nobody_wants() {
        let asleep = Span { cpu_ns: 10_000, cpus: [0, 1], told: gap_of(0.5), ..span(0, 0) };
        assert_eq!(judge(&[asleep], true), Ok(()));
        assert_eq!(judge(&[Span { others: 1, ..asleep }], true), Err(Flaw::Others));
        let turns = Span { switches: 9, ..asleep };
        assert_eq!(judge(&[turns], true), Ok(()), "threads of one CPU take it from each other");
    }

    #[test]
    fn a_scene_counts_whose_threads_began_at_once_and_waited_for_none_but_workers() {
        let two = |late, waited| [span(0, 0), Span { waited_ns: Some(waited), ..span(1, late) }];
        assert_eq!(judge_scene(&two(50_000, 40_000), 0), Ok(()));
        assert_eq!(judge_scene(&two(51_000, 0), 0), Err(Flaw::Apart));
        assert_eq!(judge_scene(&two(0, 41_000), 0), Err(Flaw::Taken));
        assert_eq!(judge_scene(&two(0, 541_000), 501_000), Ok(()), "a worker had its CPU");
        assert_eq!(judge_scene(&two(0, 542_000), 501_000), Err(Flaw::Taken));
    }

    #[test]
    fn a_gap_is_a_part_that_is_much_longer_than_the_others() {
        let gap = |parts: &mut [u64]| Told::by(parts).gap;
        let with = |longest| [vec![100; 63], vec![longest]].concat();
        assert_eq!(gap(&mut with(100)), 0.0);
        assert_eq!(gap(&mut with(199)), 0.0, "some operations take longer");
        assert!((gap(&mut with(400)) - 300.0 / 6_700.0).abs() < 1e-9);
        assert_eq!(gap(&mut [1, 1, 1, 100]), 0.0, "too few parts to say");
        assert_eq!(gap(&mut [0; 64]), 0.0);
        assert!(gap(&mut [vec![0; 24], vec![10; 39], vec![100]].concat()) > GAP_MAX, "most empty");
    }

    #[test]
    fn parts_are_uneven_where_a_quarter_of_them_is_longer() {
        let with = |slower: usize| {
            Told::by(&mut [vec![100; 64 - slower], vec![130; slower]].concat()).uneven
        };
        assert_eq!([0, 15, 17, 47, 49].map(with), [1.0, 1.0, 1.3, 1.3, 1.0]);
        assert_eq!(Told::by(&mut [1, 1, 9, 9]), Told::default(), "too few parts to say");
    }

    #[test]
    fn the_reason_is_that_of_most_slices() {
        assert_eq!(Missing::of(&Flaws::default(), 0), Missing::NoTime);
        let said = |flaws, counted| Missing::of(&flaws, counted).to_string();
        assert_eq!(said([3, 9, 0, 0, 0, 0, 1], 2), "2 of 15 slices count: in 9 it lost its CPU");
        let apart = "0 of 9 slices count: in 9 its threads did not run at the same time";
        assert_eq!(said([9, 0, 0, 0, 0, 0, 0], 0), apart);
        let all = [
            (Flaw::Apart, "at the same time"),
            (Flaw::Taken, "lost its CPU"),
            (Flaw::Stolen, "missing"),
            (Flaw::Others, "other programs"),
            (Flaw::Shared, "shared a core"),
            (Flaw::Moved, "distance"),
            (Flaw::Control, "slower"),
        ];
        assert_eq!(all.len(), FLAWS.len());
        for (flaw, part) in all {
            assert!(FLAWS[flaw as usize].contains(part), "{flaw:?}");
        }
    }
}
