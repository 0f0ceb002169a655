//! Our headers beside Debian's: that each compiles alone, in every C and C++; that every name which
//! programs find in liburcu's is in ours, with the same parameters and the same layout; what the
//! macros answer; and what the compiler makes of the inlined readers. None of it needs a library,
//! ours or theirs.
//!
//! Each comparison is also made with a header of ours that has a fault put in, and must find it.

pub(crate) mod offered;
mod readers;
pub(crate) mod tree;

use std::collections::{BTreeMap, BTreeSet};

use crate::program::Version;
use crate::scratch::scratch;
use offered::offered;
use tree::{Tree, run};
use xtask::needs;

impl Version {
    fn tree(self) -> Tree {
        match self {
            Self::V13 => Tree::debians(),
            Self::V15 => Tree::debian_13s(),
        }
    }

    fn flavors(self) -> &'static [&'static str] {
        let all = &["memb", "mb", "qsbr", "bp", "signal"];
        if self == Self::V13 { all } else { &all[..4] }
    }

    /// What the programs of this test are told of it.
    fn defines(self) -> &'static [&'static str] {
        if self == Self::V13 { &[] } else { &["-DLIBURCU_0_15"] }
    }
}

/// Those that are there; a version that is not is skipped visibly.
fn versions() -> impl Iterator<Item = Version> {
    let v13 = needs::met_for("with the headers of liburcu 0.13", &["Liburcu"]);
    let v15 = needs::met_for("with the headers of liburcu 0.15", &["Liburcu15"]);
    [(Version::V13, v13), (Version::V15, v15)].into_iter().filter_map(|(v, met)| met.then_some(v))
}

/// What is left out, or used, on purpose: the names that `tests/headers/exceptions.txt` has for
/// `what`.
pub(crate) fn excepted(what: &str) -> impl Iterator<Item = &'static str> {
    let paragraphs = include_str!("../headers/exceptions.txt").split("\n\n").skip(1);
    let of_it = paragraphs.filter(move |text| text.starts_with(&format!("{what}: ")));
    of_it.flat_map(|text| text.lines().skip(1).flat_map(str::split_whitespace))
}

/// Whether a header of Debian's is one of a CPU that we do not build for.
fn is_of_other_cpu(header: &str) -> bool {
    excepted("cpus").any(|name| header.ends_with(&format!("/{name}.h")))
}

const DIALECTS: [&str; 7] = [
    "gcc -std=c89 -x c",
    "gcc -std=c99 -x c",
    "gcc -std=c11 -x c",
    "gcc -std=gnu17 -x c",
    "g++ -std=c++11 -x c++",
    "g++ -std=c++17 -x c++",
    "g++ -std=c++20 -x c++",
];

/// Those that there is a compiler for.
fn dialects() -> impl Iterator<Item = &'static str> {
    let cpp = needs::met_for("in C++", &["Gxx"]);
    DIALECTS.into_iter().filter(move |dialect| cpp || !dialect.starts_with("g++"))
}

/// What programs ask of the headers.
const SWITCHES: [&[&str]; 4] = [
    &[],
    &["-D_LGPL_SOURCE"],
    &["-DURCU_INLINE_SMALL_FUNCTIONS", "-DURCU_API_MAP"],
    &["-D_LGPL_SOURCE", "-DURCU_API_MAP", "-DDEBUG_RCU"],
];

/// The way of CPUs that have no header of their own.
const OTHER_CPU: [&str; 6] = [
    "-D_URCU_ARCH_H",
    "-D_URCU_UATOMIC_H",
    "-include",
    "urcu/arch/gcc.h",
    "-include",
    "urcu/uatomic/gcc.h",
];

/// Those of 0.15 that compile as a part of `<urcu/uatomic.h>` only.
const PARTS: [&str; 5] = [
    "urcu/uatomic/generic.h",
    "urcu/uatomic/api.h",
    "urcu/uatomic/builtins.h",
    "urcu/uatomic/builtins-generic.h",
    "urcu/uatomic/uassert.h",
];

/// `<urcu/map/urcu.h>` is for programs that have chosen.
fn needs(header: &str) -> &'static [&'static str] {
    if header == "urcu/map/urcu.h" { &["-DRCU_MEMBARRIER"] } else { &[] }
}

/// Those of other CPUs are included by themselves.
fn is_for_this_cpu(header: &&String) -> bool {
    !header.ends_with("/aarch64.h") && !header.ends_with("/gcc.h")
}

/// Of each language the dialect that has least of the system's, for what is asked of each header
/// by itself.
const STRICTEST: [&str; 2] = ["gcc -std=c89 -x c", "g++ -std=c++11 -x c++"];

/// A header that includes too little does so in each dialect. What a dialect warns of is in the
/// text, which all headers together have.
#[test]
fn every_header_compiles_alone() {
    needs::or_return!();
    let ours = Tree::ours();
    let headers = ours.headers();
    assert!(headers.len() > 70, "{headers:?}");
    let compiles = |dialect: &str, switches: &[&str], source: &str| {
        let strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];
        // A header of macros alone is an empty program to a pedant.
        let source = format!("{source}extern int program;\n");
        let compiled = ours.compile(dialect, &[&strict, switches].concat(), &source);
        assert_eq!(compiled, Ok(String::new()), "{source}, {dialect} {switches:?}");
    };
    let include = |header: &String| format!("#include <{header}>\n");
    let together: String = headers.iter().filter(is_for_this_cpu).map(include).collect();
    for dialect in dialects() {
        for switches in [SWITCHES[0], SWITCHES[2], SWITCHES[3]] {
            compiles(dialect, &[switches, needs("urcu/map/urcu.h")].concat(), &together);
            // What a header includes is the same in both languages, but for what it has inlined,
            // which the last of the switches does too.
            let alone = dialect == STRICTEST[0] && switches != SWITCHES[2]
                || dialect == STRICTEST[1] && switches == SWITCHES[3];
            for header in headers.iter().filter(|_| alone) {
                compiles(dialect, &[switches, needs(header)].concat(), &include(header));
            }
        }
    }
}

/// A program that is about to migrate has their headers, and after it ours.
#[test]
fn the_c_code_of_the_migration_page_compiles_with_their_headers_and_ours() {
    needs::or_return!();
    let page = include_str!("../../../MIGRATING.md");
    let rests = page.split("```c\n").skip(1);
    let blocks: Vec<_> = rests.filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    let theirs = versions().map(|version| (version.tree(), vec!["gcc -std=gnu17 -x c"]));
    for (tree, dialects) in theirs.chain([(Tree::ours(), dialects().collect())]) {
        for (dialect, block) in dialects.iter().flat_map(|d| blocks.iter().map(move |b| (d, b))) {
            let strict = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
            let compiled = tree.compile(dialect, &strict, block);
            assert_eq!(compiled, Ok(String::new()), "{dialect}, {:?}", tree.root);
        }
    }
}

/// Otherwise what is missing in ours would be found in Debian's, on machines that have both.
#[test]
fn our_headers_include_none_of_debians() {
    needs::or_return!(Liburcu);
    let (ours, debians) = (Tree::ours(), Tree::debians());
    let debians = format!("{}/urcu", debians.root.display());
    let headers = ours.headers();
    let include = |header: &String| format!("#include <{header}>\n");
    let together: String = headers.iter().filter(is_for_this_cpu).map(include).collect();
    let others = headers.iter().filter(|header| !is_for_this_cpu(header)).map(include);
    for source in std::iter::once(together).chain(others) {
        for switches in SWITCHES {
            let options = [&["-M"], switches, needs("urcu/map/urcu.h")].concat();
            let included = ours.compile("gcc -x c", &options, &source).expect(&source);
            assert!(included.contains("include/urcu"), "{source}: {included}");
            assert!(!included.contains(&debians), "{source}: {included}");
        }
    }
}

#[test]
fn every_header_of_debians_is_there() {
    needs::or_return!();
    let ours: BTreeSet<String> = Tree::ours().headers().into_iter().collect();
    for header in versions().flat_map(|version| version.tree().headers()) {
        assert_eq!(ours.contains(&header), !is_of_other_cpu(&header), "{header}");
    }
}

/// Whether this one has functions inlined that a program asks for.
fn is_of_flavor(header: &str) -> bool {
    header.starts_with("urcu/urcu-") || ["urcu.h", "urcu-qsbr.h", "urcu-bp.h"].contains(&header)
}

/// What the headers of a version offer and those of `tree` do not, with the header that it was
/// missed in first. Of those headers that begin like `which`.
fn missing(version: Version, tree: &Tree, which: &str) -> BTreeMap<String, String> {
    let debians = version.tree();
    let mut missing = BTreeMap::new();
    for header in debians.headers() {
        if !header.starts_with(which) {
            continue;
        }
        if version == Version::V15 && PARTS.contains(&header.as_str()) {
            continue;
        }
        // Those of other CPUs do not compile here.
        if !tree.root.join(&header).exists() || header.ends_with("aarch64.h") {
            continue;
        }
        for switches in SWITCHES {
            // Elsewhere the third offers what the last one does.
            if switches == SWITCHES[2] && !is_of_flavor(&header) {
                continue;
            }
            let mut options = switches.to_vec();
            options.extend(needs(&header));
            let theirs = offered(&debians, &header, &options);
            let ours = offered(tree, &header, &options);
            for (name, parameters) in &theirs.macros {
                let kept = ours.names.contains(name)
                    || ours.macros.get(name).is_some_and(|ours| {
                        // With as many as one likes there may be fewer, too.
                        ours == parameters || *ours == -2 || *parameters < 0
                    });
                // Guards against being included twice are each header's own; a switch is the
                // program's.
                let is_guard = name.starts_with('_') && name.ends_with("_H");
                let is_switch = switches.contains(&format!("-D{name}").as_str());
                if !kept && !is_guard && !is_switch {
                    missing.entry(name.clone()).or_insert_with(|| header.clone());
                }
            }
            for name in &theirs.names {
                if !ours.names.contains(name) && !ours.macros.contains_key(name) {
                    missing.entry(name.clone()).or_insert_with(|| header.clone());
                }
            }
        }
    }
    missing
}

#[test]
fn every_name_of_debians_is_there() {
    needs::or_return!();
    versions().for_each(names_are_there);
}

fn names_are_there(version: Version) {
    let missing = missing(version, &Tree::ours(), "urcu");
    let excepted = excepted("both").chain(excepted(version.number()));
    let excepted: BTreeSet<&str> = excepted.collect();
    let unknown: Vec<_> =
        missing.iter().filter(|(name, _)| !excepted.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "in the headers of {version:?} and not in ours: {unknown:#?}");
    // An exception that is none is a mistake in the table.
    let needless: Vec<_> = excepted.iter().filter(|name| !missing.contains_key(**name)).collect();
    assert!(needless.is_empty(), "{version:?}: excepted, and there: {needless:?}");
}

/// Declares every function of Debian's headers again after those of `tree`: the compiler says which
/// are others.
fn conflicts(version: Version, tree: &Tree, name: &str) -> Result<usize, String> {
    let debians = version.tree();
    let mut count = 0;
    for flavor in version.flavors() {
        for switches in [&["-DURCU_API_MAP"][..], &["-DURCU_API_MAP", "-D_LGPL_SOURCE"]] {
            let headers: String =
                [format!("urcu-{flavor}"), "cds".into(), "ref".into(), "futex".into()]
                    .iter()
                    .map(|header| format!("#include <urcu/{header}.h>\n"))
                    .collect();
            let list = scratch(name).join("prototypes");
            let place = list.to_str().expect("a path in ASCII");
            let mut options = vec!["-fsyntax-only", "-aux-info", place];
            options.extend(switches);
            debians.compile("gcc -x c", &options, &headers).expect("theirs compile");
            let mut again = headers.clone();
            let prototypes = std::fs::read_to_string(&list).expect("what -aux-info has written");
            let of_debians = format!("/* {}/urcu", debians.root.display());
            for line in prototypes.lines().filter(|line| line.starts_with(&of_debians)) {
                let prototype = line.split("*/").nth(1).unwrap_or("").trim();
                let prototype = prototype.split_inclusive(';').next().unwrap_or("");
                let plain = prototype.trim_start_matches("extern ").trim_start_matches("static ");
                let name = function_name(plain);
                if version == Version::V13 && excepted("const").any(|of| of == name) {
                    continue;
                }
                // By a macro it is another name of something that is declared, too.
                again.push_str(&format!("#undef {name}\n{plain}\n"));
                count += 1;
            }
            let mut options = vec!["-fsyntax-only", "-w"];
            options.extend(switches);
            tree.compile("gcc -x c", &options, &again)?;
        }
    }
    Ok(count)
}

fn function_name(prototype: &str) -> &str {
    let end = prototype.find(" (").expect("a function's prototype");
    prototype[..end].rsplit([' ', '*']).next().expect("a name")
}

#[test]
fn every_function_is_declared_as_debians() {
    needs::or_return!();
    for version in versions() {
        let count = conflicts(version, &Tree::ours(), "signatures");
        assert!(count.as_ref().is_ok_and(|count| *count > 1_000), "{version:?}: {count:?}");
    }
}

#[test]
fn layouts_and_constants_are_debians() {
    needs::or_return!();
    for version in versions() {
        let silent = [version.defines(), &["-w"]].concat();
        let theirs = run(&version.tree(), "layouts.c", "layouts-debians", &silent);
        let ours = run(&Tree::ours(), "layouts.c", "layouts-ours", version.defines());
        assert!(theirs.as_ref().is_ok_and(|text| text.lines().count() > 100), "{theirs:?}");
        assert_eq!(ours, theirs, "{version:?}");
    }
}

/// So that a structure which the comparison leaves out is noticed.
#[test]
fn the_comparison_of_layouts_has_every_structure() {
    needs::or_return!();
    versions().for_each(structures_are_compared);
}

fn structures_are_compared(version: Version) {
    let program = include_str!("../headers/layouts.c");
    let debians = version.tree();
    for header in debians.headers() {
        if is_of_other_cpu(&header) {
            continue;
        }
        let mut options = vec!["-E", "-P", "-D_LGPL_SOURCE"];
        options.extend(needs(&header));
        let source = format!("#include <{header}>\n");
        let text = debians.compile("gcc -x c", &options, &source).unwrap_or_else(|said| said);
        for (at, _) in text.match_indices("struct ") {
            let mut words = text[at + 7..].split_whitespace();
            let (name, next) = (words.next().unwrap_or(""), words.next());
            let ours =
                ["cds_", "__cds_", "urcu_", "rcu_"].iter().any(|start| name.starts_with(start));
            let inside = name == "cds_lfq_node_rcu_dummy"; // the queue's own, in our library as well
            if next == Some("{") && ours && !inside {
                assert!(program.contains(&format!("TYPE(struct {name});")), "struct {name}");
            }
        }
    }
}

#[test]
fn every_macro_is_used_without_a_warning() {
    needs::or_return!();
    let ours = Tree::ours();
    let source = include_str!("../headers/usage.c");
    for dialect in dialects() {
        for more in
            [&["-O2"][..], &["-O0", "-D_LGPL_SOURCE"], &["-O2", "-D_LGPL_SOURCE", "-DDEBUG_RCU"]]
        {
            // `-Wpedantic` adds warnings of the parser alone; later passes warn in the other runs.
            let pedantic = &["-Wpedantic", "-DPEDANTIC", "-fsyntax-only"][..];
            for last in [pedantic, &["-c", "-o", "/dev/null"]] {
                let mut options = vec!["-Wall", "-Wextra", "-Werror"];
                options.extend(more.iter().chain(last));
                let compiled = ours.compile(dialect, &options, source);
                assert_eq!(compiled, Ok(String::new()), "{dialect} {options:?}");
            }
        }
    }
    let compiled = ours.compile(
        "gcc -x c -c -o /dev/null -Wall -Wextra -Werror -O2 -D_LGPL_SOURCE",
        &OTHER_CPU,
        source,
    );
    assert_eq!(compiled, Ok(String::new()), "for another CPU");
}

#[test]
fn atomic_operations_answer_what_they_should() {
    needs::or_return!();
    let ours = Tree::ours();
    for (name, level) in
        [("atomics-plain", "-O0"), ("atomics-small", "-Os"), ("atomics-fast", "-O3")]
    {
        assert_eq!(run(&ours, "atomics.c", name, &[level]), Ok(String::new()));
    }
    assert_eq!(run(&ours, "atomics.c", "atomics-other", &OTHER_CPU), Ok(String::new()));
    // The program itself is right: liburcu's own headers pass it.
    for version in versions() {
        let options: &[&str] =
            if version == Version::V13 { &["-w", "-DCMM_HAS_NO_ORDERS"] } else { &["-w"] };
        let name = format!("atomics-{version:?}");
        assert_eq!(run(&version.tree(), "atomics.c", &name, options), Ok(String::new()));
    }
}

#[test]
fn faults_of_names_are_found() {
    needs::or_return!(Liburcu);
    for (header, from, to) in [
        ("urcu/list.h", "cds_list_move", "cds_list_shift"),
        (
            "urcu/hlist.h",
            "cds_hlist_for_each_safe(pos, p, head)",
            "cds_hlist_for_each_safe(pos, head)",
        ),
        ("urcu/wfcqueue.h", "CDS_WFCQ_RET_SRC_EMPTY", "SRC_EMPTY"),
    ] {
        let name = from.split('(').next().expect("a name");
        let missing = missing(Version::V13, &Tree::mutant(name, header, from, to), header);
        assert!(missing.contains_key(name), "{name}: {missing:?}");
    }
}

/// By the switch that 0.13 has not got, so that a comparison with its headers would not tell.
#[test]
fn small_functions_are_inlined_if_asked_for() {
    needs::or_return!();
    let are_inlined = |tree: &Tree, flavor: &str| {
        let of_it = offered(tree, &format!("urcu/urcu-{flavor}.h"), SWITCHES[2]);
        let name = format!("urcu_{flavor}_read_lock");
        of_it.macros.contains_key(&name) && of_it.names.contains(&format!("_{name}"))
    };
    for flavor in Version::V13.flavors() {
        assert!(are_inlined(&Tree::ours(), flavor), "{flavor}");
    }
    let switch = " || defined(URCU_INLINE_SMALL_FUNCTIONS)";
    let called = Tree::mutant("small-functions", "urcu/urcu-memb.h", switch, "");
    assert!(!are_inlined(&called, "memb"));
}

#[test]
fn faults_of_signatures_are_found() {
    needs::or_return!(Liburcu);
    let swapped = "cds_lfht_del(struct cds_lfht_node *node, struct cds_lfht *ht)";
    let del = "cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node)";
    for (name, header, from, to) in [
        ("cds_lfht_del", "urcu/rculfhash.h", del, swapped),
        ("set_cpu_call_rcu_data", "urcu/call-rcu.h", "extern int set_cpu", "extern short set_cpu"),
    ] {
        let found = conflicts(Version::V13, &Tree::mutant(name, header, from, to), name);
        assert!(found.as_ref().is_err_and(|text| text.contains(name)), "{found:?}");
    }
}

#[test]
fn faults_of_layouts_are_found() {
    needs::or_return!(Liburcu);
    let theirs = run(&Tree::debians(), "layouts.c", "layouts-faults", &["-w"]);
    for (name, header, from, to) in [
        ("futex", "urcu/static/urcu-common.h", "int32_t futex;", "int64_t futex;"),
        ("waiting", "urcu/static/urcu-qsbr.h", "int waiting;", "long waiting;"),
        ("order", "urcu/list.h", "*next, *prev;\n};", "*prev, *next;\n};"),
        ("phase", "urcu/static/urcu-common.h", "(unsigned long) << 2)", "(unsigned long) << 1)"),
        (
            "state",
            "urcu/wfcqueue.h",
            "CDS_WFCQ_STATE_LAST = (1U << 0)",
            "CDS_WFCQ_STATE_LAST = (1U << 1)",
        ),
    ] {
        let ours = run(
            &Tree::mutant(name, header, from, to),
            "layouts.c",
            &format!("layouts-{name}"),
            &["-w"],
        );
        assert!(ours.is_ok() && ours != theirs, "{name}: {ours:?}");
    }
}

#[test]
fn faults_of_atomic_operations_are_found() {
    needs::or_return!();
    for (name, from, to) in [
        ("sub", "-caa_cast_long_keep_sign(v), (mo)", "caa_cast_long_keep_sign(v), (mo)"),
        (
            "size",
            "if (len == 2)\n\t\t__atomic_fetch_or((volatile _uatomic_2",
            "if (len == 2)\n\t\t__atomic_fetch_or((volatile _uatomic_1",
        ),
        ("and", "__atomic_fetch_and", "__atomic_fetch_or"),
        ("cmpxchg", "&__uatomic_found,\t", "&(_uatomic_type(addr)){0},\t"),
    ] {
        let mutant = Tree::mutant(name, "urcu/uatomic/generic.h", from, to);
        let ran = run(&mutant, "atomics.c", &format!("atomics-{name}"), &["-w"]);
        assert!(ran.as_ref().is_err_and(|text| text.contains("atomics.c:")), "{name}: {ran:?}");
    }
}
