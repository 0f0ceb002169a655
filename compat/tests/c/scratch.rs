//! Directories for the files of tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An empty directory for one test. No other call has it, even one that asks for the same name at
/// the same time: two tests that compiled one source removed each other's programs.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a number of its own is all that is wanted.
    let name = format!("{name}-{}", GIVEN.fetch_add(1, Ordering::Relaxed));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the directory for tests' files");
    directory
}
