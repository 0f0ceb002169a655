//! What Debian's headers have and ours do not, on purpose, and why.

/// Headers of CPUs that we do not build for: programs there take the way through the compiler's own
/// operations.
pub(crate) const OTHER_CPUS: [&str; 14] = [
    "alpha",
    "arm",
    "hppa",
    "ia64",
    "loongarch",
    "m68k",
    "mips",
    "nios2",
    "ppc",
    "riscv",
    "s390",
    "sparc64",
    "superh",
    "tile",
];

/// Functions whose arguments 0.15 has made pointers to const. Ours are those of 0.15: what could be
/// passed to 0.13's can be passed to them.
pub(crate) const CONST_SINCE_0_15: [&str; 7] = [
    "cds_lfs_empty",
    "cds_lfht_iter_get_node",
    "cds_list_empty",
    "cds_list_replace",
    "cds_wfcq_empty",
    "cds_wfs_empty",
    "cds_list_replace_init",
];

/// A reason, and the names that are left out for it.
pub(crate) type Reason = (&'static str, &'static [&'static str]);

/// What 0.13 and 0.15 both have.
pub(crate) const EXCEPTIONS: &[Reason] = &[
    (
        "How a function of Debian's is divided up inside; the function itself is there",
        &[
            "_urcu_bp_read_lock_update",
            "_urcu_mb_read_lock_update",
            "_urcu_mb_read_unlock_update_and_wakeup",
            "_urcu_memb_read_lock_update",
            "_urcu_memb_read_unlock_update_and_wakeup",
            "___cds_lfs_empty_head",
            "___cds_wfcq_append",
            "___cds_wfcq_busy_wait",
            "___cds_wfcq_dequeue_with_state",
            "___cds_wfcq_first",
            "___cds_wfcq_next",
            "___cds_wfcq_node_sync_next",
            "___cds_wfcq_splice",
            "___cds_wfcq_wait_sleep",
            "___cds_wfq_node_sync_next",
            "___cds_wfs_end",
            "___cds_wfs_next",
            "___cds_wfs_node_sync_next",
            "___cds_wfs_pop",
        ],
    ),
    (
        "How long Debian's inlined queues spin and sleep: ours are in the library",
        &[
            "CDS_WFCQ_WAIT_SLEEP",
            "CDS_WFS_ADAPT_ATTEMPTS",
            "CDS_WFS_END",
            "CDS_WFS_WAIT",
            "WFCQ_ADAPT_ATTEMPTS",
            "WFCQ_WAIT",
            "WFQ_ADAPT_ATTEMPTS",
            "WFQ_WAIT",
        ],
    ),
    (
        "The queue's own elements, which are the library's",
        &[
            "cds_lfq_node_rcu_dummy",
            "enqueue_dummy",
            "free_dummy",
            "free_dummy_cb",
            "make_dummy",
            "rcu_free_dummy",
        ],
    ),
    (
        "How an updater looks at a reader, which is the library's",
        &[
            "URCU_BP_READER_ACTIVE_CURRENT",
            "URCU_BP_READER_ACTIVE_OLD",
            "URCU_BP_READER_INACTIVE",
            "URCU_READER_ACTIVE_CURRENT",
            "URCU_READER_ACTIVE_OLD",
            "URCU_READER_INACTIVE",
            "urcu_bp_reader_state",
            "urcu_bp_state",
            "urcu_common_reader_state",
            "urcu_qsbr_reader_state",
            "urcu_state",
        ],
    ),
    ("How a library defines its flavour's structure", &["DEFINE_RCU_FLAVOR"]),
    (
        "What the atomic operations are made of on x86, and on CPUs without compare-and-swap",
        &[
            "UATOMIC_COMPAT",
            "__hp",
            "__hp_1",
            "__hp_2",
            "__hp_4",
            "__hp_8",
            "__uatomic_add",
            "__uatomic_add_return",
            "__uatomic_and",
            "__uatomic_cmpxchg",
            "__uatomic_dec",
            "__uatomic_exchange",
            "__uatomic_inc",
            "__uatomic_or",
            "_uatomic_add",
            "_uatomic_add_return",
            "_uatomic_cmpxchg",
            "_uatomic_dec",
            "_uatomic_exchange",
            "_uatomic_inc",
            "_uatomic_xchg",
        ],
    ),
    (
        "Macros that name functions which neither library has",
        &["cds_wfcq_first_blocking", "cds_wfcq_next_blocking"],
    ),
    ("Only where a flavour's header has been included: it needs one", &["cds_lfht_new"]),
];

/// What 0.13 alone has.
pub(crate) const EXCEPTIONS_0_13: &[Reason] = &[
    (
        "How a function of Debian's is divided up inside; the function itself is there",
        &["_urcu_signal_read_lock_update", "_urcu_signal_read_unlock_update_and_wakeup"],
    ),
    (
        "What the atomic operations are made of on x86, and on CPUs without compare-and-swap",
        &["_uatomic_link_error", "_uatomic_set"],
    ),
];

/// What 0.15 alone has.
pub(crate) const EXCEPTIONS_0_15: &[Reason] = &[
    (
        "How a function of Debian's is divided up inside; the function itself is there",
        &["_cds_wfcq_node_init_atomic"],
    ),
    (
        "How orders, sizes and assertions are told apart inside: with an underscore in front",
        &[
            "_CMM_OPTIMIZER_HIDE_VAR",
            "_CMM_TOOLCHAIN_SUPPORT_C11_MM",
            "_Static_assert",
            "_UATOMIC_HAS_ATOMIC_BYTE_FLAG",
            "_UATOMIC_HAS_ATOMIC_INT_FLAG",
            "_UATOMIC_HAS_ATOMIC_LLONG_FLAG",
            "_UATOMIC_HAS_ATOMIC_MASK",
            "_UATOMIC_HAS_ATOMIC_SHORT_FLAG",
            "__CAA_COMBINE_TOKENS",
            "_cmm_compat_c11_smp_mb__after_mo",
            "_cmm_compat_c11_smp_mb__after_uatomic_load_mo",
            "_cmm_compat_c11_smp_mb__after_uatomic_store_mo",
            "_cmm_compat_c11_smp_mb__before_mo",
            "_cmm_compat_c11_smp_mb__before_uatomic_load_mo",
            "_cmm_compat_c11_smp_mb__before_uatomic_store_mo",
            "_cmm_static_assert__atomic_lf",
            "_uatomic_default_mo",
            "_uatomic_default_mo2",
            "_uatomic_has_atomic_type",
            "_uatomic_select_arg1",
            "_uatomic_select_arg2",
            "_uatomic_static_assert_atomic",
            "_uatomic_str",
            "_uatomic_xstr",
            "_urcu_use_expression",
        ],
    ),
];
