//! What a program may define as a macro before it includes a header of ours: all that is not
//! reserved, nor the standard's or the interface's. The headers named parameters, variables and
//! types of their own with ordinary words. And what else stood among them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::headers::offered::{is_word, tokens};
use crate::headers::tree::Tree;
use xtask::needs;

/// Words of C and C++ that no program may define.
const KEYWORDS: &str = "alignas auto bool char class const const_cast constexpr decltype \
    default define defined delete do double elif else endif enum explicit extern false for friend \
    if ifdef ifndef inline int int16_t int32_t int64_t int8_t long namespace new nodiscard \
    noexcept nullptr operator private protected public reinterpret_cast return short signed \
    sizeof static static_assert \
    static_cast struct switch template this thread_local throw true typedef typename uint16_t uint32_t \
    uint64_t uint8_t undef union unsigned using virtual void volatile while";

/// What the headers of C++ take from the standard library, and what they give.
const STANDARD: &str = "atomic bad_alloc default_delete empty exchange hazard_pointer hazard_pointer_obj_base \
    is_empty_v is_final_v is_invocable_v is_move_constructible_v is_same_v load lock \
    make_hazard_pointer memory_order_acquire memory_order_relaxed move nullptr_t protect rcu \
    rcu_barrier rcu_default_domain rcu_domain rcu_obj_base rcu_retire rcu_synchronize remove_cv_t \
    reset_protection retire std swap timespec try_lock try_protect unique_ptr unlock version \
    void_t";

/// The names in a header, without comments, texts, and what it includes.
fn names(text: &str) -> BTreeSet<String> {
    let is_left_out = |line: &&str| {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let left_out = ["include", "error", "pragma"];
        directive.is_some_and(|rest| left_out.iter().any(|word| rest.starts_with(word)))
    };
    let code: Vec<_> = text.lines().filter(|line| !is_left_out(line)).collect();
    tokens(&code.join("\n")).into_iter().filter(|token| is_word(token)).collect()
}

/// The names in all headers of C of a tree.
fn names_in(tree: &Tree) -> BTreeSet<String> {
    let texts = tree.headers().into_iter().map(|header| read(&tree.root.join(header)));
    texts.flat_map(|text| names(&text)).collect()
}

fn read(header: &Path) -> String {
    fs::read_to_string(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()))
}

fn is_reserved(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('_')
        && letters.next().is_some_and(|c| c == '_' || c.is_ascii_uppercase())
}

/// What is ours by its beginning, and documented: names that a program cannot have taken for
/// something else.
fn is_ours(name: &str) -> bool {
    [
        "syscall",
        "quiescence",
        "QUIESCENCE_",
        "urcu_",
        "_urcu_",
        "_cds_",
        "_uatomic_",
        "compat_futex_",
        "rcu_head",
    ]
    .iter()
    .any(|start| name.starts_with(start))
}

fn ordinary(text: &str, allowed: &BTreeSet<String>) -> Vec<String> {
    // What is joined to a word before it is no macro by itself.
    let all = names(&text.replace("##", "##__")).into_iter();
    all.filter(|name| !is_reserved(name) && !is_ours(name) && !allowed.contains(name)).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

/// The headers of C++.
const CPP: [&str; 2] = ["rcu", "hazard_pointer"];

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The whole folder is installed: so was `<stdin>.s`, which a compiler had left there.
#[test]
fn something_else_stands_among_the_headers() {
    let cpp = CPP.map(|header| include().join(header));
    let mut others = xtask::files_below(&include()).expect("the folder of headers");
    others.retain(|path| path.extension().is_none_or(|end| end != "h") && !cpp.contains(path));
    assert!(others.is_empty(), "no header: {others:?}");
}

/// A macro of the program's broke them: each of their words could be one.
#[test]
fn the_headers_of_cpp_use_ordinary_words() {
    let allowed: BTreeSet<String> = words(KEYWORDS).chain(words(STANDARD)).collect();
    for header in CPP {
        assert_eq!(ordinary(&read(&include().join(header)), &allowed), [""; 0], "<{header}>");
    }
    // The words are looked for: in code, and not in comments.
    let text = "// of node\n#include <link>\n#define _Q(p) \"take\" p /* set */\nint __a, value;";
    assert_eq!(ordinary(text, &allowed), ["p", "value"]);
}

/// Names that ours have and liburcu's have from 0.15 on. (Where the machine has those headers,
/// a test holds that they do.)
const OF_0_15: &str = "\
    CAA_COMBINE_TOKENS CMM_ACQUIRE CMM_ACQ_REL CMM_ANNOTATE_LOAD CMM_ANNOTATE_MB \
    CMM_ANNOTATE_STORE CMM_ANNOTATE_VOID CMM_CONSUME CMM_RELAXED CMM_RELEASE \
    CMM_SANITIZE_THREAD CMM_SEQ_CST CMM_SEQ_CST_FENCE CONFIG_RCU_EMIT_LEGACY_MB NDEBUG \
    UATOMIC_HAS_ATOMIC_INT UATOMIC_HAS_ATOMIC_LLONG _ aligned_alloc alignment c_identifier_msg \
    caa_container_of_check_null cds_lfht_alloc cds_lfht_entry cds_lfht_new_with_flavor_alloc \
    cds_lfht_node_init_deleted cds_lfs_stack_cast cds_lfs_stack_const_cast \
    cds_lfs_stack_const_ptr_t cds_wfcq_head_const_cast cds_wfcq_head_const_ptr_t \
    cds_wfs_stack_cast cds_wfs_stack_const_cast cds_wfs_stack_const_ptr_t cmm_annotate \
    cmm_annotate_define cmm_annotate_group_mb_acquire cmm_annotate_group_mb_release \
    cmm_annotate_group_mem_acquire cmm_annotate_group_mem_release cmm_annotate_mem_acquire \
    cmm_annotate_mem_release cmm_annotate_t cmm_cast_volatile cmm_emit_legacy_smp_mb \
    cmm_memorder cmm_ptr_eq cmm_seq_cst_fence_after_atomic cmm_to_c11 counter dflt group mask \
    mem mo mof mos nmemb predicate prefix realloc size_t uatomic_add_mo uatomic_add_return_mo \
    uatomic_and_mo uatomic_cmpxchg_mo uatomic_dec_mo uatomic_inc_mo uatomic_load \
    uatomic_load_mo uatomic_or_mo uatomic_store uatomic_store_mo uatomic_sub_mo \
    uatomic_sub_return_mo uatomic_xchg_mo update_poll_state_synchronize_rcu \
    update_start_poll_synchronize_rcu";

/// Words that liburcu's headers use themselves are the interface's, or would break a program there
/// as well.
#[test]
fn the_headers_of_c_use_words_that_liburcus_do_not() {
    needs::or_return!(Liburcu);
    let mut allowed: BTreeSet<String> = words(KEYWORDS).collect();
    let poll = "grace_period_id poll_state_synchronize_rcu start_poll_synchronize_rcu"; // of 0.14
    allowed.extend(words(poll));
    allowed.extend(words("rcu_dereference_sym2")); // of the next one
    allowed.extend(words("fprintf stderr")); // for who defines CONFIG_RCU_FORCE_SYS_MEMBARRIER
    allowed.extend(words(OF_0_15));
    allowed.extend(names_in(&Tree::debians()));
    let ours = Tree::ours();
    assert!(ours.headers().len() > 70);
    for header in ours.headers() {
        let text = read(&ours.root.join(&header));
        assert_eq!(ordinary(&text, &allowed), [""; 0], "{header}");
    }
}

#[test]
fn the_names_of_0_15_are_in_its_headers() {
    needs::or_return!(Liburcu15);
    let named = names_in(&Tree::debian_13s());
    let others: Vec<_> = words(OF_0_15).filter(|name| !named.contains(name)).collect();
    assert_eq!(others, [""; 0]);
}
