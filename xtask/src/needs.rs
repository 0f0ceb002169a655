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

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Need {
    /// GNU's C compiler, with the options that the libraries are compiled with.
    Gcc,
    /// `nm`, `objdump`, `readelf`, `strip`.
    Binutils,
    /// GNU's C++ compiler.
    Gxx,
    /// liburcu 0.13 as Debian has it, with its headers.
    Liburcu,
    /// `dpkg` and `dpkg-deb`, and what else packages are made with.
    Dpkg,
    /// bash, and the programs that `compat/clients/common.sh` calls for every client.
    Scripts,
    /// Debian's checker of packages.
    Lintian,
    /// GNU make.
    Make,
    /// `pkg-config`, or `pkgconf` under its name.
    PkgConfig,
    /// CMake, with `ctest`.
    Cmake,
    /// Meson, with ninja.
    Meson,
    /// valgrind.
    Valgrind,
    /// liburcu 0.15 with its headers, in a root of Debian 13 that [`ROOT_0_15`] names.
    Liburcu15,
}

/// The variable that names a root of Debian 13 with `liburcu-dev`. `cargo xtask debian13` makes
/// one.
pub const ROOT_0_15: &str = "QUIESCENCE_TRIXIE_ROOT";

/// What `needs.toml` says of one.
#[derive(Debug, Deserialize)]
struct Described {
    word: String,
    missing: String,
    install: String,
    programs: Vec<String>,
    #[serde(skip)]
    is_found: OnceLock<bool>,
}

static NEEDS: LazyLock<BTreeMap<Need, Described>> =
    LazyLock::new(|| toml::from_str(include_str!("needs.toml")).expect("it is well-formed"));

impl Need {
    fn is_found(self) -> bool {
        let Described { programs, is_found, .. } = &NEEDS[&self];
        let is_whole = match self {
            Self::Gcc => compiles,
            Self::Liburcu => has_liburcu,
            Self::Liburcu15 => has_liburcu_0_15,
            _ => || true,
        };
        *is_found.get_or_init(|| programs.iter().all(|program| runs(program)) && is_whole())
    }
}

/// Whether a test can run: whether there are the C compiler and binutils, without which there are
/// no libraries, and what it `needs` besides. If not, that is said, and the test is to return.
///
/// # Panics
/// If something is missing that `QUIESCENCE_TEST_EXPECT` lists.
#[must_use]
pub fn met(needs: &[Need]) -> bool {
    let all = [Need::Gcc, Need::Binutils].into_iter().chain(needs.iter().copied());
    let missing = all.into_iter().find(|need| !need.is_found());
    missing.inspect(|need| skip(*need, "")).is_none()
}

/// Leaves a test whose needs, which are named, are not [`met`].
#[macro_export]
macro_rules! or_return {
    ($($need:ident),*) => {
        if !$crate::needs::met(&[$($crate::needs::Need::$need),*]) {
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
    let missing = needs.iter().find(|need| !need.is_found());
    missing.inspect(|need| skip(**need, what)).is_none()
}

fn skip(need: Need, part: &str) {
    let Described { word, missing, install, .. } = &NEEDS[&need];
    expect::skip(word, missing, part, &format!("install {install}"));
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

/// The part of paths that is the machine's, as in `/usr/lib/TRIPLET`; empty where there is none.
fn triplet() -> String {
    let output = c_compiler().arg("-print-multiarch").output();
    let said = output.ok().filter(|output| output.status.success());
    said.map_or_else(String::new, |said| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Where Debian's libraries are, liburcu's among them if [`Need::Liburcu`] is met.
#[must_use]
pub fn debian_libraries() -> PathBuf {
    Path::new("/usr/lib").join(triplet())
}

/// Where Debian's headers are, liburcu's among them if [`Need::Liburcu`] is met.
#[must_use]
pub fn debian_headers() -> PathBuf {
    Path::new("/usr/include").join(triplet())
}

/// The root of Debian 13.
///
/// # Panics
/// If [`Need::Liburcu15`] is not met.
#[must_use]
pub fn root_0_15() -> PathBuf {
    PathBuf::from(std::env::var_os(ROOT_0_15).expect("the need is met"))
}

/// Where the libraries of liburcu 0.15 are, and all others of their system.
///
/// # Panics
/// If [`Need::Liburcu15`] is not met.
#[must_use]
pub fn libraries_0_15() -> PathBuf {
    root_0_15().join("usr/lib").join(triplet())
}

/// A directory with `include` and `lib` of liburcu 0.15 and nothing else of its system, to compile
/// with here: links to where they are.
///
/// # Panics
/// If [`Need::Liburcu15`] is not met, or the links cannot be made.
#[must_use]
pub fn liburcu_0_15() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let place = crate::tools::root().join("target/liburcu-0.15");
        let headers = root_0_15().join("usr/include").join(triplet());
        for (from, to) in [(headers, "include"), (libraries_0_15(), "lib")] {
            let to = place.join(to);
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
        place
    };
    MADE.get_or_init(make).clone()
}

/// A program on the libraries of the root of Debian 13, its C library among them, and before these
/// on those of `first`: run by that root's own dynamic linker, which needs no chroot.
///
/// # Panics
/// If [`Need::Liburcu15`] is not met.
#[must_use]
pub fn in_0_15(program: &Path, first: Option<&Path>) -> Vec<std::ffi::OsString> {
    let mut path = std::ffi::OsString::new();
    if let Some(directory) = first {
        path.push(directory);
        path.push(":");
    }
    path.push(libraries_0_15());
    vec![loader_0_15().into(), "--library-path".into(), path, program.into()]
}

fn loader_0_15() -> PathBuf {
    let name = if cfg!(target_arch = "aarch64") {
        "usr/lib/ld-linux-aarch64.so.1"
    } else {
        "usr/lib64/ld-linux-x86-64.so.2"
    };
    root_0_15().join(name)
}

fn has_liburcu_0_15() -> bool {
    if std::env::var_os(ROOT_0_15).is_none() {
        return false;
    }
    let include = root_0_15().join("usr/include").join(triplet());
    let headers = ["urcu/annotate.h", "urcu/urcu-poll.h"].map(|name| include.join(name));
    let libraries = ["liburcu-memb.so", "liburcu-cds.so"].map(|name| libraries_0_15().join(name));
    headers.iter().chain(&libraries).chain([&loader_0_15()]).all(|path| path.exists())
}

/// Of 0.13 only, which is what ours are compared with: later ones have no library for signals.
fn has_liburcu() -> bool {
    let (libraries, headers) = (debian_libraries(), debian_headers());
    let libraries = ["liburcu-memb.so", "liburcu-memb.so.8", "liburcu-signal.so.8"]
        .map(|name| libraries.join(name));
    let headers = ["urcu/urcu-memb.h", "urcu/call-rcu.h"].map(|name| headers.join(name));
    libraries
        .into_iter()
        .chain(headers)
        .all(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_what_is_expected_are_read_strictly() {
        assert_eq!(expect::is_listed("", "gcc"), Ok(false));
        assert_eq!(expect::is_listed("membarrier, gcc,", "gcc"), Ok(true));
        assert_eq!(expect::is_listed("gcc,gxx", "gcc"), Err("gxx"));
        assert_eq!(NEEDS.len(), Need::Liburcu15 as usize + 1, "each is described");
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
