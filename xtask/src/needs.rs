//! What tests need of the machine: programs and files of packages that a machine may not have.
//!
//! A test that needs what is not there is skipped, and says so; where `QUIESCENCE_TEST_EXPECT`
//! lists it, the test fails. How that is said is `expect`'s, which tests of all packages share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use crate::tools::c_compiler;

#[path = "../../quiescence/tests/common/expect.rs"]
mod expect;

/// Something that not every machine has: what it is called in `needs.toml`.
pub type Need = &'static str;

/// What `needs.toml` says of one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    word: String,
    missing: String,
    install: String,
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(skip)]
    is_found: OnceLock<bool>,
}

static NEEDS: LazyLock<BTreeMap<String, Described>> =
    LazyLock::new(|| toml::from_str(include_str!("needs.toml")).expect("it is well-formed"));

fn is_found(need: &Need) -> bool {
    let Described { programs, files, is_found, .. } = &NEEDS[*need];
    let is_there = |file: &String| place(file).metadata().is_ok_and(|file| file.len() > 0);
    let is_whole = || files.iter().all(is_there) && (*need != "Gcc" || compiles());
    *is_found.get_or_init(|| programs.iter().all(|program| runs(program)) && is_whole())
}

/// Whether a test can run: whether there are the C compiler and binutils, without which there are
/// no libraries, and what it `needs` besides. If not, that is said, and the test is to return.
///
/// # Panics
/// If something is missing that `QUIESCENCE_TEST_EXPECT` lists.
#[must_use]
pub fn met(needs: &[Need]) -> bool {
    met_for("", &[&["Gcc", "Binutils"], needs].concat())
}

/// Leaves a test whose needs, which are named, are not [`met`].
#[macro_export]
macro_rules! or_return {
    ($($need:ident),*) => {
        if !$crate::needs::met(&[$(stringify!($need)),*]) {
            return;
        }
    };
}
pub use or_return;

/// The same for a part of a test, `what`: the rest of it runs without.
///
/// # Panics
/// As [`met`].
#[must_use]
pub fn met_for(what: &str, needs: &[Need]) -> bool {
    let missing = needs.iter().find(|need| !is_found(need));
    let skip = |need: &&Need| {
        let Described { word, missing, install, .. } = &NEEDS[**need];
        expect::skip(word, missing, what, &format!("install {install}"));
    };
    missing.inspect(skip).is_none()
}

/// Says that the rest of a test is skipped for want of something of the system's.
pub fn skipped(missing: &str, install: &str) {
    expect::say(missing, "", &format!("install {install}"));
}

fn runs(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the C compiler knows what `crate::compat` asks of it.
fn compiles() -> bool {
    let mut command = c_compiler();
    command.args(["-mgeneral-regs-only", "-fsyntax-only", "-x", "c", "-"]);
    if cfg!(target_arch = "x86_64") {
        command.arg("-mtls-dialect=gnu2");
    }
    succeeds(&mut command)
}

/// A path in which `TRIPLET` stands for the machine's part of paths, as in `/usr/lib/TRIPLET`,
/// `ROOT` for a root of Debian 13 with `liburcu-dev`, which `.ci/debian13` makes, and `LOADER` for
/// the dynamic linker in there.
fn place(path: &str) -> PathBuf {
    let output = c_compiler().arg("-print-multiarch").output();
    let triplet = output.ok().filter(|output| output.status.success());
    let triplet = triplet.map_or_else(Vec::new, |said| said.stdout.trim_ascii().to_owned());
    let root = std::env::var("QUIESCENCE_TRIXIE_ROOT").unwrap_or("/nonexistent".to_owned());
    let path = path.replace("TRIPLET", &String::from_utf8_lossy(&triplet));
    let loader = if cfg!(target_arch = "aarch64") {
        "usr/lib/ld-linux-aarch64.so.1"
    } else {
        "usr/lib64/ld-linux-x86-64.so.2"
    };
    path.replace("LOADER", loader).replace("ROOT", &root).into()
}

/// Where Debian's libraries are, liburcu's among them if there is one.
#[must_use]
pub fn debian_libraries() -> PathBuf {
    place("/usr/lib/TRIPLET")
}

/// Where Debian's headers are, liburcu's among them if there are any.
#[must_use]
pub fn debian_headers() -> PathBuf {
    place("/usr/include/TRIPLET")
}

/// Where the libraries of liburcu 0.15 are, and all others of their system, if they are there.
#[must_use]
pub fn libraries_0_15() -> PathBuf {
    place("ROOT/usr/lib/TRIPLET")
}

/// A directory with `include` and `lib` of liburcu 0.15 and nothing else of its system, to compile
/// with here: links to where they are.
///
/// # Panics
/// If it is not there, or the links cannot be made.
#[must_use]
pub fn liburcu_0_15() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let made = crate::tools::root().join("target/liburcu-0.15");
        for (from, to) in
            [(place("ROOT/usr/include/TRIPLET"), "include"), (libraries_0_15(), "lib")]
        {
            let to = made.join(to);
            std::fs::create_dir_all(&to).expect("a folder in target");
            for entry in std::fs::read_dir(&from).expect("a folder of the root") {
                let name = entry.expect("an entry").file_name();
                let text = name.to_string_lossy();
                if text.starts_with("urcu") || text.starts_with("liburcu") {
                    let link = crate::compat::symlink(from.join(&name), &to.join(&name));
                    link.expect("a link in target");
                }
            }
        }
        made
    };
    MADE.get_or_init(make).clone()
}

/// A program on the libraries of the root of Debian 13, its C library among them, and before these
/// on those of `first`: run by that root's own dynamic linker, which needs no chroot.
///
/// # Panics
/// If a path has a colon.
#[must_use]
pub fn in_0_15(program: &Path, first: Option<PathBuf>) -> Command {
    let path = std::env::join_paths(first.into_iter().chain([libraries_0_15()]));
    let mut command = Command::new(place("ROOT/LOADER"));
    command.arg("--library-path").arg(path.expect("paths without a colon")).arg(program);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_what_is_expected_are_read_strictly() {
        assert_eq!(expect::is_listed("", "gcc"), Ok(false));
        assert_eq!(expect::is_listed("membarrier, gcc,", "gcc"), Ok(true));
        assert_eq!(expect::is_listed("gcc,gxx", "gcc"), Err("gxx"));
        for (need, described) in &*NEEDS {
            assert!(expect::WORDS.contains(&&*described.word), "{need:?}");
        }
    }

    #[test]
    fn what_is_there_is_met_without_a_word() {
        assert!(met_for("nothing", &[]));
        assert!(runs("sh") || !runs("no-such-program"));
        assert!(!runs("no-such-program"));
    }
}
