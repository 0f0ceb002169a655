//! Programs that are linked with the archives: they run, they are ours and not Debian's, and where
//! an archive would be a second copy of a flavour in a process, that is named.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::common;
use xtask::limited;
use xtask::needs;

/// In the order of their numbers.
const FLAVORS: [&str; 5] = ["memb", "mb", "qsbr", "bp", "signal"];

fn library(name: &str) -> PathBuf {
    xtask::compat::built().join("lib").join(name)
}

/// Compiles a source of `tests/archives` with these options; what the compiler and linker said.
fn compiled(source: &str, program: &Path, options: &[&str]) -> Output {
    let tree = xtask::compat::built();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-D_GNU_SOURCE"])
        .arg("-I")
        .arg(tree.join("include"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives").join(source))
        .args(options);
    compiler.arg("-o").arg(program).output().expect("cc runs")
}

/// The same, and not a word is said: no warning of functions that a static program cannot have.
fn compile(source: &str, program: &Path, options: &[&str]) {
    let output = compiled(source, program, options);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{source} {options:?}:\n{said}");
}

/// Runs a program; one that hangs is ended. What it said, and how it ended.
fn run(program: &Path, arguments: &[&Path]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", library(""));
    limited::output(&mut command, Duration::from_secs(60)).expect("it runs")
}

fn runs(program: &Path, arguments: &[&Path]) {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{said}", program.display(), output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
    assert!(said.is_empty(), "{}: {said}", program.display());
}

fn aborts(program: &Path, arguments: &[&Path], complaint: &str) {
    let output = run(program, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    let aborted = output.status.signal() == Some(6) || output.status.code() == Some(128 + 6);
    assert!(aborted, "{} was to abort: {}\n{said}", program.display(), output.status);
    assert!(said.contains(complaint), "{}: {said}", program.display());
}

/// The flavours that a program has out of archives of ours, by the notes in it.
fn flavors_inside(program: &Path) -> Vec<&'static str> {
    let output =
        Command::new("readelf").args(["--wide", "--notes"]).arg(program).output().expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().skip_while(|line| !line.contains(".note.quiescence"));
    let mut found = Vec::new();
    lines.by_ref().find(|line| line.trim_start().starts_with("Owner"));
    for line in lines.take_while(|line| !line.trim().is_empty()) {
        if let Some((_, bytes)) = line.split_once("description data:") {
            let bytes: Vec<_> = bytes.split_whitespace().collect();
            assert_eq!(bytes[4], "01", "out of an archive: {line}");
            found.push(FLAVORS[usize::from_str_radix(bytes[0], 16).expect("a number")]);
        }
    }
    found
}

/// The archives with `liburcu` or `libquiescence` in their names that the linker took parts of.
fn archives_used(map: &Path) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(map).expect("the linker's map");
    text.split(|c: char| c.is_whitespace() || c == '(')
        .filter(|word| word.ends_with(".a"))
        .filter(|word| word.contains("/liburcu") || word.contains("/libquiescence"))
        .map(PathBuf::from)
        .collect()
}

/// Options for a program of a flavour, with the linker's map in a file.
fn options<'o>(how: &'o str, define: &'o str, paths: &'o [String; 3]) -> Vec<&'o str> {
    let [directory, map, flavor] = paths.each_ref().map(String::as_str);
    let inline = "-DURCU_INLINE_SMALL_FUNCTIONS";
    vec![how, define, inline, directory, map, "-lurcu-cds", flavor, "-lquiescence"]
}

#[test]
fn static_programs_of_each_flavour_run_and_are_ours() {
    needs::or_return!();
    let directory = common::scratch("archives", "flavors");
    for flavor in FLAVORS {
        // Where a program is loaded is the same to all flavours.
        let ways = if flavor == "memb" { &["-static", "-static-pie"][..] } else { &["-static"] };
        for &how in ways {
            let program = directory.join(format!("{flavor}{how}"));
            let map = program.with_extension("map");
            let paths = [
                format!("-L{}", library("").display()),
                format!("-Wl,-Map={}", map.display()),
                format!("-lurcu-{flavor}"),
            ];
            let define = format!("-DFLAVOR_{}", flavor.to_uppercase());
            compile("flavor.c", &program, &options(how, &define, &paths));
            runs(&program, &[]);
            assert_eq!(flavors_inside(&program), [flavor], "{how}");
            let expected = ["libquiescence.a", "liburcu-cds.a", &format!("liburcu-{flavor}.a")];
            let expected: BTreeSet<_> = expected.map(library).into();
            assert_eq!(archives_used(&map), expected);
        }
    }
}

/// The proof above fails for a program that is linked with Debian's archives.
#[test]
fn debian_s_archives_are_told_from_ours() {
    needs::or_return!(Liburcu);
    let directory = common::scratch("archives", "debians");
    let (program, map) = (directory.join("program"), directory.join("map"));
    let paths =
        ["-L/usr/lib".to_owned(), format!("-Wl,-Map={}", map.display()), "-lurcu-memb".to_owned()];
    let mut all = options("-static", "-DFLAVOR_MEMB", &paths);
    all.retain(|option| *option != "-lquiescence");
    // liburcu's own archives need each other, in this order.
    all.push("-lurcu-common");
    compile("flavor.c", &program, &all);
    assert!(flavors_inside(&program).is_empty());
    let used = archives_used(&map);
    assert!(!used.is_empty() && used.iter().all(|archive| !archive.starts_with(library(""))));
}

#[test]
fn all_flavours_in_one_static_program() {
    needs::or_return!();
    let program = common::scratch("archives", "all").join("program");
    let directory = format!("-L{}", library("").display());
    let flavors = FLAVORS.map(|flavor| format!("-lurcu-{flavor}"));
    let mut options = vec!["-static", &directory];
    options.extend(flavors.iter().map(String::as_str));
    // -lurcu is -memb under its other name.
    options.extend(["-lurcu", "-lurcu-common", "-lurcu-cds", "-lquiescence"]);
    compile("all.c", &program, &options);
    runs(&program, &[]);
    let mut inside = flavors_inside(&program);
    inside.sort_unstable();
    assert_eq!(inside, ["bp", "mb", "memb", "qsbr", "signal"]);
}

/// The core's archive has the names of the shared library, and none of Rust's.
#[test]
fn the_core_s_archive_defines_its_own_names_only() {
    needs::or_return!();
    let names = |options: &[&str], file: &str| {
        let output = Command::new("nm")
            .args(["--defined-only", "--extern-only", "--format=posix"])
            .args(options)
            .arg(library(file))
            .output()
            .expect("nm runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter(|line| !line.ends_with(':'));
        let names = names.filter_map(|line| line.split_whitespace().next());
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    let shared = names(&["-D"], "libquiescence.so.0");
    assert!(shared.len() > 100, "{} names", shared.len());
    assert_eq!(names(&[], "libquiescence.a"), shared);
}

#[test]
fn an_archive_beside_the_shared_library_of_its_flavour_is_named() {
    needs::or_return!();
    let directory = common::scratch("archives", "beside");
    let path = format!("-L{}", library("").display());
    let archives = ["-Wl,-Bstatic", "-lurcu-memb", "-lquiescence", "-Wl,-Bdynamic", "-ldl"];
    let copies = "two copies of this flavour in one process, one of them out of an archive";

    let host = directory.join("host");
    compile("host.c", &host, &[&[&*path], &archives[..]].concat());
    aborts(&host, &[&library("liburcu-memb.so.8")], copies);
    // liburcu.so.8 is memb under another name.
    aborts(&host, &[&library("liburcu.so.8")], copies);
    // Of another flavour there is one copy.
    runs(&host, &[&library("liburcu-bp.so.8")]);
    // With names that the other library would be bound to.
    let exporting = directory.join("exporting");
    compile("host.c", &exporting, &[&["-rdynamic", &*path], &archives[..]].concat());
    aborts(&exporting, &[&library("liburcu-memb.so.8")], copies);
}

#[test]
fn a_plug_in_with_an_archive_of_its_own_is_named() {
    needs::or_return!();
    let directory = common::scratch("archives", "plugin");
    let path = format!("-L{}", library("").display());
    let copies = "two copies of this flavour in one process, one of them out of an archive";
    let [host, own] = ["host", "own"].map(|name| directory.join(name));
    compile("host.c", &host, &[&path, "-lurcu-memb", "-ldl"]);
    compile(
        "host.c",
        &own,
        &[&path, "-Wl,-Bstatic", "-lurcu-memb", "-lquiescence", "-Wl,-Bdynamic"],
    );
    for (flavor, is_second) in [("memb", true), ("mb", false)] {
        let plugin = directory.join(format!("{flavor}.so"));
        let define = format!("-DFLAVOR_{}", flavor.to_uppercase());
        let archive = format!("-lurcu-{flavor}");
        // Threads of the core outlive a dlclose.
        let how = ["-shared", "-fPIC", "-Wl,-z,nodelete", &define, &path, "-Wl,-Bstatic", &archive];
        compile("plugin.c", &plugin, &[&how[..], &["-lquiescence", "-Wl,-Bdynamic"]].concat());
        for program in [&host, &own] {
            if is_second {
                aborts(program, &[&plugin], copies);
            } else {
                runs(program, &[&plugin]);
            }
        }
    }
}

/// The linker names what is missing where the core was left out, and makes no program.
#[test]
fn without_the_core_there_is_no_program() {
    needs::or_return!();
    let program = common::scratch("archives", "without").join("program");
    let directory = format!("-L{}", library("").display());
    let output = compiled("all.c", &program, &["-static", &directory, "-lurcu-memb", "-lurcu-bp"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("quiescence_urcu_attach"), "{said}");
    assert!(!program.exists());
}
