//! Samples of this process by a timer's signal, as collapsed stacks: what `rcu diff` reads where
//! `perf` is not permitted. What unwinds and names the frames is a third of all crates that the
//! command would need, so this is a feature.

use std::path::Path;

use crate::Error;

/// Samples this process from now on, until [`Samples::write`].
#[cfg(feature = "sampling")]
pub struct Samples(pprof::ProfilerGuard<'static>);

/// Samples that are never taken: built without the feature `sampling`.
#[cfg(not(feature = "sampling"))]
#[derive(Debug)]
pub enum Samples {}

#[cfg(feature = "sampling")]
impl Samples {
    /// Begins.
    ///
    /// # Errors
    /// If the timer or the signal's handler cannot be had.
    pub fn begin() -> Result<Samples, Error> {
        /// A second of CPU time; no round number, which a program's own period could be.
        const HZ: i32 = 997;
        let builder = pprof::ProfilerGuardBuilder::default();
        // A thread that is interrupted while it unwinds or loads a library holds a lock that the
        // handler would wait for.
        let builder = builder.frequency(HZ).blocklist(&["libgcc", "vdso", "ld-linux"]);
        let guard = builder.build();
        guard.map(Samples).map_err(|error| Error::Unsupported(format!("cannot sample: {error}")))
    }

    /// Ends the samples, and writes them as collapsed stacks.
    ///
    /// # Errors
    /// If they cannot be read, or the file cannot be written.
    pub fn write(self, path: &Path) -> Result<(), Error> {
        use std::fmt::Write as _;
        let report = self
            .0
            .report()
            .build()
            .map_err(|error| Error::Unsupported(format!("cannot read the samples: {error}")))?;
        let mut text = String::new();
        for (frames, count) in &report.data {
            let names = frames.frames.iter().rev().flat_map(|inlined| inlined.iter().rev());
            let stack: Vec<String> = names.map(|symbol| symbol.name().replace(';', ",")).collect();
            // A sample of which no frame could be unwound says nothing.
            if !stack.is_empty() {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{} {count}", stack.join(";").trim_start());
            }
        }
        let doing = || format!("cannot write {}", path.display());
        std::fs::write(path, text).map_err(|error| Error::Io { doing: doing(), error })
    }
}

#[cfg(not(feature = "sampling"))]
impl Samples {
    /// Says with which feature samples would be taken.
    ///
    /// # Errors
    /// Always.
    pub fn begin() -> Result<Samples, Error> {
        let how = "built without samples by a signal (cargo run --release --features sampling); \
                   perf needs none of that";
        Err(Error::Unsupported(how.to_owned()))
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn write(self, _: &Path) -> Result<(), Error> {
        match self {}
    }
}

#[cfg(feature = "sampling")]
impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Samples").finish_non_exhaustive()
    }
}
