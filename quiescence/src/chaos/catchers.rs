//! What must notice that a step is missing, and where it is found.

/// What must notice that a step is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catcher {
    /// The explorer, which has the same step under the same name.
    Explorer,
    /// Tests of the library's own sources under loom. Each of them must fail.
    Loom(&'static [&'static str]),
    /// A torture run about this theme.
    Torture(&'static str),
    /// The same, in a process that counts per CPU in this way, which is a value of
    /// `QUIESCENCE_PERCPU`.
    TortureOn(&'static str, &'static str),
    /// The C program that tortures the liburcu-compatible libraries: `cargo xtask torture`.
    CTorture,
    /// A test, which must fail.
    Test(Place),
}

/// Where a test is, and how it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The package.
    pub package: &'static str,
    /// The file in its folder `tests`; `lib` for a unit test.
    pub target: &'static str,
    /// The name, with its modules.
    pub test: &'static str,
    /// How the process must count per CPU: a value of `QUIESCENCE_PERCPU`; empty for the best way.
    pub per_cpu: &'static str,
    /// How often it is run, at most, until it fails.
    pub runs: u32,
    /// A run that takes longer hangs, which is a failure.
    pub seconds: u32,
}

impl Place {
    pub(super) const fn on(self, per_cpu: &'static str) -> Self {
        Self { per_cpu, ..self }
    }

    /// Where a fault needs luck to show.
    pub(super) const fn in_one_of(self, runs: u32) -> Self {
        Self { runs, ..self }
    }

    /// Where the missing step has a thread wait for ever.
    pub(super) const fn hangs(self) -> Self {
        Self { seconds: 10, ..self }
    }
}

const fn at(package: &'static str, target: &'static str, test: &'static str) -> Place {
    Place { package, target, test, per_cpu: "", runs: 1, seconds: 100 }
}

/// A test of the library.
pub(super) const fn library(target: &'static str, test: &'static str) -> Place {
    at("quiescence", target, test)
}

/// A test of the liburcu-compatible flavours.
pub(super) const fn flavors(test: &'static str) -> Place {
    at("quiescence-compat", "flavors", test)
}
