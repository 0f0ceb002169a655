//! What `cargo xtask install` leaves behind, and what it refuses.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xtask::needs;

use super::told::{expect_code, fails};
use super::{scratch, tool};

/// Registers, reads, waits for a grace period.
const PROGRAM: &str = "
#include <urcu/urcu-memb.h>
int main(void)
{
	urcu_memb_register_thread();
	urcu_memb_read_lock();
	urcu_memb_read_unlock();
	urcu_memb_synchronize_rcu();
	urcu_memb_unregister_thread();
	return 0;
}
";

fn xtask(arguments: &[&str]) -> Output {
    // With the tree built, so that what the tool builds itself is nothing.
    xtask::compat::built();
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().expect("xtask runs")
}

fn succeeds(arguments: &[&str]) -> String {
    expect_code(&xtask(arguments), 0).0
}

fn files(directory: &Path) -> BTreeSet<PathBuf> {
    xtask::files_below(directory).expect("a directory").into_iter().collect()
}

/// What pkg-config says that is in this file.
fn pkg_config(file: &Path, asked: &str) -> String {
    tool(Command::new("pkg-config").arg(asked).arg(file)).trim().to_owned()
}

/// Compiles and runs [`PROGRAM`] with nothing but what a pkg-config file says. Returns on which
/// libraries it ran.
fn runs_by(pkg_config_file: &Path) -> String {
    let directory = scratch();
    let (source, program) = (directory.path().join("program.c"), directory.path().join("program"));
    fs::write(&source, PROGRAM).expect("the source is written");
    let words = |name: &str| {
        let value = pkg_config(pkg_config_file, name);
        value.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror"]).args(words("--cflags")).arg(&source).args(words("--libs"));
    tool(compiler.arg("-o").arg(&program));
    let libraries = pkg_config(pkg_config_file, "--variable=libdir");
    let mut program = Command::new(&program);
    tool(program.env("LD_LIBRARY_PATH", &libraries));
    tool(program.env("LD_TRACE_LOADED_OBJECTS", "1"))
}

#[test]
fn what_is_installed_below_a_prefix_is_complete() {
    needs::or_return!(PkgConfig);
    let directory = scratch();
    let prefix = directory.path().to_str().expect("UTF-8");
    let said = succeeds(&["install", "--prefix", prefix]);
    let listed: BTreeSet<PathBuf> = said.lines().map(PathBuf::from).collect();
    assert_eq!(listed, files(directory.path()), "what it says, and what is there");

    let library = |name: &str| directory.path().join("lib/quiescence").join(name);
    for suffix in ["", "-memb", "-mb", "-qsbr", "-bp", "-signal", "-cds"] {
        assert!(library(&format!("pkgconfig/liburcu{suffix}.pc")).exists(), "liburcu{suffix}.pc");
    }
    for suffix in ["", "-memb", "-mb", "-qsbr", "-bp", "-signal", "-cds", "-common"] {
        let link = library(&format!("liburcu{suffix}.so"));
        let target = format!("liburcu{suffix}.so.8");
        // The flavours' are libraries for the linker, with more room in the flavour's structure.
        match suffix {
            "-cds" | "-common" => {
                assert_eq!(fs::read_link(&link).expect("a link"), PathBuf::from(&target));
            }
            _ => assert!(fs::symlink_metadata(&link).expect("it is there").is_file()),
        }
        assert!(fs::symlink_metadata(library(&target)).expect("it is there").is_file());
    }
    for header in ["urcu.h", "urcu/urcu-memb.h", "urcu/rculfhash.h", "urcu/map/urcu-qsbr.h", "rcu"]
    {
        assert!(directory.path().join("include/quiescence").join(header).exists(), "{header}");
    }
    let maps = runs_by(&library("pkgconfig/liburcu-memb.pc"));
    for name in ["liburcu-memb.so.8", "libquiescence.so.0"] {
        assert!(maps.contains(&format!("{name} => {}", library(name).display())), "{maps}");
    }
}

#[test]
fn libraries_are_installed_without_line_tables_but_with_symbols() {
    needs::or_return!();
    let directory = scratch();
    succeeds(&["install", "--prefix", directory.path().to_str().expect("UTF-8")]);
    let core = directory.path().join("lib/quiescence/libquiescence.so.0");
    let sections = tool(Command::new("readelf").args(["--wide", "--sections"]).arg(&core));
    assert!(!sections.contains(".debug_line"), "{sections}");
    assert!(sections.contains(".symtab"), "{sections}");
    let built = xtask::compat::built().join("lib/libquiescence.so.0");
    let size = |path: &Path| fs::metadata(path).expect("it is there").len();
    assert!(size(&core) < size(&built), "{} and {}", size(&core), size(&built));
}

#[test]
fn a_packager_s_directory_is_known_to_nobody_afterwards() {
    needs::or_return!(PkgConfig);
    let directory = scratch();
    let destdir = directory.path().to_str().expect("UTF-8");
    let places = ["--prefix", "/opt/q", "--libdir", "lib/here", "--includedir", "/opt/headers"];
    let said = succeeds(&[&["install", "--destdir", destdir], &places[..]].concat());
    assert!(said.lines().all(|line| line.starts_with(destdir)), "{said}");
    let file = directory.path().join("opt/q/lib/here/pkgconfig/liburcu-bp.pc");
    assert_eq!(pkg_config(&file, "--variable=prefix"), "/opt/q");
    assert_eq!(pkg_config(&file, "--variable=libdir"), "/opt/q/lib/here");
    assert_eq!(pkg_config(&file, "--cflags"), "-I/opt/headers");
    assert!(directory.path().join("opt/headers/urcu-bp.h").exists());
    for path in files(directory.path()) {
        let text = fs::read(&path).expect("it can be read");
        let knows = text.windows(destdir.len()).any(|window| window == destdir.as_bytes());
        assert!(!knows, "{} names {destdir}", path.display());
    }
}

#[test]
fn a_dry_run_says_the_same_and_does_nothing() {
    needs::or_return!();
    let directory = scratch();
    let prefix = directory.path().to_str().expect("UTF-8");
    let foretold = succeeds(&["install", "--prefix", prefix, "--dry-run"]);
    assert_eq!(files(directory.path()).len(), 0);
    assert_eq!(foretold, succeeds(&["install", "--prefix", prefix]));
}

#[test]
fn what_is_uninstalled_is_gone_and_nothing_else() {
    needs::or_return!();
    let directory = scratch();
    let prefix = directory.path().to_str().expect("UTF-8");
    let other = directory.path().join("lib/quiescence/pkgconfig/other.pc");
    let installed = succeeds(&["install", "--prefix", prefix]);
    fs::write(&other, "somebody else's").expect("it is written");
    let before = files(directory.path());
    let lines = |said: &str| said.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let foretold = succeeds(&["uninstall", "--prefix", prefix, "--dry-run"]);
    assert_eq!(lines(&foretold), lines(&installed));
    assert_eq!(files(directory.path()), before, "a dry run");
    assert_eq!(succeeds(&["uninstall", "--prefix", prefix]), foretold);
    assert_eq!(files(directory.path()), BTreeSet::from([other.clone()]));
    assert!(!directory.path().join("include/quiescence").exists(), "an empty directory");
    // Without the core these names are somebody else's.
    let link = other.parent().expect("a directory").with_file_name("liburcu-memb.so.8");
    fs::write(&link, "somebody else's").expect("it is written");
    fails(&xtask(&["uninstall", "--prefix", prefix]), 1, "nothing of ours");
    assert!(link.exists() && other.exists());
}

/// `cargo xtask install | head`.
#[test]
fn who_reads_no_further_does_not_stop_it() {
    needs::or_return!();
    xtask::compat::built();
    let directory = scratch();
    unread(&["install".as_ref(), "--prefix".as_ref(), directory.path().as_os_str()]);
    assert!(directory.path().join("lib/quiescence/pkgconfig/quiescence.pc").exists());
}

/// `cargo xtask mutants --list | head` panicked.
#[test]
fn who_reads_no_further_of_a_list_is_no_error() {
    unread(&["mutants", "--list"]);
}

/// Succeeds, though nobody reads what it says.
fn unread(arguments: &[impl AsRef<OsStr>]) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    expect_code(&xtask.args(arguments).stdout(writer).output().expect("xtask runs"), 0);
}

#[test]
fn it_says_its_name_and_version() {
    needs::or_return!();
    let said = succeeds(&["--version"]);
    assert_eq!(said.trim(), concat!("cargo xtask ", env!("CARGO_PKG_VERSION")));
    let usage = succeeds(&["install", "--help"]);
    assert!(usage.contains("Usage: cargo xtask install"), "{usage}");
}

#[test]
fn installing_again_replaces_files_and_leaves_mapped_ones_alone() {
    needs::or_return!();
    use std::os::unix::fs::MetadataExt;
    let directory = scratch();
    let prefix = directory.path().to_str().expect("UTF-8");
    succeeds(&["install", "--prefix", prefix]);
    let library = directory.path().join("lib/quiescence/liburcu-memb.so.8");
    // As a running program has it: by its inode.
    let old = fs::File::open(&library).expect("it is there");
    let before = files(directory.path());
    succeeds(&["install", "--prefix", prefix]);
    assert_eq!(files(directory.path()), before);
    let (old, new) = (old.metadata().expect("open"), fs::metadata(&library).expect("it is there"));
    assert_ne!(old.ino(), new.ino(), "written in place, under a program that has it mapped");
}

#[test]
fn bad_places_are_refused_and_nothing_is_installed() {
    needs::or_return!();
    let directory = scratch();
    let destdir = directory.path().to_str().expect("UTF-8");
    for (arguments, complaint) in [
        (vec!["--prefix", "usr"], "--prefix usr: must be absolute"),
        (vec!["--prefix", "/usr/../etc"], "must not go up (..)"),
        (vec!["--libdir", "../lib"], "must not go up (..)"),
        (vec!["--prefix", "/my programs"], "has a ' ', with which pkg-config cannot deal"),
        (vec!["--includedir", "a:b"], "has a ':', with which pkg-config cannot deal"),
        (vec!["--prefix"], "a value is required"),
        (vec!["--perfix", "/usr"], "unexpected argument '--perfix'"),
    ] {
        let output = xtask(&[&["install", "--destdir", destdir], &arguments[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
        assert_eq!(files(directory.path()).len(), 0, "{arguments:?}");
    }
    fails(&xtask(&["install", "--destdir", ""]), 2, "--destdir");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    needs::or_return!();
    let directory = scratch();
    let file = directory.path().join("file");
    fs::write(&file, "in the way").expect("it is written");
    let prefix = file.to_str().expect("UTF-8");
    fails(&xtask(&["install", "--prefix", prefix]), 1, prefix);
}

/// For its own tests the tree is found where it was built, even if it is moved.
#[test]
fn the_tree_s_pkg_config_files_go_where_it_goes() {
    needs::or_return!(PkgConfig);
    let tree = xtask::compat::built();
    let maps = runs_by(&tree.join("lib/pkgconfig/liburcu-memb.pc"));
    assert!(maps.contains("liburcu-memb.so.8 => "), "{maps}");
    assert!(maps.contains("target/compat/lib"), "{maps}");
}
