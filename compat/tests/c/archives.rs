//! Programs that are linked with the archives: they run, they are ours and not Debian's, and where
//! an archive would be a second copy of a flavour in a process, that is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{self, FLAVORS, Whose, aborts, compiler, ended, run, succeeds, text};
use crate::scratch::scratch;
use xtask::needs;

fn library(name: &str) -> PathBuf {
    xtask::compat::built().join("lib").join(name)
}

/// Compiles a source of `tests/archives` with these options. Not a word is said: no warning of
/// functions that a static program cannot have.
fn compile(source: &str, options: &[&str]) -> PathBuf {
    program::compile(&format!("archives/{source}"), Whose::Ours, options)
}

/// A static program of a flavour, and the archives with `liburcu` or `libquiescence` in their names
/// that the linker took parts of.
fn of_flavor(flavor: &str, whose: Whose, how: &str, core: &str) -> (PathBuf, BTreeSet<PathBuf>) {
    let map = scratch("archives").join("map");
    let [name, define] = program::defines(flavor);
    let [library, mapped] = [format!("-lurcu-{flavor}"), format!("-Wl,-Map={}", map.display())];
    let inline = "-DURCU_INLINE_SMALL_FUNCTIONS";
    let options = [how, &name, &define, inline, &mapped, "-lurcu-cds", &library, core];
    let program = program::compile("archives/flavor.c", whose, &options);
    let text = fs::read_to_string(map).expect("the linker's map");
    let archives = text
        .split(|c: char| c.is_whitespace() || c == '(')
        .filter(|word| word.ends_with(".a"))
        .filter(|word| word.contains("/liburcu") || word.contains("/libquiescence"));
    (program, archives.map(PathBuf::from).collect())
}

fn runs(program: &Path, arguments: &[&str]) {
    let output = ended(program, Whose::Ours, arguments, &[]);
    let said = text(&output);
    assert!(output.status.success(), "{}: {}\n{said}", program.display(), output.status);
    assert_eq!(said, "ok\n");
}

/// It has two copies of a flavour, and says so.
fn is_refused(program: &Path, arguments: &[&str]) {
    let said = aborts(program, Whose::Ours, arguments, &[]);
    let copies = "two copies of this flavour in one process, one of them from an archive";
    assert!(said.contains(copies), "{}: {said}", program.display());
}

/// The flavours that a program has out of archives of ours, by the notes in it.
fn flavors_inside(program: &Path) -> Vec<&'static str> {
    let text = succeeds(Command::new("readelf").args(["--wide", "--notes"]).arg(program));
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

#[test]
fn static_programs_of_each_flavour_run_and_are_ours() {
    needs::or_return!();
    for flavor in FLAVORS {
        // Where a program is loaded is the same to all flavours.
        let ways = if flavor == "memb" { &["-static", "-static-pie"][..] } else { &["-static"] };
        for how in ways {
            let (program, used) = of_flavor(flavor, Whose::Ours, how, "-lquiescence");
            let said = run(&program, Whose::Ours, &[]);
            assert_eq!(said.matches("ok ").count(), 4, "{said}");
            assert_eq!(flavors_inside(&program), [flavor], "{how}");
            let expected = ["libquiescence.a", "liburcu-cds.a", &format!("liburcu-{flavor}.a")];
            assert_eq!(used, expected.map(library).into());
        }
    }
}

/// The proof above fails for a program that is linked with Debian's archives.
#[test]
fn debian_s_archives_are_told_from_ours() {
    needs::or_return!(Liburcu);
    // liburcu's own archives need each other, in this order.
    let (program, used) = of_flavor("memb", Whose::Debians, "-static", "-lurcu-common");
    assert!(flavors_inside(&program).is_empty());
    assert!(!used.is_empty() && used.iter().all(|archive| !archive.starts_with(library(""))));
}

#[test]
fn all_flavours_in_one_static_program() {
    needs::or_return!();
    let flavors = FLAVORS.map(|flavor| format!("-lurcu-{flavor}"));
    let mut options = vec!["-static"];
    options.extend(flavors.iter().map(String::as_str));
    // -lurcu is -memb under its other name.
    options.extend(["-lurcu", "-lurcu-common", "-lurcu-cds", "-lquiescence"]);
    let program = compile("all.c", &options);
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
        let mut nm = Command::new("nm");
        nm.args(["--defined-only", "--extern-only", "--format=posix"]).args(options);
        let text = succeeds(nm.arg(library(file)));
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

const ARCHIVES: [&str; 5] =
    ["-Wl,-Bstatic", "-lurcu-memb", "-lquiescence", "-Wl,-Bdynamic", "-ldl"];

#[test]
fn an_archive_beside_the_shared_library_of_its_flavour_is_named() {
    needs::or_return!();
    let shared = |name: &str| library(name).into_os_string().into_string().expect("UTF-8");
    let host = compile("host.c", &ARCHIVES);
    is_refused(&host, &[&shared("liburcu-memb.so.8")]);
    // liburcu.so.8 is memb under another name.
    is_refused(&host, &[&shared("liburcu.so.8")]);
    // Of another flavour there is one copy.
    runs(&host, &[&shared("liburcu-bp.so.8")]);
    // With names that the other library would be bound to.
    let exporting = compile("host.c", &[&["-rdynamic"], &ARCHIVES[..]].concat());
    is_refused(&exporting, &[&shared("liburcu-memb.so.8")]);
}

#[test]
fn a_plug_in_with_an_archive_of_its_own_is_named() {
    needs::or_return!();
    let host = compile("host.c", &["-lurcu-memb", "-ldl"]);
    let own = compile("host.c", &ARCHIVES);
    for (flavor, is_second) in [("memb", true), ("mb", false)] {
        let [name, _] = program::defines(flavor);
        let archive = format!("-lurcu-{flavor}");
        // Threads of the core outlive a dlclose.
        let how = ["-shared", "-fPIC", "-Wl,-z,nodelete", &name, "-Wl,-Bstatic", &archive];
        let plugin = compile("plugin.c", &[&how[..], &ARCHIVES[2..4]].concat());
        let plugin = plugin.to_str().expect("UTF-8");
        for program in [&host, &own] {
            if is_second { is_refused(program, &[plugin]) } else { runs(program, &[plugin]) }
        }
    }
}

/// The linker names what is missing where the core was left out, and makes no program.
#[test]
fn without_the_core_there_is_no_program() {
    needs::or_return!();
    let program = scratch("without").join("program");
    let options = ["-static", "-lurcu-memb", "-lurcu-bp"];
    let mut compiler = compiler("archives/all.c".as_ref(), Whose::Ours, &options);
    let output = program::output(compiler.arg("-o").arg(&program));
    let said = text(&output);
    assert!(!output.status.success() && said.contains("quiescence_urcu_attach"), "{said}");
    assert!(!program.exists());
}
