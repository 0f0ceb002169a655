//! Which programs there are, for which libraries and headers each is compiled, and which of their
//! cases Debian's libraries cannot pass: faults of liburcu 0.13, 0.15 or both.

use std::fmt;

/// The library that a program is linked with, and compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Memb,
    Mb,
    Signal,
    Qsbr,
    Bp,
    Common,
    Cds,
}

use Variant::{Bp, Cds, Common, Mb, Memb, Qsbr, Signal};

impl Variant {
    /// As in `liburcu-NAME.so.8`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Memb => "memb",
            Mb => "mb",
            Signal => "signal",
            Qsbr => "qsbr",
            Bp => "bp",
            Common => "common",
            Cds => "cds",
        }
    }

    /// What the sources ask for the flavour by; nothing where they use none.
    pub(crate) fn define(self) -> Option<String> {
        (!matches!(self, Common | Cds)).then(|| format!("-DFLAVOR_{}", self.name().to_uppercase()))
    }
}

pub(crate) const FLAVORS: &[Variant] = &[Memb, Mb, Signal, Qsbr, Bp];
pub(crate) const LIBRARIES: &[Variant] = &[Memb, Mb, Signal, Qsbr, Bp, Common, Cds];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headers {
    Ours,
    /// Of Debian 12: liburcu 0.13.
    Debian,
    /// Of Debian 13: liburcu 0.15.
    Debian13,
}

/// Whether Debian's libraries, and headers, can be asked at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// Compiled and run with both.
    Both,
    /// Compiled with both, run with ours.
    OurLibraries,
    /// What liburcu 0.13 has not got: compiled and run with ours and with 0.15's.
    Later,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) source: &'static str,
    pub(crate) variants: &'static [Variant],
    pub(crate) with: With,
}

const fn program(source: &'static str, variants: &'static [Variant]) -> Program {
    Program { source, variants, with: With::Both }
}

pub(crate) const PROGRAMS: &[Program] = &[
    program("readers.c", FLAVORS),
    program("call_rcu.c", FLAVORS),
    program("defer.c", FLAVORS),
    Program { with: With::Later, ..program("poll.c", FLAVORS) },
    Program { with: With::Later, ..program("lfht_memory.c", &[Memb, Mb, Bp, Qsbr]) },
    program("flavor_struct.c", FLAVORS),
    program("publication.c", FLAVORS),
    program("fork.c", FLAVORS),
    program("faults.c", FLAVORS),
    Program { with: With::OurLibraries, ..program("misuse.c", FLAVORS) },
    program("qsbr.c", &[Qsbr]),
    program("bp.c", &[Bp]),
    program("lists.c", &[Memb, Qsbr]),
    program("stacks.c", &[Memb, Qsbr]),
    program("rculfqueue.c", &[Memb, Bp, Qsbr]),
    program("lfht.c", &[Memb, Mb, Bp, Qsbr]),
    program("lfht_load.c", &[Memb, Mb, Bp, Qsbr]),
    program("wfcqueue.c", &[Common]),
    program("wfqueue.c", &[Common]),
    program("workqueue.c", &[Cds]),
    program("futex.c", LIBRARIES),
    program("cplusplus.cpp", &[Memb, Bp, Qsbr]),
];

/// One executable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) program: &'static Program,
    pub(crate) variant: Variant,
    pub(crate) headers: Headers,
    /// `_LGPL_SOURCE`: readers and the like are inlined from the headers.
    pub(crate) inline: bool,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = match self.headers {
            Headers::Ours => "our headers",
            Headers::Debian => "Debian's headers",
            Headers::Debian13 => "Debian 13's headers",
        };
        let how = if self.inline { "inlined" } else { "exported" };
        write!(f, "{} for {}, {headers}, {how}", self.program.source, self.variant.name())
    }
}

pub(crate) fn builds() -> Vec<Job> {
    let mut jobs = Vec::new();
    for program in PROGRAMS {
        for &variant in program.variants {
            for headers in [Headers::Ours, Headers::Debian, Headers::Debian13] {
                if headers == Headers::Debian && program.with == With::Later {
                    continue;
                }
                // 0.15 has no such library; and what calls itself by /proc/self/exe would call that
                // system's dynamic linker, by which it runs.
                let is_13 = headers == Headers::Debian13;
                if is_13 && (variant == Signal || program.with == With::OurLibraries) {
                    continue;
                }
                let job = |inline| Job { program, variant, headers, inline };
                // Where readers are calls, a program of Debian 12's headers calls what one of ours
                // does, if both declare the same, which a test of the headers sees to.
                if headers != Headers::Debian || variant == program.variants[0] {
                    jobs.push(job(false));
                }
                // The futex's functions are exported only.
                if program.source != "futex.c" {
                    jobs.push(job(true));
                }
            }
        }
    }
    jobs
}

/// Libraries of liburcu's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theirs {
    /// Of Debian 12.
    V13,
    /// Of Debian 13.
    V15,
}

use Theirs::{V13, V15};

impl Theirs {
    /// As the programs know it.
    pub(crate) fn version(self) -> &'static str {
        match self {
            V13 => "0.13",
            V15 => "0.15",
        }
    }
}

/// A case that Debian's library cannot pass.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) source: &'static str,
    pub(crate) case: &'static str,
    pub(crate) variants: &'static [Variant],
    /// It fails there every time, and soon: then it is run there too, and has to fail.
    pub(crate) always: bool,
    /// Which versions have it.
    pub(crate) versions: &'static [Theirs],
}

const fn fault(
    source: &'static str,
    case: &'static str,
    variants: &'static [Variant],
    always: bool,
    versions: &'static [Theirs],
) -> Fault {
    Fault { source, case, variants, always, versions }
}

const BOTH: &[Theirs] = &[V13, V15];
const ALWAYS: bool = true;
const SOMETIMES: bool = false;

/// What is at fault stands before each.
pub(crate) const FAULTS: &[Fault] = &[
    // An updater that sleeps is not woken when the section that it waits for ends, if another has
    // begun.
    fault("readers.c", "later_sections_are_not_waited_for", &[Signal], SOMETIMES, BOTH),
    // The worker waits for itself.
    fault("call_rcu.c", "freed_by_its_own_callback", FLAVORS, SOMETIMES, BOTH),
    // A hash table's handlers of forks cannot be unregistered: the process ends.
    fault("call_rcu.c", "told_of_forks", FLAVORS, ALWAYS, &[V15]),
    // A hash table's handlers of forks cannot be unregistered: the process ends.
    fault("flavor_struct.c", "fork_hooks", FLAVORS, ALWAYS, &[V15]),
    // A hash table's handlers of forks cannot be unregistered: the process ends.
    fault("fork.c", "hooks_of_the_hash_table", FLAVORS, ALWAYS, &[V15]),
    // Now and then it waits for ever: not looked into further.
    fault("lfht_memory.c", "all_memory_comes_back", &[Qsbr], SOMETIMES, &[V15]),
    // An allocator that returns NULL ends the process: an assertion.
    fault("lfht_memory.c", "without_memory_there_is_no_table", FLAVORS, ALWAYS, &[V15]),
    // A cookie is not true though a grace period of another thread has ended since.
    fault("poll.c", "true_after_a_grace_period", FLAVORS, ALWAYS, &[V15]),
    // A thread cannot register for defer_rcu again once rcu_defer_barrier has seen its ring: an
    // assertion.
    fault("defer.c", "registers_again", FLAVORS, ALWAYS, BOTH),
    // An online thread waits for the mutex of a reclaimer that waits for the thread.
    fault("defer.c", "from_many_threads", &[Qsbr], SOMETIMES, BOTH),
    // A section finds a node at the queue's tail whose grace period does not wait for it.
    fault("rculfqueue.c", "what_is_taken_is_not_at_the_tail", &[Memb, Bp, Qsbr], ALWAYS, BOTH),
    // A resize that is over before its request has been noted is the table's last.
    fault("lfht.c", "no_resize_is_lost", FLAVORS, SOMETIMES, BOTH),
    // cds_lfht_destroy waits for a worker that waits for the section.
    fault("lfht.c", "destroyed_in_a_section", FLAVORS, SOMETIMES, BOTH),
    // cds_lfht_resize and cds_lfht_destroy wait for a worker, online, that waits for their thread.
    fault("lfht.c", "resized_and_destroyed_while_online", &[Qsbr], SOMETIMES, BOTH),
    // The child waits for sections of threads that it has not got.
    fault("fork.c", "beside_another_threads_section", &[Memb, Mb, Signal, Qsbr], SOMETIMES, BOTH),
    // Without its hooks called, the child waits for a worker that it has not got.
    fault("fork.c", "without_hooks", FLAVORS, SOMETIMES, BOTH),
    // The worker sleeps 10 ms after each batch.
    fault("faults.c", "no_callback_waits_for_a_timer", FLAVORS, ALWAYS, BOTH),
    // An updater that finds a reader looks again every 10 ms. Not where the section ends while it
    // still signals readers, or looks without a pause.
    fault("faults.c", "no_grace_period_waits_for_a_timer", &[Signal, Bp], SOMETIMES, BOTH),
    // An online thread waits for the mutex of a reclaimer that waits for the thread.
    fault("faults.c", "full_rings_while_others_reclaim", &[Qsbr], SOMETIMES, BOTH),
    // A worker is bound to its CPU after its 256th batch.
    fault("faults.c", "workers_are_bound_at_once", FLAVORS, SOMETIMES, BOTH),
];

/// Those of a job that this library has.
pub(crate) fn faults_of(job: &Job, theirs: Theirs) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(move |fault| {
        fault.source == job.program.source
            && fault.variants.contains(&job.variant)
            && fault.versions.contains(&theirs)
    })
}
