//! Samples of this process by a timer's signal, as collapsed stacks: what `rcu diff` reads where
//! `perf` is not permitted. What unwinds and names the frames is a third of all crates that the
//! command would need, so this is a feature.

use std::path::Path;

use crate::Error;

/// Ends the samples, and writes them as collapsed stacks. Fails if they cannot be read, or the file
/// cannot be written.
pub type Write = Box<dyn FnOnce(&Path) -> Result<(), Error>>;

/// Samples this process from now on, until the result is called.
///
/// # Errors
/// If the timer or the signal's handler cannot be had.
#[cfg(feature = "sampling")]
pub fn begin() -> Result<Write, Error> {
    /// A second of CPU time; no round number, which a program's own period could be.
    const HZ: i32 = 997;
    let builder = pprof::ProfilerGuardBuilder::default();
    // A thread that is interrupted while it unwinds or loads a library holds a lock that the
    // handler would wait for.
    let builder = builder.frequency(HZ).blocklist(&["libgcc", "vdso", "ld-linux"]);
    let guard =
        builder.build().map_err(|error| Error::Unsupported(format!("cannot sample: {error}")))?;
    Ok(Box::new(move |path| write(&guard, path)))
}

/// Says with which feature samples would be taken.
///
/// # Errors
/// Always.
#[cfg(not(feature = "sampling"))]
pub fn begin() -> Result<Write, Error> {
    let how = "built without samples by a signal (cargo run --release --features sampling); perf \
               needs none of that";
    Err(Error::Unsupported(how.to_owned()))
}

#[cfg(feature = "sampling")]
fn write(guard: &pprof::ProfilerGuard<'_>, path: &Path) -> Result<(), Error> {
    let report = guard
        .report()
        .build()
        .map_err(|error| Error::Unsupported(format!("cannot read the samples: {error}")))?;
    let stacks = report.data.iter().filter_map(|(frames, count)| {
        let names = frames.frames.iter().rev().flat_map(|inlined| inlined.iter().rev());
        let stack: Vec<String> = names.map(|symbol| symbol.name().replace(';', ",")).collect();
        // A sample of which no frame could be unwound says nothing.
        (!stack.is_empty()).then(|| format!("{} {count}\n", stack.join(";").trim_start()))
    });
    let text: String = stacks.collect();
    let doing = || format!("cannot write {}", path.display());
    std::fs::write(path, text).map_err(|error| Error::Io { doing: doing(), error })
}
