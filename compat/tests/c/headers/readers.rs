//! What the compiler makes of the inlined readers, beside what it makes of Debian's: no more
//! instructions on the way that all take, and no locked one where membarrier stands in for it.
#![cfg(target_arch = "x86_64")]

use xtask::needs;

use super::tree::Tree;
use crate::program::FLAVORS;

/// A function's instructions up to its first return.
fn way(assembly: &str, function: &str) -> Vec<String> {
    let label = format!("\n{function}:\n");
    let at = assembly.find(&label).unwrap_or_else(|| panic!("{function} in the assembly"));
    let mut way = Vec::new();
    for line in assembly[at + label.len()..].lines() {
        let Some(instruction) = line.strip_prefix('\t').filter(|line| !line.starts_with('.'))
        else {
            continue;
        };
        let words: Vec<_> = instruction.split_whitespace().collect();
        way.push(words.join(" "));
        if words[0] == "ret" {
            break;
        }
    }
    way
}

fn assembly(tree: &Tree) -> String {
    let source = include_str!("../../headers/readers.c");
    tree.compile("gcc -std=gnu11 -O2 -fPIE -S -o - -x c", &[], source).expect("it compiles")
}

/// Whether one of them is a fence, or takes a lock on the bus.
fn is_fenced(way: &[String]) -> bool {
    way.iter().any(|instruction| {
        ["mfence", "lock", "xchg"].iter().any(|fence| instruction.starts_with(fence))
    })
}

#[test]
fn inlined_readers_are_no_longer_than_debians() {
    needs::or_return!(Liburcu);
    let (ours, theirs) = (assembly(&Tree::ours()), assembly(&Tree::debians()));
    let mut functions: Vec<String> = FLAVORS
        .iter()
        .flat_map(|flavor| ["lock", "unlock", "pair"].map(|part| format!("{flavor}_{part}")))
        .collect();
    functions.push("qsbr_quiescent".into());
    for function in functions {
        let (ours, theirs) = (way(&ours, &function), way(&theirs, &function));
        assert!(
            ours.len() <= theirs.len(),
            "{function}: ours is {} instructions long, Debian's {}:\n{ours:#?}\n{theirs:#?}",
            ours.len(),
            theirs.len()
        );
    }
}

/// The functions whose way has a fence, of the readers that need none.
fn needlessly_fenced(tree: &Tree) -> Vec<String> {
    let assembly = assembly(tree);
    let functions = ["memb", "bp", "qsbr", "signal"]
        .iter()
        .flat_map(|flavor| ["lock", "unlock", "pair"].map(|part| format!("{flavor}_{part}")));
    functions.filter(|function| is_fenced(&way(&assembly, function))).collect()
}

/// Of the flavour mb, those whose way has none.
fn unfenced(tree: &Tree) -> Vec<String> {
    let assembly = assembly(tree);
    let functions = ["mb_lock", "mb_unlock", "mb_pair"].map(String::from);
    functions.into_iter().filter(|function| !is_fenced(&way(&assembly, function))).collect()
}

#[test]
fn readers_fence_where_they_must_and_nowhere_else() {
    needs::or_return!();
    assert_eq!(needlessly_fenced(&Tree::ours()), [""; 0]);
    assert_eq!(unfenced(&Tree::ours()), [""; 0]);
}

#[test]
fn faults_of_fences_are_found() {
    needs::or_return!();
    let header = "urcu/static/urcu-memb.h";
    let always = Tree::mutant("fenced", header, "!urcu_memb_has_sys_membarrier", "1");
    assert_eq!(needlessly_fenced(&always), ["memb_lock", "memb_unlock", "memb_pair"]);
    let never = Tree::mutant("unfenced", "urcu/static/urcu-mb.h", "ctr, 1)", "ctr, 0)");
    assert_eq!(unfenced(&never), ["mb_lock", "mb_unlock", "mb_pair"]);
}

/// A locked instruction for each operation that changes something, whatever the CPU would need
/// besides, and for a full fence: that one is missing, a run shows now and then only.
#[test]
fn atomic_operations_are_locked() {
    needs::or_return!();
    let source = r"
        #include <urcu/uatomic.h>
        long op_xchg(long *w) { return uatomic_xchg(w, 3); }
        long op_cmpxchg(long *w) { return uatomic_cmpxchg(w, 2, 3); }
        long op_add_return(long *w) { return uatomic_add_return(w, 3); }
        long op_sub_return(long *w) { return uatomic_sub_return(w, 3); }
        void op_add(long *w) { uatomic_add(w, 3); }
        void op_sub(long *w) { uatomic_sub(w, 3); }
        void op_inc(long *w) { uatomic_inc(w); }
        void op_dec(long *w) { uatomic_dec(w); }
        void op_and(long *w) { uatomic_and(w, 3); }
        void op_or(long *w) { uatomic_or(w, 3); }
        void op_set(long *w) { uatomic_set(w, 3); }
        long op_read(long *w) { return uatomic_read(w); }
        void op_mb(void) { cmm_mb(); }
        void op_smp_mb(void) { cmm_smp_mb(); }
    ";
    let operations = source.split("op_").skip(1).filter_map(|rest| rest.split('(').next());
    let unlocked = |tree: &Tree| -> Vec<&str> {
        let compiled = tree.compile("gcc -std=gnu11 -O2 -S -o - -x c", &[], source);
        let assembly = compiled.expect("it compiles");
        let is_plain = |name: &str| !is_fenced(&way(&assembly, &format!("op_{name}")));
        operations.clone().filter(|name| is_plain(name)).collect()
    };
    assert_eq!(unlocked(&Tree::ours()), ["set", "read"]);
    let fault = Tree::mutant(
        "unlocked",
        "urcu/uatomic/generic.h",
        "(void) __atomic_fetch_add((addr), caa_cast_long_keep_sign(v), _uatomic_c11(mo));",
        "(*(addr) += caa_cast_long_keep_sign(v));",
    );
    assert_eq!(unlocked(&fault), ["add", "sub", "inc", "dec", "set", "read"]);
    for (name, macro_name, fence) in
        [("mb", "cmm_mb()", "mfence"), ("smp_mb", "cmm_smp_mb()", "lock; orl $0, (%%rsp)")]
    {
        let fault = Tree::mutant(
            &format!("fence-{name}"),
            "urcu/arch/x86.h",
            &format!("{macro_name}\t__asm__ __volatile__ (\"{fence}\""),
            &format!("{macro_name}\t__asm__ __volatile__ (\"\""),
        );
        assert_eq!(unlocked(&fault), ["set", "read", name]);
    }
}
