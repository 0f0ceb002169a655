//! What tests need of the machine that not every machine has.
//!
//! A test that needs what is not there is skipped, and says so on standard error, past what the
//! test harness captures: `skipped: no g++ for the test X; install g++`. The variable
//! `QUIESCENCE_TEST_EXPECT` lists what a machine is known to have, in [`WORDS`] with commas
//! between; there a skipped test fails instead. A word that is none of these is a mistake, and
//! fails too.
//!
//! Tests of several packages include this file, those of `xtask` among them.

#![allow(dead_code)]

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The variable that lists what is there.
pub(crate) const EXPECT: &str = "QUIESCENCE_TEST_EXPECT";

/// What it may list: system calls, programs and rights.
pub(crate) const WORDS: [&str; 17] = [
    // Fences of the kernel's for other threads, in place of the readers' own.
    "membarrier",
    // Restartable sequences, in the kernel, in the C library and on this architecture.
    "restartable",
    // The rights of root.
    "root",
    // Leave to take CPUs away for a moment.
    "hotplug",
    "gcc",
    "binutils",
    "g++",
    "liburcu",
    "liburcu-0.15",
    "dpkg-deb",
    "bash",
    "lintian",
    "make",
    "pkg-config",
    "cmake",
    "meson",
    "valgrind",
];

/// Whether the machine is known to have what `word` stands for.
///
/// # Panics
/// If the variable, or the caller, says what is none of [`WORDS`].
pub(crate) fn is_expected(word: &str) -> bool {
    assert!(WORDS.contains(&word), "no such word: {word}");
    let listed = std::env::var(EXPECT).unwrap_or_default();
    is_listed(&listed, word).unwrap_or_else(|unknown| {
        panic!("{EXPECT} lists {unknown:?}, which is none of {}", WORDS.join(","))
    })
}

/// Whether a list has a word; else the word of it that is not known.
pub(crate) fn is_listed<'l>(listed: &'l str, word: &str) -> Result<bool, &'l str> {
    let mut words = listed.split(',').map(str::trim).filter(|word| !word.is_empty());
    match words.clone().find(|listed| !WORDS.contains(listed)) {
        Some(unknown) => Err(unknown),
        None => Ok(words.any(|listed| listed == word)),
    }
}

/// Says that the test, or the part of it that `part` names, is skipped: what is missing, and how it
/// is had.
///
/// # Panics
/// If `word`, which stands for it, is expected to be there.
pub(crate) fn skip(word: &str, missing: &str, part: &str, remedy: &str) {
    assert!(!is_expected(word), "{EXPECT} lists {word}, and there is no {missing}: {remedy}");
    say(missing, part, remedy);
}

/// The same of something that no word stands for.
pub(crate) fn say(missing: &str, part: &str, remedy: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a number for people.
    let number = SKIPPED.fetch_add(1, Relaxed) + 1;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let part = if part.is_empty() { String::new() } else { format!(", {part}") };
    let line =
        format!("skipped: no {missing} for the test {test}{part}; {remedy} ({number} so far)\n");
    // Not by a macro, whose output the harness captures. Nothing is lost if it cannot be written.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether there are restartable sequences, as `there` says. If not, the test is skipped.
#[must_use]
pub(crate) fn sequences(there: bool) -> bool {
    if !there {
        if is_asked_for_portable() {
            // Not for want of them: another run of the same tests has them.
            return false;
        }
        skip("restartable", "restartable sequences", "", "use Linux 5.10 and glibc 2.35 or later");
    }
    there
}

/// Whether the environment asks this process for the path that needs no restartable sequences.
pub(crate) fn is_asked_for_portable() -> bool {
    let is_portable = |name| std::env::var_os(name).is_some_and(|value| value == "portable");
    is_portable("QUIESCENCE_FENCES")
        || is_portable("QUIESCENCE_PERCPU")
        || std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("pthread.rseq=0"))
}
