//! The limits of a domain's deferral: memory, delay, and callbacks at a time; set at run time.
//!
//! What the program does not set the environment may ([`Defaults`]): a program that was written for
//! another library, or that no user wants to rebuild, has no other way to set it.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::batch;

use crate::os::{self, clock::ns};

/// The limits of a domain's deferral; read by [`Domain::tuning`](crate::Domain::tuning), set by
/// [`Domain::tune`](crate::Domain::tune) at any time, or when the domain is
/// [built](crate::tuning::Builder::tuning).
///
/// ```
/// use std::time::Duration;
///
/// let domain = quiescence::Domain::global();
/// let mut tuning = domain.tuning();
/// tuning.bytes_max = 16 << 20;
/// tuning.lazy = Duration::from_millis(20);
/// domain.tune(tuning);
/// ```
///
/// # Environment
/// These set other defaults for all domains of a process; limits that the program sets take
/// precedence. A value that cannot be parsed is reported once on standard error, and the default
/// stays.
///
/// | variable | what |
/// |---|---|
/// | `QUIESCENCE_LIMIT_BYTES` | `bytes_max`; a suffix `K`, `M` or `G` stands for 2^10, 2^20 or 2^30 |
/// | `QUIESCENCE_LIMIT_OBJECTS` | `objects_max`; likewise |
/// | `QUIESCENCE_LAZY_MS` | `lazy`, in milliseconds |
/// | `QUIESCENCE_STALL_MS` | `stall_after` and `stall_after_expedited`, in milliseconds; 0 turns the reports off |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuning {
    /// The largest number of objects and closures that may be queued; 0 counts as 1. By default
    /// `bytes_max / 256`, clamped to 65,536..=1,048,576, since an object may own memory that
    /// `bytes_max` does not count.
    ///
    /// Threads reserve room from the domain in portions, and keep the unused rest until they defer
    /// again or end. So the limit may be reached early: by at most 1/64 of the limit for each other
    /// thread, and by at most half of it in total. The same applies to bytes.
    pub objects_max: u64,
    /// The largest number of bytes that may be queued; 0 counts as 1. A value replaced in an
    /// [`Rcu`](crate::Rcu) counts with all that it owns ([`Weigh`](crate::Weigh)). A retired object
    /// counts with its own memory ([`Retire`](crate::Retire)), or with the bytes given to
    /// [`retire_sized`](crate::Domain::retire_sized). A closure counts with its captures, but not
    /// with what they own. An object larger than the limit waits alone; if it cannot, its thread
    /// waits ([`try_retire`](crate::Domain::try_retire) returns it). The default is 1/64 of the
    /// memory available to this process (the machine's, or its control group's if that is less),
    /// but at least 16 MiB. Memory in the queue is unused: 1/64 is little compared with what a
    /// program needs, and on most machines it holds everything that a flood of retirements adds in
    /// a second.
    pub bytes_max: u64,
    /// How long a deferred object or closure may wait for others that share its grace period. Then
    /// a grace period is requested on its behalf, unless a thread has requested one earlier. 100 ms
    /// by default. An idle process has no grace periods.
    pub lazy: Duration,
    /// The smallest number of callbacks that the worker, or a thread that waits, runs at a time; 32
    /// by default, 0 counts as 1. If thousands are ready, it runs 1/128 of them at a time. (A
    /// thread that retires runs 10 for each 9 that it adds; in a hazard domain, 8 for each 7.)
    pub run_min: u32,
    /// A thread that has run callbacks for this long turns to its other work first; 3 ms by
    /// default.
    pub run_time: Duration,
    /// The age at which a grace period is reported as stalled, and again each time that age
    /// doubles; 1 s by default. `None` turns the reports off. See
    /// [`set_stall_hook`](crate::report::set_stall_hook). In domains of [liburcu
    /// readers](crate::liburcu_readers) the default is `None`, for this and the next field.
    pub stall_after: Option<Duration>,
    /// The same for expedited grace periods; 200 ms by default.
    pub stall_after_expedited: Option<Duration>,
}

impl Default for Tuning {
    fn default() -> Self {
        AtomicTuning::new(Kind::Threads).get()
    }
}

/// By default 1 / `SHARE` of the memory may wait.
const SHARE: u64 = 64;
const BYTES_LEAST: u64 = 16 << 20;
const BYTES_AN_OBJECT: u64 = 256;
const OBJECTS: std::ops::RangeInclusive<u64> = 65_536..=1_048_576;

/// A limit's place in a tuning.
#[derive(Clone, Copy)]
enum Limit {
    ObjectsMax,
    BytesMax,
    LazyNs,
    RunMin,
    RunNs,
    StallAfterNs,
    StallAfterExpeditedNs,
}

/// The limits as numbers. Times are in nanoseconds; `u64::MAX` is never.
type Values = [u64; 7];

/// The domains that have defaults of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Threads,
    Liburcu,
    Hazard,
}

/// A tuning that threads may read while another thread changes it.
#[derive(Debug)]
pub(crate) struct AtomicTuning {
    kind: Kind,
    words: [AtomicU64; 7],
}

/// In a word: the default, which is not known before the program runs.
const UNSET: u64 = u64::MAX - 1;

impl AtomicTuning {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, words: [const { AtomicU64::new(UNSET) }; 7] }
    }

    #[inline(never)] // many places ask, all of them on slow paths
    fn value(&self, limit: Limit) -> u64 {
        let word = &self.words[limit as usize];
        // Relaxed, here and in `set`: independent numbers, which order nothing.
        if word.load(Relaxed) == UNSET {
            let default = defaults()[self.kind as usize][limit as usize];
            // It is found at once from now on, unless another thread has set the word meanwhile.
            let _ = word.compare_exchange(UNSET, default, Relaxed, Relaxed);
        }
        word.load(Relaxed)
    }

    pub(crate) fn objects_max(&self) -> u64 {
        self.value(Limit::ObjectsMax)
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.value(Limit::BytesMax)
    }

    pub(crate) fn lazy_ns(&self) -> u64 {
        self.value(Limit::LazyNs)
    }

    pub(crate) fn run_min(&self) -> u64 {
        self.value(Limit::RunMin)
    }

    pub(crate) fn run_ns(&self) -> u64 {
        self.value(Limit::RunNs)
    }

    /// `u64::MAX` if it is off.
    pub(crate) fn stall_after_ns(&self, expedited: bool) -> u64 {
        self.value(if expedited { Limit::StallAfterExpeditedNs } else { Limit::StallAfterNs })
    }

    pub(crate) fn get(&self) -> Tuning {
        let after = |ns: u64| (ns != u64::MAX).then(|| Duration::from_nanos(ns));
        Tuning {
            objects_max: self.objects_max(),
            bytes_max: self.bytes_max(),
            lazy: Duration::from_nanos(self.lazy_ns()),
            run_min: self.run_min() as u32,
            run_time: Duration::from_nanos(self.run_ns()),
            stall_after: after(self.stall_after_ns(false)),
            stall_after_expedited: after(self.stall_after_ns(true)),
        }
    }

    pub(crate) fn set(&self, tuning: Tuning) {
        let values: Values = [
            tuning.objects_max.max(1),
            tuning.bytes_max.max(1),
            ns(tuning.lazy),
            u64::from(tuning.run_min.max(1)),
            ns(tuning.run_time),
            tuning.stall_after.map_or(u64::MAX, ns),
            tuning.stall_after_expedited.map_or(u64::MAX, ns),
        ];
        for (word, value) in self.words.iter().zip(values) {
            // One more than `UNSET` is no other limit: centuries, or more than there is memory.
            word.store(if value == UNSET { u64::MAX } else { value }, Relaxed);
        }
    }
}

const MS: u64 = 1_000_000;

/// What applies unless the program sets it, for each [`Kind`], under the variables that `value`
/// reads. `complain` gets what cannot be understood.
fn read_defaults(
    value: &dyn Fn(&CStr) -> Option<String>,
    complain: &mut dyn FnMut(&CStr, &str, &str),
) -> [Values; 3] {
    let mut look = |name: &CStr, wanted: &str, parse: fn(&str) -> Option<u64>| {
        let found = value(name)?;
        let parsed = parse(&found);
        if parsed.is_none() {
            complain(name, &found, wanted);
        }
        parsed
    };
    let amount = "a whole number above 0, with K, M or G behind it or nothing";
    let time = "a whole number of milliseconds";
    let bytes = look(c"QUIESCENCE_LIMIT_BYTES", amount, parse_amount);
    let objects = look(c"QUIESCENCE_LIMIT_OBJECTS", amount, parse_amount);
    let lazy_ns = look(c"QUIESCENCE_LAZY_MS", time, parse_ms);
    let stall_ns = look(c"QUIESCENCE_STALL_MS", time, parse_ms);
    let stall_ns = stall_ns.map(|ns| if ns == 0 { u64::MAX } else { ns });
    let available = || (os::memory::available_bytes() / SHARE).max(BYTES_LEAST);
    let bytes_max = bytes.unwrap_or_else(available);
    let fill = (bytes_max / BYTES_AN_OBJECT).clamp(*OBJECTS.start(), *OBJECTS.end());
    let of = |lazy_default_ns, stall_default_ns, stall_expedited_default_ns| -> Values {
        [
            objects.unwrap_or(fill),
            bytes_max,
            lazy_ns.unwrap_or(lazy_default_ns),
            batch::RUN_MIN,
            batch::RUN_NS,
            stall_ns.unwrap_or(stall_default_ns),
            stall_ns.unwrap_or(stall_expedited_default_ns),
        ]
    };
    [
        of(batch::LAZY_NS, 1_000 * MS, 200 * MS),
        // Programs that were compiled against liburcu have not asked for reports, and cannot tune.
        // A report starts a thread, which a sandbox may not allow, and is written to descriptor 2,
        // which may be a file of the program's.
        of(batch::LAZY_NS, u64::MAX, u64::MAX),
        of(batch::LAZY_HAZARD_NS, 1_000 * MS, 200 * MS),
    ]
}

/// A number above 0, as `5`, `64K`, `16M` or `2G`.
fn parse_amount(said: &str) -> Option<u64> {
    let shift = match said.as_bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { said } else { said.split_at(said.len() - 1).0 };
    let number = parse_number(digits)?.checked_mul(1 << shift)?;
    (number != 0).then_some(number)
}

/// Milliseconds, in nanoseconds; `None` from some centuries on.
fn parse_ms(said: &str) -> Option<u64> {
    parse_number(said)?.checked_mul(MS).filter(|ns| *ns < UNSET)
}

/// Digits only: no sign.
fn parse_number(said: &str) -> Option<u64> {
    let is_number = said.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| os::environment::parse(said.as_bytes()))?
}

/// The defaults, by kind; determined once, before the first fork, which must not find that in
/// progress.
pub(crate) fn defaults() -> &'static [Values; 3] {
    static DEFAULTS: OnceLock<[Values; 3]> = OnceLock::new();
    DEFAULTS.get_or_init(|| {
        read_defaults(&os::environment::value, &mut |name, found, wanted| {
            os::environment::complain(name, found.as_bytes(), wanted);
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::again::*;

    #[test]
    fn what_is_set_is_got_and_nonsense_is_made_sense_of() {
        let words = AtomicTuning::new(Kind::Threads);
        let mut tuning = words.get();
        assert!(tuning.bytes_max >= BYTES_LEAST && OBJECTS.contains(&tuning.objects_max));
        tuning.objects_max = 7;
        tuning.stall_after = None;
        tuning.lazy = Duration::MAX;
        words.set(tuning);
        assert_eq!(words.get().objects_max, 7);
        assert_eq!(words.get().stall_after, None);
        assert_eq!(words.stall_after_ns(false), u64::MAX);
        tuning.bytes_max = 0;
        tuning.run_min = 0;
        words.set(tuning);
        assert_eq!((words.bytes_max(), words.run_min()), (1, 1));
    }

    /// A `lazy` of 2^64 - 4 ns, some centuries, used to be taken for a hazard domain's default of 4
    /// ms.
    #[test]
    fn no_time_that_is_set_stands_for_a_default() {
        for stands_for in [UNSET - 2, UNSET - 1, UNSET] {
            let kinds = [Kind::Threads, Kind::Liburcu, Kind::Hazard];
            for words in kinds.map(AtomicTuning::new) {
                let ns = if stands_for == UNSET { u64::MAX } else { stands_for };
                let time = Duration::from_nanos(stands_for);
                let set = Tuning { lazy: time, stall_after: Some(time), ..words.get() };
                words.set(Tuning { stall_after_expedited: Some(time), ..set });
                assert_eq!((words.lazy_ns(), words.stall_after_ns(false)), (ns, ns));
                assert_eq!(words.stall_after_ns(true), ns);
            }
        }
    }

    /// The defaults in an environment of these variables, and the complaints.
    fn read(variables: &[(&str, &str)]) -> ([Values; 3], Vec<String>) {
        let mut complaints = Vec::new();
        let value = |name: &CStr| {
            let found = variables.iter().find(|(known, _)| name.to_str() == Ok(*known));
            found.map(|(_, value)| (*value).to_owned())
        };
        let defaults = read_defaults(&value, &mut |name, found, _wanted| {
            complaints.push(format!("{}={found}", name.to_string_lossy()));
        });
        (defaults, complaints)
    }

    #[test]
    fn the_environment_is_heard() {
        let (nothing, none) = read(&[]);
        assert!(none.is_empty());
        let [threads, _, hazard] = nothing;
        let [objects_max, bytes_max, lazy_ns, run_min, run_ns, stall_ns, expedited_ns] = threads;
        assert!(bytes_max >= BYTES_LEAST && OBJECTS.contains(&objects_max));
        assert_eq!((run_min, run_ns), (batch::RUN_MIN, batch::RUN_NS));
        assert_eq!((lazy_ns, stall_ns, expedited_ns), (100 * MS, 1_000 * MS, 200 * MS));
        assert_eq!(hazard[Limit::LazyNs as usize], batch::LAZY_HAZARD_NS);
        let (said, none) = read(&[
            ("QUIESCENCE_LIMIT_BYTES", "64M"),
            ("QUIESCENCE_LIMIT_OBJECTS", "12"),
            ("QUIESCENCE_LAZY_MS", "0"),
            ("QUIESCENCE_STALL_MS", "2500"),
        ]);
        assert!(none.is_empty());
        let stall_ns = 2_500 * MS;
        let expected = [12, 64 << 20, 0, batch::RUN_MIN, batch::RUN_NS, stall_ns, stall_ns];
        assert_eq!(said, [expected; 3]);
        let ([silent, ..], _) = read(&[("QUIESCENCE_STALL_MS", "0")]);
        assert_eq!(silent[Limit::StallAfterNs as usize..], [u64::MAX; 2]);
        let ([few, ..], _) = read(&[("QUIESCENCE_LIMIT_BYTES", "5K")]);
        assert_eq!(few[..=Limit::BytesMax as usize], [*OBJECTS.start(), 5 << 10]);
    }

    /// After 10 s a thread was started, which a sandbox may not allow, and descriptor 2 written to,
    /// which may be any file of the program's.
    #[test]
    fn programs_of_liburcu_that_never_asked_were_sent_reports() {
        let stalls = |variables: &[_]| {
            let [_, liburcu, _] = read(variables).0;
            [liburcu[Limit::StallAfterNs as usize], liburcu[Limit::StallAfterExpeditedNs as usize]]
        };
        assert_eq!(stalls(&[]), [u64::MAX; 2]);
        assert_eq!(stalls(&[("QUIESCENCE_STALL_MS", "20")]), [20 * MS; 2]);
    }

    #[test]
    fn what_cannot_be_understood_is_complained_of() {
        let (plain, _) = read(&[]);
        let too_much = "17179869184G";
        for wrong in ["", "K", "0", "-1", "+1", "1.5M", "1k", "64 M", "1T", "\u{663}", too_much] {
            let (defaults, complaints) = read(&[("QUIESCENCE_LIMIT_BYTES", wrong)]);
            assert_eq!(defaults, plain, "{wrong:?}");
            assert_eq!(complaints, [format!("QUIESCENCE_LIMIT_BYTES={wrong}")]);
        }
        for wrong in ["", "-1", "1s", "18446744073710", "99999999999999999999"] {
            let (defaults, complaints) = read(&[("QUIESCENCE_STALL_MS", wrong)]);
            assert_eq!(defaults, plain, "{wrong:?}");
            assert_eq!(complaints, [format!("QUIESCENCE_STALL_MS={wrong}")]);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a child process")]
    fn every_domain_begins_with_it_and_a_program_may_say_otherwise() {
        if role().is_some() {
            let domain = crate::Domain::new();
            let mut tuning = domain.tuning();
            assert_eq!((tuning.bytes_max, tuning.objects_max), (3 << 20, 9));
            assert_eq!(tuning.lazy, Duration::from_millis(7));
            assert_eq!(tuning.stall_after, Some(Duration::from_secs(1)), "which nobody understood");
            tuning.objects_max = 10;
            domain.tune(tuning);
            assert_eq!(domain.tuning(), tuning);
            return;
        }
        let limits = [("QUIESCENCE_LIMIT_BYTES", "3M"), ("QUIESCENCE_LIMIT_OBJECTS", "9")];
        let times = [("QUIESCENCE_LAZY_MS", "7"), ("QUIESCENCE_STALL_MS", "soon")];
        let output = again(this_test!(), "child", &[limits, times].concat());
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches("QUIESCENCE_STALL_MS=soon is not").count(), 1, "{said}");
    }
}
