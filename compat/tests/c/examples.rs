//! The examples of `compat/examples`, built as their README says: by make, shared and static, and
//! by CMake, static; the other ways of that page are those of the manual, whose commands a test of
//! `xtask` runs. Each example checks its own result.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{output, succeeds, text};
use crate::scratch::scratch;
use xtask::needs;

/// What all of them print.
const ALL: [&str; 7] = ["readers", "qsbr", "call_rcu", "defer", "table", "cxx", "plugin"];

/// A copy of the examples: they are built where they are.
fn copied(name: &str) -> PathBuf {
    let directory = scratch(name);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in fs::read_dir(from).expect("the examples") {
        let entry = entry.expect("an example");
        fs::copy(entry.path(), directory.join(entry.file_name())).expect("it is copied");
    }
    directory
}

/// Where all that is built finds the libraries, and nothing else that the environment has of them.
fn command(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let tree = xtask::compat::built();
    let mut command = Command::new(program);
    command.current_dir(directory);
    command.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")).env("CMAKE_PREFIX_PATH", &tree);
    for name in ["LD_LIBRARY_PATH", "MAKEFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS"] {
        command.env_remove(name);
    }
    command
}

/// Which libraries of ours, or of liburcu, a program would get.
fn libraries(program: &Path) -> Vec<String> {
    let said = succeeds(command(program, Path::new("/")).env("LD_TRACE_LOADED_OBJECTS", "1"));
    let of_interest = said.lines().filter(|line| line.contains("urcu") || line.contains("libquie"));
    of_interest.filter_map(|line| line.split_once("=> ")).map(|(_, path)| path.to_owned()).collect()
}

#[test]
fn make_builds_all_examples_and_they_hold() {
    needs::or_return!(Gxx, Make, PkgConfig);
    let directory = copied("make");
    let said = succeeds(command("make", &directory).arg("check"));
    for name in ALL {
        assert!(said.lines().any(|line| line == format!("{name}: ok")), "{name}:\n{said}");
    }
    assert!(!said.contains("warning"), "{said}");
    // Without a word of the environment they run on ours.
    let ours = xtask::compat::built().join("lib").canonicalize().expect("the libraries");
    let found = libraries(&directory.join("build/readers"));
    assert!(!found.is_empty());
    for library in found {
        let path = library.split(' ').next().expect("a path");
        let path = Path::new(path).canonicalize().expect("it is there");
        assert!(path.starts_with(&ours), "{library}");
    }
}

#[test]
fn make_builds_static_examples_and_they_hold() {
    needs::or_return!(Gxx, Make, PkgConfig);
    let directory = copied("static");
    let said = succeeds(command("make", &directory).args(["STATIC=1", "check"]));
    for name in &ALL[..6] {
        assert!(said.lines().any(|line| line == format!("{name}: ok")), "{name}:\n{said}");
        let program = directory.join("build-static").join(name);
        let notes = succeeds(command("readelf", &directory).arg("--notes").arg(&program));
        assert!(notes.contains(".note.quiescence"), "{name} is not ours:\n{notes}");
        let segments = succeeds(command("readelf", &directory).arg("--segments").arg(&program));
        assert!(!segments.contains("INTERP"), "{name} is not static:\n{segments}");
    }
}

/// The example of a bound notices if there is none.
#[test]
fn the_example_of_a_bound_fails_without_one() {
    needs::or_return!(Make, PkgConfig);
    let directory = copied("bound");
    succeeds(command("make", &directory).arg("build/call_rcu"));
    let mut program = command(directory.join("build/call_rcu"), &directory);
    // A reader that a machine with one CPU lets run for long is no matter: the limit is.
    let output = output(program.env("QUIESCENCE_LIMIT_OBJECTS", "1000000"));
    assert!(!output.status.success() && text(&output).contains("waiting_max"), "{}", text(&output));
}

#[test]
fn cmake_finds_the_archives_and_its_programs_hold() {
    needs::or_return!(Gxx, Cmake);
    let directory = copied("cmake");
    succeeds(command("cmake", &directory).args(["-S", ".", "-B", "static", "-DSTATIC=ON"]));
    let said = succeeds(command("cmake", &directory).args(["--build", "static"]));
    assert!(!said.contains("warning"), "{said}");
    let said = succeeds(command("ctest", &directory).args(["--test-dir", "static"]));
    assert!(said.contains("0 tests failed out of 5"), "{said}");
    let notes = succeeds(command("readelf", &directory).args(["--notes", "static/readers"]));
    assert!(notes.contains(".note.quiescence"), "{notes}");
}

/// Projects that find the package, one after the other in one directory: only the first has to find
/// out what the compiler is.
struct Finder(PathBuf);

impl Finder {
    /// What CMake says of one that wants so much of the package, and tells so much of it.
    fn configured(&self, wanted: &str, tells: &str) -> Output {
        let text_of_it = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(find C)\n\
             find_package(quiescence {wanted} REQUIRED)\nmessage(\"{tells}\")\n"
        );
        fs::write(self.0.join("CMakeLists.txt"), text_of_it).expect("it is written");
        let words = ["-S", ".", "-B", "build", "-U", "quiescence_*"];
        output(command("cmake", &self.0).args(words))
    }
}

/// The package was said to be missing, and none of its components to be there.
#[test]
fn a_component_that_is_optional_has_to_be_there() {
    needs::or_return!(Cmake);
    let wanted = "COMPONENTS memb OPTIONAL_COMPONENTS cds urcu";
    let has = |name: &str| format!("{name} ${{quiescence_{name}_FOUND}}");
    let tells = ["memb", "cds", "urcu"].map(has).join(" ");
    let output = Finder(scratch("find")).configured(wanted, &tells);
    let said = text(&output);
    assert!(output.status.success() && said.contains("memb TRUE cds TRUE urcu \n"), "{said}");
}

#[test]
fn cmake_is_told_of_a_version_or_a_component_that_is_not_there() {
    needs::or_return!(Cmake);
    let finder = Finder(scratch("find"));
    for (wanted, complaint) in [
        ("0.2 COMPONENTS memb", None),
        ("", None),
        ("0.3", Some("version: 0.2.0")),
        ("1", Some("version: 0.2.0")),
        ("0.2 COMPONENTS urcu", Some("there is no component urcu; there are: cds memb")),
    ] {
        let output = finder.configured(wanted, "found ${quiescence_VERSION}");
        let said = text(&output);
        assert_eq!(output.status.success(), complaint.is_none(), "{wanted}: {said}");
        let expected = complaint.unwrap_or(concat!("found ", env!("CARGO_PKG_VERSION")));
        // It breaks lines as it likes.
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{wanted}: {said}");
    }
}

/// Each library has a file under liburcu's name, and one under a name of ours.
#[test]
fn pkg_config_says_the_same_under_both_names_but_for_where_the_libraries_are() {
    needs::or_return!(PkgConfig);
    let ask = |arguments: &[&str]| {
        let said = succeeds(command("pkg-config", Path::new("/")).args(arguments));
        said.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for flavor in ["memb", "mb", "qsbr", "bp", "signal", "cds"] {
        let [theirs, ours] = [format!("liburcu-{flavor}"), format!("quiescence-{flavor}")];
        for options in [&["--cflags"][..], &["--libs"], &["--static", "--libs"]] {
            let mut said = ask(&[options, &[&*ours]].concat());
            if options.contains(&"--libs") {
                assert!(said.iter().any(|word| word.starts_with("-Wl,-rpath,/")), "{said:?}");
                said.retain(|word| !word.starts_with("-Wl,-rpath,"));
            }
            assert_eq!(said, ask(&[options, &[&*theirs]].concat()), "{flavor}");
        }
        let all = ask(&["--static", "--libs", &ours]);
        let place = |name: &str| all.iter().rposition(|word| word == name);
        assert!(place("-lquiescence") > place(&format!("-lurcu-{flavor}")), "{all:?}");
        assert_eq!(ask(&["--modversion", &ours]), [env!("CARGO_PKG_VERSION")]);
    }
    assert_eq!(ask(&["--modversion", "quiescence"]), [env!("CARGO_PKG_VERSION")]);
    assert!(ask(&["--libs", "quiescence"]).contains(&"-lurcu-memb".to_owned()));
}
