//! Which programs there are, for which libraries and headers each is compiled, and which of their
//! cases Debian's libraries cannot pass: `tests/programs/table.toml`.

use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::program::{Version, Whose};

/// The library that a program is linked with, and compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// What the sources ask for the flavour by; nothing where they use none.
    pub(crate) fn define(self) -> Option<String> {
        (!matches!(self, Common | Cds)).then(|| format!("-DFLAVOR_{}", self.name().to_uppercase()))
    }
}

pub(crate) const LIBRARIES: &[Variant] = &[Memb, Mb, Signal, Qsbr, Bp, Common, Cds];

/// Whether Debian's libraries, and headers, can be asked at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum With {
    /// Compiled and run with both.
    #[default]
    Both,
    /// Compiled with both, run with ours.
    OurLibraries,
    /// What liburcu 0.13 has not got: compiled and run with ours and with 0.15's.
    Later,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub(crate) source: String,
    pub(crate) variants: Vec<Variant>,
    #[serde(default)]
    pub(crate) with: With,
    /// It is about what is a call or inlined: of each flavour it is compiled both ways.
    #[serde(default)]
    pub(crate) both_ways: bool,
}

/// One executable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) program: &'static Program,
    pub(crate) variant: Variant,
    pub(crate) headers: Whose,
    /// `_LGPL_SOURCE`: readers and the like are inlined from the headers.
    pub(crate) inline: bool,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (headers, variant) = (self.headers.name(), self.variant.name());
        let how = if self.inline { "inlined" } else { "exported" };
        write!(f, "{} for {variant}, headers: {headers}, {how}", self.program.source)
    }
}

pub(crate) fn builds() -> Vec<Job> {
    let mut jobs = Vec::new();
    for program in &TABLE.program {
        for &variant in &program.variants {
            for headers in [Whose::Ours, Whose::Debians, Whose::Debian13s] {
                if headers == Whose::Debians && program.with == With::Later {
                    continue;
                }
                // 0.15 has no such library; and what calls itself by /proc/self/exe would call that
                // system's dynamic linker, by which it runs.
                let is_13 = headers == Whose::Debian13s;
                if is_13 && (variant == Signal || program.with == With::OurLibraries) {
                    continue;
                }
                let job = |inline| Job { program, variant, headers, inline };
                // Where readers are calls, a program of Debian 12's headers calls what one of ours
                // does, if both declare the same, which a test of the headers sees to. All else is
                // a call either way, and the functions of each flavour's readers are called by the
                // programs about them.
                let is_first = variant == program.variants[0];
                if is_first || program.both_ways && headers != Whose::Debians {
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

/// A case that Debian's library cannot pass.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) source: String,
    pub(crate) case: String,
    pub(crate) variants: Vec<Variant>,
    /// It fails there every time, and soon: then it is run there too, and has to fail.
    pub(crate) always: bool,
    /// Which versions have it.
    pub(crate) versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
struct Table {
    program: Vec<Program>,
    fault: Vec<Fault>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../../programs/table.toml")).expect("the table is well-formed")
});

/// Those of a job that this library has.
pub(crate) fn faults_of(job: &Job, theirs: Version) -> impl Iterator<Item = &'static Fault> {
    TABLE.fault.iter().filter(move |fault| {
        fault.source == job.program.source
            && fault.variants.contains(&job.variant)
            && fault.versions.contains(&theirs)
    })
}
