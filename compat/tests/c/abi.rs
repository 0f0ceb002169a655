//! What the libraries look like from outside, side by side with Debian's: symbols, their kinds and
//! sizes, sonames, layouts. And the traps into which a replacement falls: data that executables
//! have copied into themselves, libraries that are loaded while the program runs.

mod elf;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elf::{dynamic, exports, relocations, segments, values};

use crate::program::{FLAVORS, Whose, aborts, compile, compile_for, run, succeeds};
use xtask::needs::{self, debian_libraries, libraries_0_15};

const LIBRARIES: [&str; 8] = ["", "-memb", "-mb", "-qsbr", "-bp", "-signal", "-cds", "-common"];

fn soname(suffix: &str) -> String {
    format!("liburcu{suffix}.so.8")
}

fn ours(soname: &str) -> PathBuf {
    xtask::compat::built().join("lib").join(soname)
}

/// Ours; and Debian's, if they are there.
fn sides() -> Vec<Whose> {
    let debians = needs::met_for("with Debian's headers and libraries", &["Liburcu"]);
    [Whose::Ours].into_iter().chain(debians.then_some(Whose::Debians)).collect()
}

/// What we export beyond Debian 12's libraries: what liburcu 0.14, 0.15 and what comes after it
/// have added.
fn is_later(name: &str) -> bool {
    const OF_A_FLAVOR: [&str; 3] =
        ["start_poll_synchronize_rcu", "poll_state_synchronize_rcu", "exit"];
    const OF_TABLES: [&str; 2] = ["cds_lfht_node_init_deleted", "_cds_lfht_new_with_alloc"];
    let rest = |flavor: &&str| name.strip_prefix("urcu_")?.strip_prefix(*flavor)?.strip_prefix('_');
    let of_a_flavor = FLAVORS.iter().filter_map(rest);
    name == "rcu_dereference_sym2"
        || OF_TABLES.contains(&name)
        || of_a_flavor.into_iter().any(|rest| OF_A_FLAVOR.contains(&rest))
}

/// Every symbol of theirs is in ours, with its kind and size: but for the flavour's structure, of
/// `flavor` bytes in theirs, and as large as programs of 0.13 know it in ours. Returns all of each.
fn exported_as_in(theirs: &Path, soname: &str, flavor: u64) -> [BTreeMap<String, elf::Symbol>; 2] {
    let (theirs, ours) = (exports(&theirs.join(soname)), exports(&ours(soname)));
    assert!(theirs.len() > 40, "{soname}: theirs exports {} symbols only", theirs.len());
    for (name, symbol) in &theirs {
        let mut wanted = symbol.clone();
        if name.ends_with("_flavor") {
            assert_eq!(wanted.size, flavor, "{soname}: {name}");
            wanted.size = 112;
        }
        assert_eq!(ours.get(name), Some(&wanted), "{soname}: {name}, ours against theirs");
    }
    [theirs, ours]
}

#[test]
fn exported_symbols_are_debians() {
    needs::or_return!(Liburcu);
    for soname in LIBRARIES.map(soname) {
        let [theirs, ours] = exported_as_in(&debian_libraries(), &soname, 112);
        let more = ours.keys().filter(|name| !theirs.contains_key(*name));
        let unknown: Vec<_> = more.filter(|name| !is_later(name)).collect();
        assert!(unknown.is_empty(), "{soname} exports what is not in the interface: {unknown:?}");
    }
}

/// 0.15 has no signal flavour.
#[test]
fn exported_symbols_are_debian_13s() {
    needs::or_return!(Liburcu15);
    for soname in LIBRARIES.map(soname).into_iter().filter(|name| !name.contains("signal")) {
        exported_as_in(&libraries_0_15(), &soname, 128);
    }
}

/// The linker is given a library that says how big the structure is now, so that executables copy
/// all of it; else they would read behind their copies.
#[test]
fn programs_that_are_linked_now_copy_the_whole_structure() {
    needs::or_return!();
    for flavor in FLAVORS {
        let name = format!("urcu_{flavor}_flavor");
        let linked = exports(&ours(&format!("liburcu-{flavor}.so")));
        let run = exports(&ours(&soname(&format!("-{flavor}"))));
        assert_eq!((linked[&name].size, run[&name].size), (128, 112), "{name}");
        // It is the other library otherwise.
        assert!(linked.keys().eq(run.keys()), "liburcu-{flavor}");
        let entries = dynamic(&ours(&format!("liburcu-{flavor}.so")));
        assert_eq!(values(&entries, "SONAME"), [&soname(&format!("-{flavor}"))]);
    }
}

/// The polling of 0.14, and the dereference of the next liburcu.
#[test]
fn what_came_later_is_in_every_flavour() {
    needs::or_return!();
    for flavor in FLAVORS {
        let ours = exports(&ours(&soname(&format!("-{flavor}"))));
        for poll in ["start_poll", "poll_state"] {
            let name = format!("urcu_{flavor}_{poll}_synchronize_rcu");
            assert!(ours.contains_key(&name), "{name}");
        }
        let (before, next) = (&ours["rcu_dereference_sym"], &ours["rcu_dereference_sym2"]);
        assert_eq!(before, next, "liburcu-{flavor}");
    }
}

#[test]
fn the_core_exports_its_own_names_only() {
    needs::or_return!();
    let names = exports(&ours("libquiescence.so.0"));
    assert!(names.len() > 100, "{} symbols", names.len());
    let foreign: Vec<_> = names.keys().filter(|name| !name.starts_with("quiescence_")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

/// What the dynamic linker finds in each library.
#[test]
fn libraries_are_linked_as_they_must_be() {
    needs::or_return!();
    for soname in LIBRARIES.map(soname).into_iter().chain(["libquiescence.so.0".to_owned()]) {
        let file = ours(&soname);
        let entries = dynamic(&file);
        let flags = format!("{:?} {:?}", values(&entries, "FLAGS"), values(&entries, "FLAGS_1"));
        assert_eq!(values(&entries, "SONAME"), [&soname]);
        // Data that an executable has copied is found through the table that the dynamic linker
        // fills.
        assert!(
            !flags.contains("SYMBOLIC") && values(&entries, "SYMBOLIC").is_empty(),
            "{soname}: {flags}"
        );
        // With it, a library cannot be loaded once the space for thread-local storage is used up.
        assert!(!flags.contains("STATIC_TLS"), "{soname}: {flags}");
        assert!(
            !flags.contains("TEXTREL") && values(&entries, "TEXTREL").is_empty(),
            "{soname}: {flags}"
        );
        // Threads and records outlive a dlclose; a reader does not bind in its first section.
        assert!(flags.contains("NODELETE") && flags.contains("NOW"), "{soname}: {flags}");
        // liburcu's symbols have no versions.
        assert!(values(&entries, "VERDEF").is_empty(), "{soname}");
        let segments = segments(&file);
        assert!(segments.iter().any(|line| line.starts_with("GNU_RELRO")), "{soname}");
        let stack = segments
            .iter()
            .find(|line| line.starts_with("GNU_STACK"))
            .expect("a segment for the stack");
        assert!(!stack.contains("RWE"), "{soname}: {stack}");
        if soname.starts_with("liburcu") {
            assert!(values(&entries, "NEEDED").contains(&"libquiescence.so.0"), "{soname}");
            assert_eq!(values(&entries, "RUNPATH"), ["$ORIGIN"], "{soname}");
        }
    }
}

#[test]
fn thread_local_readers_are_reached_by_descriptors() {
    needs::or_return!();
    for flavor in FLAVORS {
        let library = ours(&soname(&format!("-{flavor}")));
        let reader = format!("urcu_{flavor}_reader");
        let kinds: Vec<_> =
            relocations(&library).into_iter().filter(|(_, symbol)| *symbol == reader).collect();
        let descriptor =
            if cfg!(target_arch = "x86_64") { "R_X86_64_TLSDESC" } else { "R_AARCH64_TLSDESC" };
        assert_eq!(kinds, [(descriptor.to_owned(), reader)]);
    }
}

/// This test needs an executable with copies of these.
fn has_copies(program: &Path, symbols: &[&str]) {
    let relocations = relocations(program);
    for symbol in symbols {
        let is_copied =
            relocations.iter().any(|(kind, name)| kind.ends_with("_COPY") && name == symbol);
        assert!(is_copied, "no copy of {symbol}: {relocations:?}");
    }
}

/// Trap 1. Each way of compiling an executable that makes copies, with either headers, on either
/// libraries.
#[test]
fn data_that_an_executable_has_copied_is_the_data() {
    needs::or_return!();
    let sides = sides();
    for &headers in &sides {
        for way in [["-fPIE", "-pie", "-lurcu-memb"], ["-fno-pie", "-no-pie", "-lurcu-memb"]] {
            let program = compile("abi/copied.c", headers, &way);
            let symbols = ["urcu_memb_gp", "urcu_memb_has_sys_membarrier", "urcu_memb_flavor"];
            has_copies(&program, &symbols);
            for &libraries in &sides {
                assert_eq!(run(&program, libraries, &[]), "ok\n");
            }
        }
    }
}

/// Whichever version an executable was linked with: its copy of the flavour's structure has all
/// that it has room for, what is behind it is left alone, and the dynamic linker says nothing. Also
/// where the copy is made read-only before the library is initialised, as lld has it.
#[test]
fn copies_of_the_flavour_s_structure_are_completed() {
    needs::or_return!();
    let sides = sides()
        .into_iter()
        .chain(needs::met_for("with 0.15's headers", &["Liburcu15"]).then_some(Whose::Debian13s));
    let lld = lld();
    if lld.is_none() {
        needs::skipped("lld of the Rust toolchain", "a toolchain with rust-lld");
    }
    for headers in sides {
        for flavor in ["memb", "mb", "qsbr", "bp"] {
            let ways = [&["-fPIE", "-pie"][..], &["-fno-pie", "-no-pie"]].into_iter();
            let by_lld = lld.as_deref().map(|place| vec!["-fPIE", "-pie", "-fuse-ld=lld", place]);
            for way in ways.map(<[_]>::to_vec).chain(by_lld) {
                let members = (headers != Whose::Debians).then_some("-DMEMBERS_OF_0_14");
                let options: Vec<&str> = way.iter().copied().chain(members).collect();
                let program = compile_for(flavor, "abi/flavor_copy.c", headers, &options);
                has_copies(&program, &[&format!("urcu_{flavor}_flavor")]);
                let size = if headers == Whose::Debians { "112" } else { "128" };
                assert_eq!(run(&program, Whose::Ours, &[size]), "ok\n", "{headers:?} {way:?}");
            }
        }
    }
}

/// The library took such a copy for writable, and the program ended before `main`.
#[test]
fn a_copy_is_completed_in_a_program_that_does_not_say_where_its_headers_are() {
    needs::or_return!();
    let Some(lld) = lld() else { return };
    let options = ["-fno-pie", "-no-pie", "-fuse-ld=lld", &lld, "-DMEMBERS_OF_0_14"];
    let program = compile_for("memb", "abi/flavor_copy.c", Whose::Ours, &options);
    let has_entry = || segments(&program).iter().any(|line| line.starts_with("PHDR"));
    assert!(has_entry());
    // Its kind, which is the first thing of the first header, becomes that of no segment. By a
    // process, so that no other one has the file open for writing when the program is started.
    let mut erase = std::process::Command::new("dd");
    erase.args(["if=/dev/zero", "bs=1", "count=4", "seek=64", "conv=notrunc", "status=none"]);
    succeeds(erase.arg(format!("of={}", program.display())));
    assert!(!has_entry());
    assert_eq!(run(&program, Whose::Ours, &["128"]), "ok\n");
}

/// The option of gcc that names the Rust toolchain's lld, if there is one.
fn lld() -> Option<String> {
    let output = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let place = PathBuf::from(root.trim()).join("lib/rustlib").join(target).join("bin/gcc-ld");
    place.join("ld.lld").exists().then(|| format!("-B{}", place.display()))
}

/// A program that is linked with none of the libraries, and loads them.
fn dlopens() -> PathBuf {
    compile("abi/dlopened.c", Whose::Ours, &["-ldl"])
}

fn loads(arguments: &[&str], said: &str) {
    assert_eq!(run(&dlopens(), Whose::Ours, arguments), said, "{arguments:?}");
}

/// Trap 2. By a program that is linked with none of them, from threads that are older.
#[test]
fn each_library_can_be_loaded_while_a_program_runs() {
    needs::or_return!();
    for flavor in FLAVORS {
        loads(&[&soname(&format!("-{flavor}")), flavor], "1 used\nok\n");
    }
    loads(&["liburcu.so.8", "memb"], "1 used\nok\n");
    for library in ["liburcu-cds.so.8", "liburcu-common.so.8"] {
        loads(&[library, "-"], "0 used\nok\n");
    }
}

#[test]
fn all_libraries_can_be_loaded_into_one_program() {
    needs::or_return!();
    let flavors = FLAVORS.map(|flavor| [soname(&format!("-{flavor}")), flavor.to_owned()]);
    let others = ["liburcu.so.8", "memb", "liburcu-cds.so.8", "-", "liburcu-common.so.8", "-"];
    let forward: Vec<&str> =
        flavors.as_flattened().iter().map(|word| &**word).chain(others).collect();
    loads(&forward, "6 used\nok\n");
    let backward: Vec<&str> = forward.chunks(2).rev().flatten().copied().collect();
    loads(&backward, "6 used\nok\n");
}

#[test]
fn a_library_that_is_unloaded_stays() {
    needs::or_return!();
    for flavor in FLAVORS {
        loads(&["--closed", &soname(&format!("-{flavor}")), flavor], "ok\n");
    }
}

/// liburcu and liburcu-memb have the same symbols. Two plugins may bring one each; the core has one
/// domain for both.
#[test]
fn liburcu_and_liburcu_memb_are_one_in_a_process() {
    needs::or_return!();
    for pair in [["liburcu.so.8", "liburcu-memb.so.8"], ["liburcu-memb.so.8", "liburcu.so.8"]] {
        loads(&["--one", pair[0], pair[1]], "ok\n");
    }
}

/// Clients compiled with liburcu's assertions look at marks in the reader's record that only the
/// library sets.
#[test]
fn readers_compiled_with_assertions_find_themselves_registered() {
    needs::or_return!();
    let sides = sides();
    for flavor in ["memb", "mb", "qsbr", "signal"] {
        for &headers in &sides {
            let program = compile_for(flavor, "abi/asserting.c", headers, &["-DDEBUG_RCU"]);
            for &libraries in &sides {
                assert_eq!(run(&program, libraries, &["registered"]), "ok\n");
                // The assertions are compiled in: this program fails without the mark.
                let said = aborts(&program, libraries, &["unregistered"], &[]);
                assert!(said.contains("registered"), "{flavor} with {headers:?} headers: {said}");
            }
        }
    }
}
