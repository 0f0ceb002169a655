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
                jobs.extend([false, true].map(|inline| Job { program, variant, headers, inline }));
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
    /// What is at fault.
    #[expect(dead_code, reason = "for whoever reads the table")]
    pub(crate) why: &'static str,
}

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        source: "readers.c",
        case: "later_sections_are_not_waited_for",
        variants: &[Signal],
        always: false,
        versions: &[V13, V15],
        why: "an updater that sleeps is not woken when the section that it waits for ends, if another has begun",
    },
    Fault {
        source: "call_rcu.c",
        case: "freed_by_its_own_callback",
        variants: FLAVORS,
        always: false,
        versions: &[V13, V15],
        why: "the worker waits for itself",
    },
    Fault {
        source: "call_rcu.c",
        case: "told_of_forks",
        variants: FLAVORS,
        always: true,
        versions: &[V15],
        why: "a hash table's handlers of forks cannot be unregistered: the process ends",
    },
    Fault {
        source: "flavor_struct.c",
        case: "fork_hooks",
        variants: FLAVORS,
        always: true,
        versions: &[V15],
        why: "a hash table's handlers of forks cannot be unregistered: the process ends",
    },
    Fault {
        source: "fork.c",
        case: "hooks_of_the_hash_table",
        variants: FLAVORS,
        always: true,
        versions: &[V15],
        why: "a hash table's handlers of forks cannot be unregistered: the process ends",
    },
    Fault {
        source: "lfht_memory.c",
        case: "all_memory_comes_back",
        variants: &[Qsbr],
        always: false,
        versions: &[V15],
        why: "now and then it waits for ever: not looked into further",
    },
    Fault {
        source: "lfht_memory.c",
        case: "without_memory_there_is_no_table",
        variants: FLAVORS,
        always: true,
        versions: &[V15],
        why: "an allocator that returns NULL ends the process: an assertion",
    },
    Fault {
        source: "poll.c",
        case: "true_after_a_grace_period",
        variants: FLAVORS,
        always: true,
        versions: &[V15],
        why: "a cookie is not true though a grace period of another thread has ended since",
    },
    Fault {
        source: "defer.c",
        case: "registers_again",
        variants: FLAVORS,
        always: true,
        versions: &[V13, V15],
        why: "a thread cannot register for defer_rcu again once rcu_defer_barrier has seen its ring: an assertion",
    },
    Fault {
        source: "defer.c",
        case: "from_many_threads",
        variants: &[Qsbr],
        always: false,
        versions: &[V13, V15],
        why: "an online thread waits for the mutex of a reclaimer that waits for the thread",
    },
    Fault {
        source: "rculfqueue.c",
        case: "what_is_taken_is_not_at_the_tail",
        variants: &[Memb, Bp, Qsbr],
        always: true,
        versions: &[V13, V15],
        why: "a section finds a node at the queue's tail whose grace period does not wait for it",
    },
    Fault {
        source: "lfht.c",
        case: "no_resize_is_lost",
        variants: FLAVORS,
        always: false,
        versions: &[V13, V15],
        why: "a resize that is over before its request has been noted is the table's last",
    },
    Fault {
        source: "lfht.c",
        case: "destroyed_in_a_section",
        variants: FLAVORS,
        always: false,
        versions: &[V13, V15],
        why: "cds_lfht_destroy waits for a worker that waits for the section",
    },
    Fault {
        source: "lfht.c",
        case: "resized_and_destroyed_while_online",
        variants: &[Qsbr],
        always: false,
        versions: &[V13, V15],
        why: "cds_lfht_resize and cds_lfht_destroy wait for a worker, online, that waits for their thread",
    },
    Fault {
        source: "fork.c",
        case: "beside_another_threads_section",
        variants: &[Memb, Mb, Signal, Qsbr],
        always: false,
        versions: &[V13, V15],
        why: "the child waits for sections of threads that it has not got",
    },
    Fault {
        source: "fork.c",
        case: "without_hooks",
        variants: FLAVORS,
        always: false,
        versions: &[V13, V15],
        why: "without its hooks called, the child waits for a worker that it has not got",
    },
    Fault {
        source: "faults.c",
        case: "no_callback_waits_for_a_timer",
        variants: FLAVORS,
        always: true,
        versions: &[V13, V15],
        why: "the worker sleeps 10 ms after each batch",
    },
    Fault {
        source: "faults.c",
        case: "no_grace_period_waits_for_a_timer",
        variants: &[Signal, Bp],
        // Not where the section ends while it still signals readers, or looks without a pause.
        always: false,
        versions: &[V13, V15],
        why: "an updater that finds a reader looks again every 10 ms",
    },
    Fault {
        source: "faults.c",
        case: "full_rings_while_others_reclaim",
        variants: &[Qsbr],
        always: false,
        versions: &[V13, V15],
        why: "an online thread waits for the mutex of a reclaimer that waits for the thread",
    },
    Fault {
        source: "faults.c",
        case: "workers_are_bound_at_once",
        variants: FLAVORS,
        always: false,
        versions: &[V13, V15],
        why: "a worker is bound to its CPU after its 256th batch",
    },
];

/// Those of a job that this library has.
pub(crate) fn faults_of(job: &Job, theirs: Theirs) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(move |fault| {
        fault.source == job.program.source
            && fault.variants.contains(&job.variant)
            && fault.versions.contains(&theirs)
    })
}
