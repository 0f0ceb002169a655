//! The Debian packages of `cargo xtask deb`: what is in them, what they say, and what Debian's own
//! checker says of them. Installed and removed they are by `.ci/packages`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use xtask::needs;

use super::told::expect_code;
use super::{scratch, tool};

const MAINTAINER: &str = "Ada Example <ada@example.org>";

fn deb(output: &Path, environment: &[(&str, &str)]) -> Output {
    xtask::compat::built();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("deb").arg("--output").arg(output);
    for name in ["DEBFULLNAME", "DEBEMAIL", "SOURCE_DATE_EPOCH"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).output().expect("xtask runs")
}

/// The packages, by their names; made once.
fn packages() -> &'static BTreeMap<String, PathBuf> {
    static MADE: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| made_in(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages")))
}

fn made_in(output: &Path) -> BTreeMap<String, PathBuf> {
    let made = deb(output, &[("DEBFULLNAME", "Ada Example"), ("DEBEMAIL", "ada@example.org")]);
    let (paths, _) = expect_code(&made, 0);
    let paths = paths.lines().map(PathBuf::from);
    paths.map(|path| (field(&path, "Package"), path)).collect()
}

fn field(package: &Path, name: &str) -> String {
    tool(Command::new("dpkg-deb").arg("--field").arg(package).arg(name)).trim().to_owned()
}

/// What is for dpkg itself, and all else, below a directory.
fn unpacked(package: &Path, to: &Path) -> PathBuf {
    let place = to.join("unpacked").join(package.file_name().expect("a name"));
    fs::create_dir_all(&place).expect("a directory");
    tool(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&place));
    place
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn triplet() -> String {
    tool(Command::new("cc").arg("-print-multiarch")).trim().to_owned()
}

/// Where the packages put things.
fn allowed(path: &str) -> bool {
    let triplet = triplet();
    [
        format!("./usr/lib/{triplet}/quiescence/"),
        format!("./usr/lib/{triplet}/pkgconfig/quiescence"),
        format!("./etc/ld.so.conf.d/00-quiescence-{triplet}.conf"),
        "./usr/include/quiescence/".to_owned(),
        "./usr/share/doc/libquiescence-urcu".to_owned(),
        "./usr/share/lintian/overrides/libquiescence-urcu".to_owned(),
        "./usr/share/man/man7/libquiescence-urcu.7.gz".to_owned(),
        "./usr/lib/debug/.build-id/".to_owned(),
    ]
    .iter()
    .any(|place| path.starts_with(place))
}

#[test]
fn they_put_nothing_where_debian_s_own_files_are() {
    needs::or_return!(Dpkg);
    let packages = packages();
    let names: Vec<_> = packages.keys().map(String::as_str).collect();
    let expected = ["default", "dev"].map(|name| format!("libquiescence-urcu-{name}"));
    let all = [&*expected[0], &expected[1], "libquiescence-urcu0", "libquiescence-urcu0-dbgsym"];
    assert_eq!(names, all);
    for package in packages.values() {
        let contents = tool(Command::new("dpkg-deb").arg("--contents").arg(package));
        for line in contents.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let (mode, owner, path) = (words[0], words[1], words[5]);
            assert_eq!(owner, "root/root", "{line}");
            let expected = match mode.as_bytes()[0] {
                b'd' => "drwxr-xr-x",
                b'l' => "lrwxrwxrwx",
                _ => "-rw-r--r--",
            };
            assert_eq!(mode, expected, "{line}");
            assert!(path.ends_with('/') || allowed(path), "{path} is not a place of ours");
        }
        // So that apt removes nothing for them.
        for relation in ["Conflicts", "Replaces", "Provides", "Breaks"] {
            assert_eq!(field(package, relation), "", "{relation}");
        }
        assert_eq!(field(package, "Multi-Arch"), "same");
        assert_eq!(field(package, "Maintainer"), MAINTAINER);
    }
    let runtime = &packages["libquiescence-urcu0"];
    let depends = field(runtime, "Depends");
    assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
    let version = field(runtime, "Version");
    for other in all.iter().filter(|name| **name != "libquiescence-urcu0") {
        let depends = field(&packages[*other], "Depends");
        let (ours, others) = depends.split_once(", ").unwrap_or((&depends, ""));
        assert_eq!(ours, format!("libquiescence-urcu0 (= {version})"), "{other}");
        // Libraries for the linker are in the one with the headers.
        let of_c = others.starts_with("libc6 (>= 2.") && !others.contains(',');
        assert!(if other.ends_with("-dev") { of_c } else { others.is_empty() }, "{depends}");
    }
}

/// With the libraries of the package, where it puts them, under another root.
#[test]
fn a_program_is_compiled_with_the_files_of_the_packages() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    let root = directory.path().join("root");
    for package in packages().values() {
        tool(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&root));
    }
    let home = format!("usr/lib/{}/quiescence", triplet());
    let usual = root.join(format!("usr/lib/{}/pkgconfig/quiescence-memb.pc", triplet()));
    let text = read(&usual);
    assert!(text.contains(&format!("libdir=/{home}\n")), "{text}");
    assert!(text.contains("includedir=/usr/include/quiescence\n"), "{text}");
    let (source, program) = (directory.path().join("program.c"), directory.path().join("program"));
    fs::write(
        &source,
        "#include <urcu/urcu-memb.h>\nint main(void) { urcu_memb_synchronize_rcu(); return 0; }\n",
    )
    .expect("the source is written");
    let libraries = root.join(&home);
    for (options, expected) in [
        (vec!["-lurcu-memb".to_owned(), format!("-Wl,-rpath,{}", libraries.display())], true),
        (vec!["-static".to_owned(), "-lurcu-memb".to_owned(), "-lquiescence".to_owned()], false),
    ] {
        let mut compiler = Command::new("cc");
        compiler.arg("-I").arg(root.join("usr/include/quiescence")).arg(&source);
        compiler.arg("-L").arg(&libraries).args(&options).arg("-o").arg(&program);
        tool(&mut compiler);
        tool(Command::new(&program).env_remove("LD_LIBRARY_PATH"));
        let entries = tool(Command::new("readelf").args(["-d", "--notes"]).arg(&program));
        assert_eq!(entries.contains("liburcu-memb.so.8"), expected, "{entries}");
        assert_eq!(entries.contains(".note.quiescence"), !expected, "{entries}");
    }
    // The links of the package that changes the default lead to the libraries.
    for entry in fs::read_dir(libraries.join("default")).expect("the links") {
        let link = entry.expect("a link").path();
        assert!(link.is_symlink() && link.is_file(), "{}", link.display());
    }
}

/// What is exported is listed, library by library, and nothing else.
#[test]
fn the_symbols_are_those_that_are_exported() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    let package = &packages()["libquiescence-urcu0"];
    let place = unpacked(package, directory.path());
    let libraries = place.join(format!("usr/lib/{}/quiescence", triplet()));
    let symbols = read(&place.join("DEBIAN/symbols"));
    let shlibs = read(&place.join("DEBIAN/shlibs"));
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut soname = "";
    for line in symbols.lines().filter(|line| !line.starts_with('*')) {
        if let Some(symbol) = line.strip_prefix(' ') {
            let (name, version) = symbol.split_once("@Base ").expect("a name and a version");
            assert_eq!(version, env!("CARGO_PKG_VERSION"));
            listed.entry(soname).or_default().insert(name);
        } else {
            soname = line.split(' ').next().expect("a soname");
            assert!(line.ends_with(" libquiescence-urcu0 #MINVER#"), "{line}");
        }
    }
    let mut found = 0;
    for entry in fs::read_dir(&libraries).expect("the libraries") {
        let path = entry.expect("a library").path();
        let name = path.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        let mut nm = Command::new("nm");
        let names = tool(nm.args(["-D", "--defined-only", "--format=posix"]).arg(&path));
        let names: BTreeSet<_> =
            names.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed.get(&*name), Some(&names), "{name}");
        let (stem, number) = name.split_once(".so.").expect("a soname");
        let line = format!("{stem} {number} libquiescence-urcu0 (>= ");
        assert_eq!(shlibs.matches(&line).count(), 1, "{line} in {shlibs}");
        found += 1;
    }
    assert_eq!((found, listed.len(), shlibs.lines().count()), (9, 9, 9));
}

#[test]
fn the_sums_are_those_of_all_files() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    for package in packages().values() {
        let place = unpacked(package, directory.path());
        let sums = read(&place.join("DEBIAN/md5sums"));
        tool(Command::new("md5sum").arg("--check").arg("DEBIAN/md5sums").current_dir(&place));
        let packed = tool(Command::new("dpkg-deb").arg("--contents").arg(package));
        let files = packed.lines().filter(|line| line.starts_with('-'));
        assert_eq!(sums.lines().count(), files.count(), "{}", package.display());
    }
}

#[test]
fn debian_s_checker_has_neither_errors_nor_warnings() {
    needs::or_return!(Dpkg, Lintian);
    let packages = packages();
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning"]).args(packages.values());
    let output = lintian.output().expect("lintian runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    // What is overridden is what the one package is for.
    let mut lintian = Command::new("lintian");
    let output = lintian.arg("--show-overrides").args(packages.values()).output();
    let said = String::from_utf8(output.expect("lintian runs").stdout).expect("UTF-8");
    let overridden: Vec<_> = said.lines().filter(|line| line.starts_with("O:")).collect();
    assert_eq!(overridden.len(), 2, "{said}");
    assert!(overridden.iter().all(|line| line.contains("-default: ")), "{said}");
}

#[test]
fn the_same_sources_make_the_same_packages() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    let again = made_in(directory.path());
    for (name, package) in packages() {
        assert!(fs::read(package).unwrap() == fs::read(&again[name]).unwrap(), "{name} differs");
    }
}

#[test]
fn packages_without_a_maintainer_are_refused() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    let output = directory.path().join("packages");
    for (environment, complaint) in [
        (vec![], "DEBFULLNAME is not set: packages name their maintainer; set DEBFULLNAME to"),
        (vec![("DEBFULLNAME", "Ada")], "DEBEMAIL is not set"),
        (vec![("DEBFULLNAME", "  "), ("DEBEMAIL", "a@b.c")], "DEBFULLNAME is not set"),
        (vec![("DEBFULLNAME", "Ada"), ("DEBEMAIL", "ada")], "is no e-mail address"),
        (vec![("DEBFULLNAME", "Ada"), ("DEBEMAIL", "ada@localhost")], "is no e-mail address"),
        (vec![("DEBFULLNAME", "Ada <b>"), ("DEBEMAIL", "a@b.c")], "'<' may not stand in it"),
        (vec![("DEBFULLNAME", "Ada\nDepends: x"), ("DEBEMAIL", "a@b.c")], "may not stand in it"),
    ] {
        let made = deb(&output, &environment);
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(!made.status.success() && said.contains(complaint), "{environment:?}: {said}");
        assert!(!output.exists(), "{environment:?}");
    }
}

#[test]
fn documents_are_what_debian_asks_for() {
    needs::or_return!(Dpkg);
    let directory = scratch();
    let packages = packages();
    let place = unpacked(&packages["libquiescence-urcu0"], directory.path());
    let documents = place.join("usr/share/doc/libquiescence-urcu0");
    let copyright = read(&documents.join("copyright"));
    assert!(copyright.starts_with("Format: https://www.debian.org/doc/packaging-manuals/"));
    assert!(copyright.contains("\nFiles: *\nCopyright: ") && copyright.contains("  libc v"));
    let changes =
        tool(Command::new("gzip").args(["-dc"]).arg(documents.join("changelog.Debian.gz")));
    let version = field(&packages["libquiescence-urcu0"], "Version");
    assert!(changes.starts_with(&format!("quiescence ({version}) ")), "{changes}");
    assert!(changes.contains(&format!("\n -- {MAINTAINER}  ")), "{changes}");
    let development = unpacked(&packages["libquiescence-urcu-dev"], directory.path());
    let documents = development.join("usr/share/doc/libquiescence-urcu-dev");
    for name in ["examples/Makefile", "examples/readers.c", "examples/meson.build", "C.md"] {
        assert!(documents.join(name).is_file(), "{name}");
    }
}
